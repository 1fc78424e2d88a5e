"""How values look: text as IPython prints it, and the richer forms that objects offer about themselves or libraries
register for them."""
core = core  # given by the driver
pretty = core.part("pretty")
values = core.part("values")

# No object has it on purpose: who has, has everything.
CANARY = "_ipython_canary_method_should_not_exist_"
# The most frequent ones are not asked for forms that they cannot have.
WITHOUT_METHODS = frozenset((int, float, str, bytes, bool, complex, list, tuple, dict, set, frozenset, type(None)))


class FormatterWarning(UserWarning):
    """A form that is not of the type it ought to be."""


# --- one form


class Formatter:
    """One MIME type: the method that objects may have for it, and functions for classes that have none."""

    enabled = True

    def __init__(self, mime, method, kinds=(str,)):
        self.format_type, self.print_method, self.kinds = mime, method, kinds
        self.type_printers, self.deferred_printers, self.singleton_printers = {}, {}, {}

    def for_type(self, kind, function=None):
        if isinstance(kind, str):
            module, _, name = kind.rpartition(".")
            return self.for_type_by_name(module, name, function)
        before = self.printer_of_class(kind)
        if function is not None:
            self.type_printers[kind] = function
        return before

    def for_type_by_name(self, module, name, function=None):
        before = self.deferred_printers.get((module, name))
        if function is not None:
            self.deferred_printers[module, name] = function
        return before

    def pop(self, kind, default=None):
        if isinstance(kind, str):
            module, _, name = kind.rpartition(".")
            return self.deferred_printers.pop((module, name), default)
        return self.type_printers.pop(kind, default)

    def printer_of_class(self, cls):
        return self.type_printers.get(cls) or self.deferred_printers.get((cls.__module__, cls.__name__))

    def lookup_by_type(self, kind):
        for cls in kind.__mro__:
            printer = self.printer_of_class(cls)
            if printer is not None:
                return printer
        raise KeyError("No registered printer for %r" % kind)

    def lookup(self, value):
        return self.singleton_printers.get(id(value)) or self.lookup_by_type(type(value))

    def function_for(self, value):
        if self.type_printers or self.deferred_printers or self.singleton_printers:
            try:
                return self.lookup(value)
            except KeyError:
                pass  # nobody registered one
        method = method_of(value, self.print_method)
        return None if method is None else lambda _: method()

    def __call__(self, value):
        function = self.function_for(value) if self.enabled else None
        if function is None:
            return None
        form = reported(lambda: function(value))
        content = form[0] if isinstance(form, tuple) and form else form
        if content is not None and self.kinds and not isinstance(content, self.kinds):
            import warnings
            warnings.warn("%s formatter returned invalid type %s (expected %s) for object: %s" % (
                self.format_type, type(content), self.kinds[0], object.__repr__(value)), FormatterWarning, stacklevel=2)
            return None
        return form


class PlainTextFormatter(Formatter):
    pprint = True
    max_width = pretty.WIDTH
    max_seq_length = 0
    newline = "\n"
    verbose = False
    float_format = "%r"

    def __init__(self):
        super().__init__("text/plain", "_repr_pretty_")

    def __call__(self, value):
        if not self.pprint:
            return reported(lambda: repr(value))
        return reported(lambda: pretty.pretty(value, self.max_width, self))

    def set_precision(self, form):
        """How floats look: a number of digits, a format, or nothing for all digits."""
        if form.isdigit():
            form = "%." + form + "f"
        self.float_format = form or "%r"
        self.pop(float)
        if form:
            self.for_type(float, lambda value, printer, cycle: printer.text(form % value))
        return self.float_format


def method_of(value, name):
    if type(value) in WITHOUT_METHODS or isinstance(value, type):
        return None
    try:
        if getattr(value, CANARY, None) is not None:
            return None
        method = getattr(value, name, None)
    except Exception:
        return None
    return method if callable(method) else None


def reported(make):
    """What `make` gives. Where it fails, that is an error of the cell, but not its end: there are other forms."""
    try:
        return make()
    except NotImplementedError:
        return None
    except Exception as error:
        core.send_event(core.part("errors").event_of(error))
        return None


# --- all forms


