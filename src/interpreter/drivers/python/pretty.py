"""The text of values, as IPython has it: like repr(), but what does not fit a line is broken where objects allow it.

An object may say itself how it looks: `_repr_pretty_(self, p, cycle)`, where `p` is a Printer. Groups are broken from
the outside, and only when the line is full: so a Printer keeps what it was told since the last break that was made.
"""
import collections
import types

core = core  # given by the driver

WIDTH = 79
# Their text has no places to break at: nothing is kept about them, because long lists are made of them.
PLAIN = (int, float, str, bytes, bool, complex, type(None))


class Group:
    def __init__(self, depth):
        self.depth = depth
        self.waiting = 0  # places where it may be broken, of those that are kept
        self.is_broken = False


class Place:
    """Where a line may end."""

    def __init__(self, group, separator, indentation):
        self.group, self.separator, self.indentation = group, separator, indentation


class Printer:
    def __init__(self, width=WIDTH, formatter=None):
        self.max_width = width
        self.max_seq_length = 0
        self.verbose = False
        self.newline = "\n"
        self.formatter = formatter  # whose printers of types come first
        self.indentation = 0
        self.stack = []  # ids of the objects that are inside each other now
        self.groups = [Group(0)]
        self.opened = [self.groups[0]]  # those that have an end to come, or places that wait
        self.done = []
        self.column = 0
        own = getattr(formatter, "type_printers", ())
        self.plain = {kind for kind in PLAIN if kind not in own and PRINTERS.get(kind, by_repr) is by_repr}
        self.kept = collections.deque()
        self.kept_width = 0

    # --- what objects say

    def text(self, text):
        if not self.kept:
            self.done.append(text)
            self.column += len(text)
            return
        self.kept.append(text)
        self.kept_width += len(text)
        self.fit()

    def breakable(self, separator=" "):
        group = self.groups[-1]
        if group.is_broken:
            return self.new_line()
        group.waiting += 1
        self.kept.append(Place(group, separator, self.indentation))
        self.kept_width += len(separator)
        self.fit()

    def break_(self):
        self.break_outermost()
        self.new_line()

    def new_line(self):
        self.release()
        self.done.append(self.newline + " " * self.indentation)
        self.column = self.indentation

    def begin_group(self, indent=0, open=""):
        if open:
            self.text(open)
        group = Group(self.groups[-1].depth + 1)
        self.groups.append(group)
        self.opened.append(group)
        self.indentation += indent

    def end_group(self, dedent=0, close=""):
        self.indentation -= dedent
        group = self.groups.pop()
        if not group.waiting:
            self.opened.remove(group)
        if close:
            self.text(close)

    def group(self, indent=0, open="", close=""):
        return Entered(lambda: self.begin_group(indent, open), lambda: self.end_group(indent, close))

    def indent(self, indent):
        def change(by):
            self.indentation += by
        return Entered(lambda: change(indent), lambda: change(-indent))

    def pretty(self, value):
        if type(value) in self.plain:
            return self.text(repr(value))
        cycle = id(value) in self.stack
        self.stack.append(id(value))
        self.begin_group()
        try:
            printer_of(value, self.formatter)(value, self, cycle)
        finally:
            self.end_group()
            self.stack.pop()

    # --- lines

    def fit(self):
        """Breaks groups until what is kept fits the line."""
        while self.column + self.kept_width > self.max_width and self.break_outermost():
            pass

    def break_outermost(self):
        """Of those that wait for it. The ones around it are broken from now on."""
        group = min((each for each in self.opened if each.waiting), key=lambda each: each.depth, default=None)
        for each in self.opened:
            if group is None or each.depth < group.depth:
                each.is_broken = True
        if group is None:
            return False
        group.is_broken = True
        while group.waiting:
            self.release_one()
        while self.kept and isinstance(self.kept[0], str):
            self.release_one()
        return True

    def release_one(self):
        item = self.kept.popleft()
        if isinstance(item, str):
            self.done.append(item)
            self.column += len(item)
            self.kept_width -= len(item)
            return
        item.group.waiting -= 1
        if not item.group.waiting and item.group not in self.groups:
            self.opened.remove(item.group)
        self.kept_width -= len(item.separator)
        if item.group.is_broken:
            self.done.append(self.newline + " " * item.indentation)
            self.column = item.indentation
        else:
            self.done.append(item.separator)
            self.column += len(item.separator)

    def release(self):
        while self.kept:
            self.release_one()

    flush = release

    def result(self):
        self.release()
        return "".join(self.done)


