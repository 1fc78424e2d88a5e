"""The data in a figure: one chart for each of its axes, as plain values for JSON.

What is in a chart, and how it is rounded, is what E2B's clients have from the package e2b_charts, where that finds
anything: here unfilled boxes, boxes with outliers and bars of one height are found as well.
"""
import re
from decimal import Context, Decimal

from matplotlib import dates
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle, Wedge
from matplotlib.text import Text

core = core  # given by the driver

UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")


def chart_of(figure):
    """None for a figure without data; a superchart for one with several axes."""
    if not any(axes.has_data() for axes in figure.axes):
        return None
    charts = [chart_of_axes(axes) for axes in figure.axes]
    if len(charts) == 1:
        return charts[0]
    title = getattr(figure, "_suptitle", None)
    return {"type": "superchart", "title": title.get_text() if title else "", "elements": charts}


def chart_of_axes(axes):
    kind, artists = classify(axes)
    chart = {"type": kind, "title": axes.get_title() or None}
    return FILLERS[kind](chart, axes, artists)


# --- what kind of chart it is


def classify(axes):
    every = (axes.lines, axes.patches, axes.collections, axes.images, axes.tables, axes.artists)
    artists = [artist for some in every for artist in some if not isinstance(artist, Text)]
    if all(isinstance(artist, Line2D) for artist in artists):
        return ("box_and_whisker" if is_unfilled_box(artists) else "line"), artists
    kinds = {type(artist) for artist in artists}
    if PathPatch in kinds and kinds <= {PathPatch, Line2D}:
        return "box_and_whisker", artists
    rest = [artist for artist in artists if not is_reference(artist)]
    for kind, wanted in (("scatter", PathCollection), ("pie", Wedge), ("bar", Rectangle)):
        if rest and all(isinstance(artist, wanted) for artist in rest):
            return kind, rest
    return "unknown", artists


def is_reference(artist):
    """A line across or upright between two points: axhline() and its like, and not data."""
    if not isinstance(artist, Line2D):
        return False
    x, y = list(artist.get_xdata()), list(artist.get_ydata())
    return len(x) == len(y) == 2 and bool(x[0] == x[1] or y[0] == y[1])


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
    return (found[1] or found[2]) if found else None


def add_labels(chart, axes, swapped=False):
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    if swapped:
        x, y = y, x
    chart.update(x_label=x, y_label=y, x_unit=unit_of(x), y_unit=unit_of(y))
    return chart


