"""What cells were and gave: In, Out, _, __, ___, _i and their relatives, as variables of the cells."""
import builtins

core = core  # given by the driver

MOST_KEPT = 1000  # values in Out: the oldest fifth goes when there are more

inputs = [""]
outputs = {}
shown = [None, None, None]  # what _, __ and ___ were set to
namespace = core.namespace
namespace.update(In=inputs, _ih=inputs, Out=outputs, _oh=outputs, _dh=[], _i="", _ii="", _iii="")


def is_hidden(name):
    """Not a variable of the user's own."""
    return name.startswith("_") or namespace.get(name) is outputs and name == "Out" \
        or namespace.get(name) is inputs and name == "In"


def remember_input(code, count):
    while len(inputs) <= count:
        inputs.append("")
    inputs[count] = code
    namespace["_iii"], namespace["_ii"], namespace["_i"] = namespace.get("_ii"), namespace.get("_i"), inputs[count - 1]
    namespace["_i%d" % count] = code


def remember_value(value):
    """Who has a _ of his own keeps it, also one for translations."""
    if value is outputs:
        return
    is_ours = all(namespace.get(name, last) is last for name, last in zip(("_", "__", "___"), shown))
    shown[:] = [value] + shown[:2]
    if is_ours and not hasattr(builtins, "_"):
        namespace["_"], namespace["__"], namespace["___"] = shown
    count = core.State.count
    outputs[count] = namespace["_%d" % count] = value
    if len(outputs) > MOST_KEPT:
        for old in list(outputs)[:MOST_KEPT // 5]:
            del outputs[old]
            namespace.pop("_%d" % old, None)
