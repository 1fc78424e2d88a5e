"""Figures of matplotlib: shown when a cell ends or says so, as a picture and as the data in it."""
import io
import sys

core = core  # given by the driver


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


def bundle_of(figure):
    if not figure.axes and not getattr(figure, "lines", None):
        return {}
    bundle = {"image/png": picture_of(figure)}
    try:
        chart = core.part("charts").chart_of(figure)
    except Exception:
        chart = None  # a figure is worth showing without its data
    if chart:
        bundle["e2b/chart"] = chart
    return bundle


def picture_of(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    if figure.canvas is None:
        FigureCanvasAgg(figure)
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight", dpi=figure.dpi)
    return out.getvalue()