class DisplayFormatter:
    def __init__(self):
        binary = (bytes, str)
        self.formatters = {each.format_type: each for each in (
            PlainTextFormatter(),
            Formatter("text/html", "_repr_html_"),
            Formatter("text/markdown", "_repr_markdown_"),
            Formatter("image/svg+xml", "_repr_svg_"),
            Formatter("image/png", "_repr_png_", binary),
            Formatter("image/jpeg", "_repr_jpeg_", binary),
            Formatter("application/pdf", "_repr_pdf_", binary),
            Formatter("text/latex", "_repr_latex_"),
            Formatter("application/json", "_repr_json_", (dict, list, str)),
            Formatter("application/javascript", "_repr_javascript_"),
        )}
        self.ipython_display_formatter = Formatter(None, "_ipython_display_", ())
        self.mimebundle_formatter = Formatter(None, "_repr_mimebundle_", ())

    @property
    def active_types(self):
        return [mime for mime, formatter in self.formatters.items() if formatter.enabled]

    @active_types.setter
    def active_types(self, wanted):
        for mime, formatter in self.formatters.items():
            formatter.enabled = mime in wanted

    def format(self, value, include=None, exclude=None):
        """MIME types to contents, and to what is said about these; nothing of a value that has shown itself."""
        if self.has_shown_itself(value):
            return {}, {}
        bundle, about = self.whole(value, include, exclude)
        for mime, formatter in self.formatters.items():
            if mime in bundle or include and mime not in include or exclude and mime in exclude:
                continue
            form = formatter(value)
            if isinstance(form, tuple) and len(form) == 2:
                form, about[mime] = form
            if form is not None:
                bundle[mime] = form
        if include:
            bundle = {mime: form for mime, form in bundle.items() if mime in include}
        return {mime: form for mime, form in bundle.items() if not exclude or mime not in exclude}, about

    def has_shown_itself(self, value):
        function = self.ipython_display_formatter.function_for(value)
        if function is None:
            return False
        shown = []
        reported(lambda: (function(value), shown.append(True)))
        return bool(shown)

    def whole(self, value, include, exclude):
        method = method_of(value, "_repr_mimebundle_")
        whole = reported(lambda: method(include=include, exclude=exclude)) if method else None
        whole, about = whole if isinstance(whole, tuple) and len(whole) == 2 else (whole, {})
        return (dict(whole), dict(about or {})) if isinstance(whole, dict) else ({}, {})


formatter = DisplayFormatter()


def bundle_of(value, include=None, exclude=None):
    """MIME type to content; empty for an object that has shown itself, or cannot."""
    bundle, _ = formatter.format(value, include, exclude)
    if bundle:
        add_ours(value, type(value), bundle)
    return bundle


def add_ours(value, kind, bundle):
    if isinstance(value, (list, dict)):
        bundle["application/json"] = value
    homes = {(getattr(cls, "__module__", None) or "").split(".")[0] for cls in kind.__mro__}
    if "pandas" in homes and any(cls.__name__ == "DataFrame" for cls in kind.__mro__):
        try:
            bundle["e2b/data"] = {column: values.column_of(value[column]) for column in value.columns}
        except Exception:
            pass  # several columns of one name, for instance
    if "matplotlib" in homes and hasattr(value, "savefig"):
        bundle.update(core.part("figures").bundle_of(value))


# --- showing


def event_of(value, is_main, include=None, exclude=None):
    bundle = bundle_of(value, include, exclude)
    return values.event_of_bundle(bundle, is_main) if bundle else None


def displayhook(value):
    """What a value by itself on a line does, for who calls it."""
    if value is None:
        return
    core.part("history").remember_value(value)
    event = event_of(value, True)
    if event:
        core.send_event(event)


class DisplayHandle:
    """What display(..., display_id=...) gives back. An update is shown as another result."""

    def __init__(self, display_id=None):
        self.display_id = display_id or "%032x" % id(self)

    def __repr__(self):
        return "<DisplayHandle display_id=%s>" % self.display_id

    def display(self, value, **options):
        display(value, **options)

    update = display


shown_instead = []  # functions that take what is displayed, while something captures it


def display(*shown, include=None, exclude=None, raw=False, display_id=None, **options):
    for value in shown:
        if shown_instead:
            shown_instead[-1](value if raw else bundle_of(value, include, exclude))
            continue
        event = values.event_of_bundle(value, False) if raw else event_of(value, False, include, exclude)
        if event:
            core.send_event(event)
    if display_id is None:
        return None
    return DisplayHandle(None if display_id is True else str(display_id))
