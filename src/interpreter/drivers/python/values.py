"""Values as JSON, and rich results as events."""
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


def is_missing(value):
    """pandas' NA and NaT, and what numpy has for them."""
    kind = type(value).__name__
    return kind in ("NAType", "NaTType", "MaskedConstant") or kind == "datetime64" and str(value) == "NaT"


def column_of(series):
    """A table's column as a list that has JSON: what has none is text."""
    items = series.tolist()
    if series.dtype.kind in "biuf":
        return items
    return [each if type(each) in (str, int, float, bool) else simple_or_text(each) for each in items]


def simple_or_text(value):
    if is_missing(value):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value) if json_of(value) is None else value


def simpler(value):
    if is_missing(value):
        return None
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


def without_quotes(text):
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


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
