"""Figures of matplotlib: shown when a cell ends or says so, as a picture and as the data in it."""
import io
import sys

core = core  # given by the driver

MIME_OF = {"png": "image/png", "retina": "image/png", "png2x": "image/png", "svg": "image/svg+xml",
           "jpeg": "image/jpeg", "jpg": "image/jpeg", "pdf": "application/pdf"}
formats = ["png"]


def show_all(*ignored, **options):
    """pyplot.show(), and what happens at the end of a cell. A figure is shown once."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not hasattr(pyplot, "get_fignums"):
        return
    numbers = pyplot.get_fignums()
    if not numbers:
        return
    try:
        for number in numbers:
            core.display(pyplot.figure(number))
    finally:
        pyplot.close("all")


def all_figures(*numbers):
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [pyplot.figure(number) for number in numbers or pyplot.get_fignums()] if pyplot else []


def bundle_of(figure):
    if not figure.axes and not getattr(figure, "lines", None):
        return {}
    bundle = {MIME_OF[form]: picture_of(figure, form) for form in formats}
    try:
        chart = core.part("charts").chart_of(figure)
    except Exception:
        chart = None  # a figure is worth showing without its data
    if chart:
        bundle["e2b/chart"] = chart
    return bundle


def set_formats(*wanted):
    """How figures are shown from now on: `set_formats("svg", "png")`."""
    words = [word for each in wanted for word in ([each] if isinstance(each, str) else each)]
    known = list(dict.fromkeys(word.lower() for word in words if word.lower() in MIME_OF))
    if known:
        formats[:] = known


def picture_of(figure, form="png"):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    if figure.canvas is None:
        FigureCanvasAgg(figure)
    out = io.BytesIO()
    scale = 2 if form in ("retina", "png2x") else 1
    figure.savefig(out, format="png" if scale == 2 else form, bbox_inches="tight", dpi=figure.dpi * scale)
    return out.getvalue().decode() if form == "svg" else out.getvalue()
