"""An exception as an event: name, value, and a traceback in IPython's form that shows the cell and not the kernel."""
import linecache
import os
import traceback

core = core  # given by the driver

BEFORE, AFTER = 4, 3  # lines shown around the one that matters, of the same function
MOST_FRAMES = 16  # of each exception: a recursion that went too deep has a thousand
MOST_INSIDE = 10  # exceptions of a group
RULE = "-" * 75


# --- frames


class Place:
    """Where one frame of a traceback is."""

    def __init__(self, frame, line):
        code = frame.f_code
        self.file, self.line, self.first, self.name = code.co_filename, line, code.co_firstlineno, code.co_name
        self.call = "" if self.name == "<module>" else "%s(%s)" % (
            getattr(code, "co_qualname", self.name), ", ".join(arguments_of(code)))

    def head(self):
        if self.file.startswith("Cell In["):
            return "%s, line %d" % (self.file, self.line) + (self.call and ", in " + self.call)
        home = os.path.expanduser("~")
        path = "~" + self.file[len(home):] if self.file.startswith(home + "/") else self.file
        return "File %s:%d" % (path, self.line) + (self.call and ", in " + self.call)

    def lines(self):
        low, high = self.scope()
        numbers = range(max(low, self.line - BEFORE), min(high, self.line + AFTER) + 1)
        shown = [(number, linecache.getline(self.file, number).rstrip()) for number in numbers]
        while shown and not shown[-1][1]:
            shown.pop()
        margin = 0
        if not self.file.startswith("Cell In["):
            margin = min((len(text) - len(text.lstrip()) for _, text in shown if text), default=0)
        return ["%s %s" % (mark(number, number == self.line), text[margin:]) for number, text in shown]

    def scope(self):
        """First and last line of the function; those of a module have no end."""
        if self.name == "<module>":
            return 1, self.line + AFTER
        if self.name.startswith("<"):
            return self.line, self.line
        import inspect
        lines = linecache.getlines(self.file)[self.first - 1:]
        try:
            return self.first, self.first + len(inspect.getblock(lines)) - 1
        except Exception:
            return self.first, self.line  # the file is not what it was


def arguments_of(code):
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[:count])
    for flag, stars in ((0x04, "*"), (0x08, "**")):  # CO_VARARGS, CO_VARKEYWORDS
        if code.co_flags & flag:
            names.append(stars + code.co_varnames[count])
            count += 1
    return names


def mark(number, is_meant):
    digits = str(number)
    return "-" * (5 - len(digits)) + "> " + digits if is_meant else digits.rjust(7)


def places_of(error):
    places = [Place(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)
              if not frame.f_code.co_filename.startswith("<hearth ")]
    if len(places) > MOST_FRAMES:
        half = MOST_FRAMES // 2
        places = places[:half] + [None] + places[-half:]
    return places


def describe_place(place):
    if place is None:
        return ["    [... more frames ...]", ""]
    return [place.head()] + place.lines() + [""]


# --- exceptions


def describe(error, seen):
    """With those that led to it, the first one first."""
    seen.add(id(error))
    lines = []
    cause, context = error.__cause__, error.__context__
    if cause is not None and id(cause) not in seen:
        lines = describe(cause, seen) + ["", "The above exception was the direct cause of the following exception:", ""]
    elif context is not None and not error.__suppress_context__ and id(context) not in seen:
        lines = describe(context, seen)
        lines += ["", "During handling of the above exception, another exception occurred:", ""]
    if isinstance(error, SyntaxError):
        return lines + describe_syntax(error)
    name = type(error).__name__
    lines += [] if lines else [RULE]
    lines.append(name + "Traceback (most recent call last)".rjust(75 - len(name)))
    for place in places_of(error):
        lines += describe_place(place)
    return lines + last_lines(error) + describe_members(error, seen)


def last_lines(error):
    notes = getattr(error, "__notes__", ())
    return ["%s: %s" % (type(error).__name__, safe_text(error))] + [str(note) for note in notes]


def describe_members(error, seen):
    members = getattr(error, "exceptions", None)
    if not isinstance(members, tuple) or not hasattr(error, "split"):
        return []
    lines = []
    for number, member in enumerate(members[:MOST_INSIDE], 1):
        lines += ["", "  +---------------- %d ----------------" % number]
        if id(member) not in seen:
            lines += ["  | " + line for line in "\n".join(describe(member, seen)).split("\n")]
    return lines


def describe_syntax(error):
    """The place in the text; before it how Python got there, where that is not the cell itself."""
    places = places_of(error)
    lines = ["Traceback (most recent call last):", ""] if places else []
    for place in places:
        if place is not None:
            lines += ["  " + place.head(), "    " + linecache.getline(place.file, place.line).strip(), ""]
    file, number = error.filename, error.lineno
    if number is not None:
        is_cell = str(file).startswith("Cell In[")
        lines.append("  %s, line %d" % (file, number) if is_cell else "  File %s:%d" % (file, number))
        text = error.text or linecache.getline(str(file), number)
        bare = text.strip()
        if bare:
            at = (error.offset or 1) - 1 - (len(text) - len(text.lstrip()))
            lines += ["    " + bare, "    " + " " * max(0, min(at, len(bare))) + "^"]
    return lines + ["%s: %s" % (type(error).__name__, error.msg), ""]


def safe_text(error):
    try:
        return str(error)
    except Exception:
        return "<its text could not be made>"


# --- the event


def text_of(error):
    """The traceback, or what a handler of the cell's own makes of it."""
    shell = core.State.watchers and core.State.watchers.shell
    if shell and shell.CustomTB is not None and isinstance(error, shell.custom_exceptions):
        lines = shell.CustomTB(shell, type(error), error, error.__traceback__, tb_offset=None)
        if lines is not None:
            return lines if isinstance(lines, str) else "\n".join(lines)
    if isinstance(error, SystemExit):
        return "An exception has occurred, use %%tb to see the full traceback.\n\n%s\n" % last_lines(error)[0]
    return "\n".join(describe(error, set()))


def event_of(error):
    try:
        text = text_of(error)
    except Exception:
        text = "%s: %s" % (type(error).__name__, safe_text(error))
    return '{"type":"error","name":%s,"value":%s,"traceback":%s}' % (
        core.quote(type(error).__name__), core.quote(safe_text(error)), core.quote(text))