def is_dates(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    known = (dates.DateConverter, dates.ConciseDateConverter, getattr(dates, "_SwitchableDateConverter", ()))
    # pandas counts periods in units of their own, which are no days.
    return isinstance(converter, known) and type(converter).__name__ != "PeriodConverter"


def is_number(text):
    try:
        float(text.replace("\u2212", "-"))
        return True
    except ValueError:
        return False


def scale_of(axis, ticks, labels):
    """Categories are counted from 0, and have names that are not their numbers."""
    if is_dates(axis):
        return "datetime"
    scale = axis.get_scale()
    if scale == "linear" and ticks and all(tick == index and label != str(index)
                                           for index, (tick, label) in enumerate(zip(ticks, labels))):
        return "categorical"
    return scale


def plain_list(values):
    return values.tolist() if hasattr(values, "tolist") else list(values)


def coordinate(value):
    """As the cell gave it: words stay words, and moments are ISO text with a zone only if they have one."""
    if isinstance(value, str):
        return value
    if core.part("values").is_missing(value):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":
        return str(value.astype("datetime64[s]"))
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def rounded(number):
    """To eight places, and as many fewer as there are before the point."""
    number = number if isinstance(number, Decimal) else Decimal(str(float(number)))
    return float(Context(prec=max(1, 8 - number.adjusted())).plus(number))


def add_axis(chart, name, axis):
    ticks = [float(tick) for tick in axis.get_ticklocs()]
    labels = [label.get_text() for label in axis.get_ticklabels()]
    chart[name + "_ticks"] = [dates.num2date(tick).isoformat() for tick in ticks] if is_dates(axis) else ticks
    chart[name + "_tick_labels"] = labels
    chart[name + "_scale"] = scale_of(axis, ticks, labels)


def label_of(artist, own, word):
    """A label that matplotlib made up has a number in it."""
    label = str(artist.get_label())
    found = re.match(own + r"(\d+)$", label)
    return "%s %d" % (word, int(found[1])) if found else label


# --- each kind's elements


def fill_points(chart, axes, elements):
    add_labels(chart, axes)
    add_axis(chart, "x", axes.xaxis)
    add_axis(chart, "y", axes.yaxis)
    chart["elements"] = [{"label": label, "points": [[coordinate(x), coordinate(y)] for x, y in points]}
                         for label, points in elements]
    return chart


def fill_lines(chart, axes, artists):
    return fill_points(chart, axes, [
        (label_of(line, "_child", "Line"), zip(line.get_xdata(), line.get_ydata()))
        for line in artists if not is_reference(line)])


def fill_scatter(chart, axes, artists):
    return fill_points(chart, axes, [(str(some.get_label()), some.get_offsets()) for some in artists])


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
    add_labels(chart, axes, swapped=horizontal)
    chart["elements"] = []
    for index, group in enumerate(groups):
        label = label_of(group, "_container", "Group") if hasattr(group, "get_label") else "Group %d" % index
        middles = [float(bar.get_y() + bar.get_height() / 2 if horizontal else bar.get_x() + bar.get_width() / 2)
                   for bar in group]
        for name, bar in zip(names_of(axis, middles), group):
            chart["elements"].append({
                "label": name, "group": label, "value": float(bar.get_width() if horizontal else bar.get_height())})
    return chart


def names_of(axis, middles):
    """What is written at the axis for each of these places. As many as there are words in view have one each:
    the bars of a group stand beside their words."""
    low, high = sorted(axis.get_view_interval())
    names = [(float(tick), label.get_text()) for tick, label in zip(axis.get_ticklocs(), axis.get_ticklabels())]
    shown = sorted((tick, name) for tick, name in names if name and low <= tick <= high)
    order = sorted(range(len(middles)), key=middles.__getitem__)
    if len(shown) == len(middles) and stand_beside([tick for tick, _ in shown], sorted(middles)):
        paired = {place: name for place, (_, name) in zip(order, shown)}
        return [paired[place] for place in range(len(middles))]
    return [name_of(dict(names), axis, middle) for middle in middles]


def stand_beside(ticks, middles):
    most = min((after - before for before, after in zip(ticks, ticks[1:])), default=1) / 2
    return all(abs(tick - middle) < most for tick, middle in zip(ticks, middles))


def name_of(names, axis, middle):
    for tick, name in names.items():
        if name and abs(tick - middle) < 0.5 and not is_number(name):
            return name
    if is_dates(axis):
        return dates.num2date(middle).isoformat()
    return names.get(middle) or ("%g" % middle)


def fill_pie(chart, axes, artists):
    chart["elements"] = [{"label": wedge.get_label(),
                          "angle": abs(rounded(Decimal(float(wedge.theta2)) - Decimal(float(wedge.theta1)))),
                          "radius": float(wedge.r)} for wedge in artists]
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
    names = names_of(axis, [(y0 + y1 if horizontal else x0 + x1) / 2 for x0, x1, y0, y1 in spans])
    add_labels(chart, axes, swapped=horizontal)
    chart["elements"] = [box_of(span, lines, name, horizontal) for span, name in zip(spans, names)]
    return chart


def span_of(box):
    if isinstance(box, PathPatch):
        extent = box.get_path().get_extents()
        return float(extent.x0), float(extent.x1), float(extent.y0), float(extent.y1)
    x, y = plain_list(box.get_xdata()), plain_list(box.get_ydata())
    return min(x), max(x), min(y), max(y)


def box_of(span, lines, name, horizontal):
    x0, x1, y0, y1 = span
    (across0, across1), (low, high) = ((y0, y1), (x0, x1)) if horizontal else ((x0, x1), (y0, y1))
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
    return {"label": name, "min": rounded(min(ends)), "first_quartile": rounded(low),
            "median": None if median is None else rounded(median), "third_quartile": rounded(high),
            "max": rounded(max(ends)), "outliers": [rounded(value) for value in outliers]}


def fill_unknown(chart, axes, artists):
    chart["elements"] = []
    return chart


FILLERS = {"line": fill_lines, "scatter": fill_scatter, "bar": fill_bars, "pie": fill_pie,
           "box_and_whisker": fill_boxes, "unknown": fill_unknown}
