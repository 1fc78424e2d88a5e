"""The data in a figure: one chart for each of its axes, as plain values for JSON."""
import re

from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle, Wedge
from matplotlib.text import Text

UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")


def chart_of(figure):
    """None for a figure without axes; a superchart for one with several."""
    charts = [chart_of_axes(axes) for axes in figure.axes if isinstance(axes, Axes)]
    if not charts:
        return None
    if len(charts) == 1:
        return charts[0]
    title = getattr(figure, "_suptitle", None)
    return {"type": "superchart", "title": title.get_text() if title else None, "elements": charts}


def chart_of_axes(axes):
    kind, artists = classify(axes)
    chart = {"type": kind, "title": axes.get_title() or None}
    return FILLERS[kind](chart, axes, artists)


# --- what kind of chart it is


def classify(axes):
    frame = {id(axes.patch), id(axes.xaxis), id(axes.yaxis)} | {id(spine) for spine in axes.spines.values()}
    artists = [artist for artist in axes.get_children()
               if id(artist) not in frame and not isinstance(artist, Text)
               and type(artist).__name__ not in ("Legend", "Annotation")]
    if not artists:
        return "unknown", []
    if all(isinstance(artist, Line2D) for artist in artists):
        return ("box_and_whisker" if is_unfilled_box(artists) else "line"), artists
    kinds = {type(artist) for artist in artists}
    if PathPatch in kinds and kinds <= {PathPatch, Line2D}:
        return "box_and_whisker", artists
    rest = [artist for artist in artists if not is_grid(artist)]
    for kind, wanted in (("scatter", PathCollection), ("pie", Wedge), ("bar", Rectangle)):
        if rest and all(isinstance(artist, wanted) for artist in rest):
            return kind, rest
    return "unknown", artists


def is_grid(artist):
    return isinstance(artist, Line2D) and str(artist.get_label()).startswith("_") \
        and len(artist.get_xdata()) <= 2


def is_unfilled_box(lines):
    """boxplot() without filling draws lines only: each box is a closed path of five points."""
    boxes = [line for line in lines if is_box(line)]
    return bool(boxes) and len(lines) >= 5 * len(boxes)


def is_box(line):
    points = list(zip(plain_list(line.get_xdata()), plain_list(line.get_ydata())))
    return len(points) == 5 and points[0] == points[4] and len(set(points)) <= 4 \
        and len({point[0] for point in points}) == 2 and len({point[1] for point in points}) <= 2


# --- words and scales


def unit_of(label):
    found = UNIT.search(label or "")
    return (found[1] if found[1] is not None else found[2]) if found else None


def add_labels(chart, axes, swapped=False):
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    if swapped:
        x, y = y, x
    chart.update(x_label=x, y_label=y, x_unit=unit_of(x), y_unit=unit_of(y))
    return chart