class Entered:
    def __init__(self, enter, leave):
        self.enter, self.leave = enter, leave

    def __enter__(self):
        self.enter()

    def __exit__(self, *error):
        self.leave()


def pretty(value, width=WIDTH, formatter=None):
    printer = Printer(width, formatter)
    printer.pretty(value)
    return printer.result()


# --- whose text it is


def printer_of(value, formatter=None):
    """The nearest class that says something: a printer for the class, `_repr_pretty_`, or `__repr__`."""
    if any(value is each for each in (None, True, False, Ellipsis, NotImplemented)):
        return by_repr
    for cls in type(value).__mro__:
        printer = registered(cls, formatter)
        if printer is not None:
            return printer
        own = cls.__dict__.get("_repr_pretty_")
        if callable(own):
            return own
        if cls is not object and callable(cls.__dict__.get("__repr__")):
            return by_repr
    return by_name


def registered(cls, formatter):
    if formatter is not None:
        found = formatter.printer_of_class(cls)
        if found is not None:
            return found
    return PRINTERS.get(cls) or PRINTERS_BY_NAME.get((cls.__module__, cls.__name__))


def by_repr(value, printer, cycle):
    lines = repr(value).split("\n")
    with printer.group():
        for at, line in enumerate(lines):
            if at:
                printer.break_()
            printer.text(line)


def by_name(value, printer, cycle):
    kind = type(value)
    if kind.__repr__ is not object.__repr__:
        return by_repr(value, printer, cycle)
    with printer.group(1, "<", ">"):
        printer.pretty(kind)
        printer.text(" at 0x%x%s" % (id(value), " ..." if cycle else ""))


# --- containers


def items_between(opening, closing, order=lambda value: value):
    def show(value, printer, cycle):
        if cycle:
            return printer.text(opening + "..." + closing)
        with printer.group(len(opening), opening, closing):
            for at, item in enumerate(order(value)):
                if at:
                    printer.text(",")
                    printer.breakable()
                printer.pretty(item)
            if len(value) == 1 and isinstance(value, tuple):
                printer.text(",")
    return show


def ordered(values):
    for key in (None, str):
        try:
            return sorted(values, key=key)
        except Exception:
            pass  # of several kinds, or without a text
    return values


def set_of(opening, closing):
    some = items_between(opening, closing, ordered)

    def show(value, printer, cycle):
        if value or cycle:
            return some(value, printer, cycle)
        return printer.text(type(value).__name__ + "()")
    return show


def pairs(value, printer, cycle):
    if cycle:
        return printer.text("{...}")
    with printer.group(1, "{", "}"):
        for at, key in enumerate(value):
            if at:
                printer.text(",")
                printer.breakable()
            printer.pretty(key)
            printer.text(": ")
            printer.pretty(value[key])


def called(name, *arguments, **named):
    """As a call would be written: the name, and what is in the brackets."""
    return Call(name, arguments, named)


class Call:
    def __init__(self, name, arguments, named):
        self.name, self.arguments, self.named = name, arguments, named

    def _repr_pretty_(self, printer, cycle):
        is_first = True
        opening = self.name + "("
        with printer.group(len(opening), opening, ")"):
            for name, value in [("", value) for value in self.arguments] + list(self.named.items()):
                if not is_first:
                    printer.text(",")
                    printer.breakable()
                is_first = False
                if not name:
                    printer.pretty(value)
                    continue
                with printer.group(len(name) + 1, name + "="):
                    printer.pretty(value)


