"""What variables there are, and what they are: %who, %whos, %reset, and questions like `name?`."""
import re

core = core  # given by the driver
history = core.part("history")

COUNTED = ("dict", "list", "tuple", "set", "frozenset")


def variables(line=""):
    """Of the given types, or of any."""
    wanted = line.split()
    return sorted(name for name, value in core.namespace.items()
                  if not history.is_hidden(name) and (not wanted or type(value).__name__ in wanted))


def who(line):
    found = variables(line)
    if not found:
        return print("Interactive namespace is empty." if not line else "No variables match your requested type.")
    return print("\t ".join(found) + "\t ")


def who_ls(line):
    return variables(line)


def about(value):
    kind = type(value).__name__
    if kind in COUNTED:
        return "n=%d" % len(value)
    if kind == "ndarray":
        size = "x".join(map(str, value.shape))
        return "%s: %d elems, type `%s`, %d bytes" % (size, value.size, value.dtype, value.nbytes)
    try:
        text = str(value).replace("\n", "\\n")
    except Exception:
        return "<its text could not be made>"
    return text if len(text) < 50 else text[:25] + "<...>" + text[-25:]


def whos(line):
    found = variables(line)
    if not found:
        return print("Interactive namespace is empty.")
    rows = [(name, type(core.namespace[name]).__name__, about(core.namespace[name])) for name in found]
    widths = [max(len(row[at]) for row in rows + [("Variable", "Type")]) for at in (0, 1)]
    head = "%-*s   %-*s   Data/Info" % (widths[0], "Variable", widths[1], "Type")
    print(head + "\n" + "-" * len(head))
    for name, kind, text in rows:
        print("%-*s   %-*s   %s" % (widths[0], name, widths[1], kind, text))
    return None


def reset(line):
    for name in variables():
        del core.namespace[name]
    for name in [name for name in core.namespace if re.fullmatch(r"_\d+", name)]:
        del core.namespace[name]
    history.outputs.clear()


def reset_selective(line):
    pattern = line.split()[-1] if line.split() else "$^"
    for name in variables():
        if re.search(pattern, name):
            del core.namespace[name]


# --- questions


def pinfo(name, with_source=False):
    import inspect
    bare = name.strip().lstrip("%")
    try:
        value = core.part("magics").LINE_MAGICS[bare] if name.strip().startswith("%") else eval(bare, core.namespace)
    except Exception:
        return print("Object `%s` not found." % name)
    lines = []
    try:
        lines.append("Signature: %s%s" % (bare, inspect.signature(value)))
    except (TypeError, ValueError):
        pass
    lines.append("Type:      %s" % type(value).__name__)
    if not callable(value):
        lines.append("String form: %s" % about(value))
    if with_source:
        try:
            return print("\n".join(lines + ["Source:", inspect.getsource(value)]))
        except (OSError, TypeError):
            pass  # it was not written in Python
    return print("\n".join(lines + ["Docstring: %s" % inspect.getdoc(value)]))


def pinfo2(name):
    return pinfo(name, with_source=True)