def is_dates(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    known = (dates.DateConverter, dates.ConciseDateConverter, getattr(dates, "_SwitchableDateConverter", ()))
    return isinstance(converter, known)


def is_number(text):
    try:
        float(text.replace("\u2212", "-"))
        return True
    except ValueError:
        return False


def scale_of(axis, ticks, labels):
    if is_dates(axis):
        return "datetime"
    scale = axis.get_scale()
    if scale == "linear" and labels and list(ticks) == list(range(len(ticks))) \
            and not all(is_number(label) for label in labels):
        return "categorical"
    return scale


def plain(value):
    value = value.item() if hasattr(value, "item") else value
    return value.isoformat() if hasattr(value, "isoformat") else value


def plain_list(values):
    return [plain(value) for value in (values.tolist() if hasattr(values, "tolist") else values)]


def positions(axis, values):
    """Places on an axis; moments as ISO text where it has dates."""
    values = plain_list(values)
    if not is_dates(axis):
        return values
    return [value if isinstance(value, str) else dates.num2date(value).isoformat() for value in values]


def add_axis(chart, name, axis):
    low, high = sorted(axis.get_view_interval())
    shown = [(tick, label.get_text()) for tick, label in zip(axis.get_ticklocs(), axis.get_ticklabels())
             if low <= tick <= high]
    ticks = plain_list([tick for tick, _ in shown])
    labels = [label for _, label in shown]
    scale = scale_of(axis, ticks, labels)
    chart[name + "_ticks"] = positions(axis, ticks)
    chart[name + "_tick_labels"] = labels
    chart[name + "_scale"] = scale


def label_of(artist, index, word):
    label = str(artist.get_label())
    found = re.match(r"_(?:child|container)(\d+)$", label)
    return "%s %d" % (word, int(found[1])) if found else label


# --- each kind's elements


def fill_points(chart, axes, artists, points_of):
    axes.figure.canvas.draw_idle()
    add_labels(chart, axes)
    add_axis(chart, "x", axes.xaxis)
    add_axis(chart, "y", axes.yaxis)
    chart["elements"] = [{"label": label_of(artist, index, "Line"), "points": points_of(artist)}
                         for index, artist in enumerate(artists)]
    return chart


def fill_lines(chart, axes, artists):
    def points_of(line):
        return [list(point) for point in zip(positions(axes.xaxis, line.get_xdata(orig=False)),
                                             positions(axes.yaxis, line.get_ydata(orig=False)))]
    return fill_points(chart, axes, artists, points_of)


def fill_scatter(chart, axes, artists):
    def points_of(collection):
        offsets = collection.get_offsets()
        return [list(point) for point in zip(positions(axes.xaxis, offsets[:, 0]),
                                             positions(axes.yaxis, offsets[:, 1]))]
    return fill_points(chart, axes, artists, points_of)


def fill_bars(chart, axes, artists):
    from matplotlib.container import BarContainer
    groups = [item for item in axes.containers if isinstance(item, BarContainer)]
    if not groups:
        groups = [artists]
    heights = {round(float(bar.get_height()), 9) for group in groups for bar in group}
    widths = {round(float(bar.get_width()), 9) for group in groups for bar in group}
    horizontal = len(heights) == 1 and len(widths) > 1
    horizontal = horizontal or all(getattr(group, "orientation", "") == "horizontal" for group in groups)
    axis = axes.yaxis if horizontal else axes.xaxis
    names = dict(zip(plain_list(axis.get_ticklocs()), [item.get_text() for item in axis.get_ticklabels()]))
    add_labels(chart, axes, swapped=horizontal)
    chart["elements"] = []
    for index, group in enumerate(groups):
        label = label_of(group, index, "Group") if hasattr(group, "get_label") else "Group %d" % index
        for bar in group:
            middle = bar.get_y() + bar.get_height() / 2 if horizontal else bar.get_x() + bar.get_width() / 2
            middle = plain(middle)
            chart["elements"].append({
                "label": bar_name(names, axis, middle), "group": label,
                "value": plain(bar.get_width() if horizontal else bar.get_height())})
    return chart


def bar_name(names, axis, middle):
    for tick, name in names.items():
        if name and abs(tick - middle) < 0.5 and not is_number(name):
            return name
    if is_dates(axis):
        return dates.num2date(middle).isoformat()
    return names.get(middle) or ("%g" % middle)


def fill_pie(chart, axes, artists):
    chart["elements"] = [{"label": wedge.get_label(), "angle": abs(plain(wedge.theta2 - wedge.theta1)),
                          "radius": plain(wedge.r)} for wedge in artists]
    return chart


def fill_boxes(chart, axes, artists):
    """Each box owns the lines that touch its place: whiskers, caps, the median, the points outside."""
    boxes = [artist for artist in artists if isinstance(artist, PathPatch)] or \
        [line for line in artists if isinstance(line, Line2D) and is_box(line)]
    lines = [line for line in artists if isinstance(line, Line2D) and line not in boxes]
    spans = [span_of(box) for box in boxes]
    horizontal = bool(spans) and len({round(y1 - y0, 9) for _, _, y0, y1 in spans}) == 1 \
        and len({round(x1 - x0, 9) for x0, x1, _, _ in spans}) > 1
    axis = axes.yaxis if horizontal else axes.xaxis
    names = dict(zip(plain_list(axis.get_ticklocs()), [item.get_text() for item in axis.get_ticklabels()]))
    add_labels(chart, axes, swapped=horizontal)
    chart["elements"] = [box_of(span, lines, names, axis, horizontal) for span in spans]
    return chart


def span_of(box):
    if isinstance(box, PathPatch):
        extent = box.get_path().get_extents()
        return float(extent.x0), float(extent.x1), float(extent.y0), float(extent.y1)
    x, y = plain_list(box.get_xdata()), plain_list(box.get_ydata())
    return min(x), max(x), min(y), max(y)


def box_of(span, lines, names, axis, horizontal):
    x0, x1, y0, y1 = span
    (across0, across1), (low, high) = ((y0, y1), (x0, x1)) if horizontal else ((x0, x1), (y0, y1))
    middle = (across0 + across1) / 2
    ends, outliers, median = [low, high], [], None
    for line in lines:
        x, y = plain_list(line.get_xdata()), plain_list(line.get_ydata())
        across, along = (y, x) if horizontal else (x, y)
        if not along or not all(across0 - 1e-9 <= value <= across1 + 1e-9 for value in across):
            continue
        if line.get_linestyle() in ("None", "", " "):
            outliers += along
        elif len(set(along)) == 1 and low <= along[0] <= high and abs(max(across) - across1) < 1e-9:
            median = along[0]
        else:
            ends += along
    return {"label": bar_name(names, axis, middle), "min": min(ends), "first_quartile": low,
            "median": median, "third_quartile": high, "max": max(ends), "outliers": outliers}


def fill_unknown(chart, axes, artists):
    chart["elements"] = []
    return chart


FILLERS = {"line": fill_lines, "scatter": fill_scatter, "bar": fill_bars, "pie": fill_pie,
           "box_and_whisker": fill_boxes, "unknown": fill_unknown}
