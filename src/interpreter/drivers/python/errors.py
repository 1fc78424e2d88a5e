"""An exception as an event: name, value, and a traceback that shows the cell and not the kernel."""
import linecache
import traceback

core = core  # given by the driver

AROUND = 2  # lines shown before and after the one that matters
MOST_FRAMES = 16  # of each exception: a recursion that went too deep has a thousand


def frames_of(error):
    frames = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not code.co_filename.startswith("<hearth "):
            frames.append((code.co_filename, line, code.co_name))
    if len(frames) > MOST_FRAMES:
        half = MOST_FRAMES // 2
        frames = frames[:half] + [None] + frames[-half:]
    return frames


def lines_around(filename, number):
    lines = []
    for at in range(max(1, number - AROUND), number + AROUND + 1):
        text = linecache.getline(filename, at)
        if text:
            mark = "----> " if at == number else "      "
            lines.append("%s%d %s" % (mark, at, text.rstrip("\n")))
    return lines


def describe_frame(frame):
    if frame is None:
        return ["    [... more frames ...]", ""]
    filename, number, function = frame
    where = "" if function == "<module>" else ", in %s" % function
    if filename.startswith("Cell In["):
        head = "%s, line %d%s" % (filename, number, where)
    else:
        head = "File %s:%d%s" % (filename, number, where)
    return [head] + lines_around(filename, number) + [""]


def describe(error, seen):
    seen.add(id(error))
    lines = []
    cause, context = error.__cause__, error.__context__
    if cause is not None and id(cause) not in seen:
        lines += describe(cause, seen)
        lines += ["", "The above exception was the direct cause of the following exception:", ""]
    elif context is not None and not error.__suppress_context__ and id(context) not in seen:
        lines += describe(context, seen)
        lines += ["", "During handling of the above exception, another exception occurred:", ""]
    name = type(error).__name__
    only = "".join(traceback.format_exception_only(type(error), error)).rstrip("\n")
    if isinstance(error, SyntaxError):
        shown = [frame for frame in frames_of(error)]
        for frame in shown:
            lines += describe_frame(frame)
        return lines + [only.replace('File "Cell In[', "Cell In[").replace(']", line', "], line")]
    lines += ["-" * 75, name + "Traceback (most recent call last)".rjust(75 - len(name))]
    for frame in frames_of(error):
        lines += describe_frame(frame)
    return lines + [only]


def safe_text(error):
    try:
        return str(error)
    except Exception:
        return "<its text could not be made>"


def text_of(error):
    """The traceback, or what a handler of the cell's own makes of it."""
    shell = core.State.watchers and core.State.watchers.shell
    if shell and shell.CustomTB is not None and isinstance(error, shell.custom_exceptions):
        lines = shell.CustomTB(shell, type(error), error, error.__traceback__, tb_offset=None)
        if lines is not None:
            return lines if isinstance(lines, str) else "\n".join(lines)
    return "\n".join(describe(error, set()))


def event_of(error):
    try:
        text = text_of(error)
    except Exception:
        text = "%s: %s" % (type(error).__name__, safe_text(error))
    return '{"type":"error","name":%s,"value":%s,"traceback":%s}' % (
        core.quote(type(error).__name__), core.quote(safe_text(error)), core.quote(text))
