"""How values look: text as IPython prints it, and the richer forms that objects offer about themselves."""
import binascii

core = core  # given by the driver

# Where each MIME type goes in a result event.
KEYS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}
METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
}
WIDTH = 79
BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), dict: ("{", "}"), set: ("{", "}"),
            frozenset: ("frozenset({", "})")}


# --- text


def pretty(value, column=0, depth=0, inside=()):
    """flat(), but containers that do not fit a line have an item on each."""
    text = flat(value)
    brackets = BRACKETS.get(type(value))
    if brackets is None or not value or column + len(text) <= WIDTH or depth > 20 or id(value) in inside:
        return text
    column += len(brackets[0])
    inside = inside + (id(value),)
    items = []
    if type(value) is dict:
        for key, item in value.items():
            start = flat(key) + ": "
            items.append(start + pretty(item, column + len(start), depth + 1, inside))
    else:
        items = [pretty(item, column, depth + 1, inside) for item in ordered(value)]
    return enclosed(value, items, ",\n" + " " * column)


def flat(value, inside=()):
    """repr(), with sets in order, also those in other containers."""
    text = repr(value)
    if type(value) not in BRACKETS or "{" not in text or not value or id(value) in inside or len(inside) > 20:
        return text
    inside = inside + (id(value),)
    if type(value) is dict:
        items = [flat(key, inside) + ": " + flat(item, inside) for key, item in value.items()]
    else:
        items = [flat(item, inside) for item in ordered(value)]
    return enclosed(value, items, ", ")


def enclosed(value, items, separator):
    opening, closing = BRACKETS[type(value)]
    if type(value) is tuple and len(items) == 1:
        closing = ",)"
    return opening + separator.join(items) + closing


def ordered(value):
    if isinstance(value, (set, frozenset)):
        for key in (None, str):
            try:
                return sorted(value, key=key)
            except Exception:
                pass  # of several kinds, or without a text
    return value


def text_of(value):
    try:
        if type(value) in BRACKETS:
            return pretty(value)
        if isinstance(value, type):
            module = getattr(value, "__module__", None)
            name = getattr(value, "__qualname__", value.__name__)
            return name if module in ("builtins", None) else module + "." + name
        if callable(value) and type(value).__name__ == "function":
            return "<function %s>" % signature_of(value)
        return repr(value)
    except Exception as error:
        return "<%s whose repr() failed: %s>" % (type(value).__name__, type(error).__name__)


def signature_of(function):
    import inspect
    try:
        signature = str(inspect.signature(function))
    except (TypeError, ValueError):
        signature = "(...)"
    return "%s.%s%s" % (function.__module__, function.__qualname__, signature)


def without_quotes(text):
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


# --- the richer forms


def bundle_of(value):
    """MIME type to content; None for an object that has shown itself."""
    if isinstance(value, type):
        return {"text/plain": text_of(value)}
    kind = type(value)
    own = getattr(kind, "_ipython_display_", None)
    if own is not None:
        try:
            own(value)
            return None
        except Exception:
            pass  # it cannot; the ordinary forms then
    bundle = {"text/plain": text_of(value)}
    for mime, method in METHODS.items():
        offered = call(kind, value, method)
        if offered is not None:
            bundle[mime] = offered[0] if isinstance(offered, tuple) else offered
    whole = call(kind, value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(whole, tuple):
        whole = whole[0]
    if isinstance(whole, dict):
        bundle.update(whole)
    add_ours(value, kind, bundle)
    return bundle


def call(kind, value, method, **arguments):
    function = getattr(kind, method, None)
    if not callable(function):
        return None
    try:
        return function(value, **arguments)
    except Exception:
        return None  # an object that cannot show itself this way has others


def add_ours(value, kind, bundle):
    if isinstance(value, (list, dict)):
        bundle["application/json"] = value
    module = getattr(kind, "__module__", "") or ""
    if module.split(".")[0] == "pandas" and kind.__name__ == "DataFrame":
        try:
            bundle["e2b/data"] = {
                column: [plain(item) for item in value[column].tolist()] for column in value.columns}
        except Exception:
            pass  # several columns of one name, for instance
    if module.startswith("matplotlib.") and hasattr(value, "savefig"):
        bundle.update(core.part("figures").bundle_of(value))


def plain(item):
    return item.isoformat() if hasattr(item, "isoformat") else item


# --- JSON


def json_of(value):
    """JSON text, or None for what has none. NaN and infinity become null, as browsers do it."""
    import json
    try:
        return json.dumps(value, default=simpler, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return json.dumps(clean(value, 0), default=simpler, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def simpler(value):
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numpy
        return clean(value.tolist(), 0)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    import dataclasses
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if type(value).__module__ in ("uuid", "decimal", "pathlib", "ipaddress", "fractions"):
        return str(value)
    if type(value).__module__ == "enum" or hasattr(value, "_value_"):
        return value._value_
    raise TypeError("%s has no JSON" % type(value).__name__)


def clean(value, depth):
    if depth > 200:
        raise ValueError("too deep, or contains itself")
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key_text(key): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item, depth + 1) for item in value]
    return value


def key_text(key):
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    if isinstance(key, bool):  # before numbers: 1 == True
        return "true" if key else "false"
    return key.isoformat() if hasattr(key, "isoformat") else str(key)


# --- events


def encoded(mime, content):
    """A value of the event, as JSON text."""
    if isinstance(content, (bytes, bytearray)):
        content = binascii.b2a_base64(content, newline=False).decode("ascii")
    if isinstance(content, str):
        if mime == "text/plain":
            content = without_quotes(content)
        elif mime in ("image/png", "image/jpeg", "application/pdf"):
            content = content.strip()
        if mime != "application/json":
            return core.quote(content)
        try:
            import json
            return json.dumps(json.loads(content))
        except ValueError:
            return core.quote(content)
    return json_of(content)


def event_of_bundle(bundle, is_main):
    fields = ['"type":"result"']
    extra = []
    for mime, content in bundle.items():
        text = None if content is None else encoded(mime, content)
        if text is None:
            continue
        key = KEYS.get(mime)
        if key:
            fields.append('"%s":%s' % (key, text))
        else:
            extra.append("%s:%s" % (core.quote(str(mime)), text))
    fields.append('"is_main_result":%s' % ("true" if is_main else "false"))
    fields.append('"extra":{%s}' % ",".join(extra))
    return "{%s}" % ",".join(fields)


def event_of(value, is_main):
    bundle = bundle_of(value)
    return None if bundle is None else event_of_bundle(bundle, is_main)


class Handle:
    """What display(..., display_id=...) gives back. An update is shown as another result."""

    def __init__(self, display_id):
        self.display_id = display_id

    def display(self, value, **options):
        display(value, **options)

    update = display


def display(*values, include=None, exclude=None, raw=False, display_id=None, **options):
    for value in values:
        event = event_of_bundle(value, False) if raw else event_of(value, False)
        if event:
            core.send_event(event)
    if display_id is not None:
        return Handle(str(display_id) if display_id is not True else "%x" % id(values))
    return None