class Raw:
    def __init__(self, text):
        self.text = text

    def _repr_pretty_(self, printer, cycle):
        printer.text(self.text)


def call_with(contents):
    """For classes that are shown as their constructor's call; `contents` gives what was handed to it."""
    def show(value, printer, cycle):
        arguments = (Raw("..."),) if cycle else contents(value)
        printer.pretty(called(type(value).__name__, *arguments))
    return show


def show_deque(value, printer, cycle):
    named = {} if value.maxlen is None or cycle else {"maxlen": value.maxlen}
    printer.pretty(called(type(value).__name__, Raw("...") if cycle else list(value), **named))


def show_namespace(value, printer, cycle):
    name = "namespace" if type(value) is types.SimpleNamespace else type(value).__name__
    printer.pretty(called(name, Raw("...")) if cycle else called(name, **value.__dict__))


def show_proxy(value, printer, cycle):
    with printer.group(len("mappingproxy("), "mappingproxy(", ")"):
        pairs(value, printer, cycle)


def show_environment(value, printer, cycle):
    with printer.group(len("environ"), "environ"):
        pairs(value, printer, cycle)


# --- the rest


def full_name(value):
    name = getattr(value, "__qualname__", None)
    if not isinstance(name, str):
        name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        name = "<unknown type>"
    module = getattr(value, "__module__", None)
    return name if module in (None, "builtins") else "%s.%s" % (module, name)


def show_class(value, printer, cycle):
    if type(value).__repr__ is not type.__repr__:
        return by_repr(value, printer, cycle)
    return printer.text(full_name(value))


def show_function(value, printer, cycle):
    import inspect
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        signature = ""
    printer.text("<function %s%s>" % (full_name(value), signature))


def show_error(value, printer, cycle):
    arguments = (Raw("..."),) if cycle else getattr(value, "args", ())
    printer.pretty(called(full_name(type(value)), *arguments))


def show_pattern(value, printer, cycle):
    import re
    written = repr(value.pattern)
    at = written.startswith("b")
    raw = written[:at] + "r" + written[at:].replace("\\\\", "\\")
    names = [] if at else ["re." + name for name in sorted(re.RegexFlag.__members__) if len(name) > 1 and
                           name not in ("TEMPLATE", "NOFLAG") and value.flags & re.RegexFlag[name]]
    flags = [Raw("|".join(names))] if names else []
    printer.pretty(called("re.compile", Raw(raw), *flags))


def show_super(value, printer, cycle):
    with printer.group(8, "<super: ", ">"):
        printer.pretty(value.__thisclass__)
        printer.text(",")
        printer.breakable()
        printer.pretty(value.__self__)


PRINTERS = {
    int: by_repr, float: by_repr, str: by_repr, complex: by_repr, bytes: by_repr, range: by_repr,
    tuple: items_between("(", ")"), list: items_between("[", "]"), dict: pairs,
    set: set_of("{", "}"), frozenset: set_of("frozenset({", "})"),
    super: show_super, type: show_class, BaseException: show_error,
    types.FunctionType: show_function, types.BuiltinFunctionType: show_function, types.MethodType: by_repr,
    types.MappingProxyType: show_proxy, types.SimpleNamespace: show_namespace,
    collections.OrderedDict: call_with(lambda value: (list(value.items()),) if value else ()),
    collections.defaultdict: call_with(lambda value: (value.default_factory, dict(value))),
    collections.Counter: call_with(lambda value: (dict(value.most_common()),) if value else ()),
    collections.deque: show_deque,
    collections.UserList: call_with(lambda value: (value.data,)),
    collections.UserDict: lambda value, printer, cycle: printer.pretty(value.data),
}
PRINTERS_BY_NAME = {("os", "_Environ"): show_environment, ("re", "Pattern"): show_pattern}
