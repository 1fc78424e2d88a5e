"""What is in the modules of IPython, for images that have none: enough for cells and for libraries that look there."""
import sys

core = core  # given by the driver

VERSION = (9, 15, 0)  # whose ways these are
PACKAGES = {"IPython", "IPython.core", "IPython.lib", "IPython.terminal", "IPython.utils"}


def fill(module):
    if module.__name__ in PACKAGES:
        module.__path__ = []
    module.__dict__.update(FILLERS[module.__name__]())


def top():
    return {"get_ipython": core.get_ipython, "version_info": VERSION + ("",),
            "__version__": ".".join(map(str, VERSION)), "InteractiveShell": core.part("shell").InteractiveShell}


def display():
    shim = core.part("ipython_shim")
    names = {name: getattr(shim, name) for name in shim.PUBLIC}
    return {"display": core.display, "clear_output": core.part("imports").clear_output, **names}


def display_of_core():
    return {"get_ipython": core.get_ipython, **display()}


def getipython():
    return {"get_ipython": core.get_ipython}


def interactiveshell():
    shell = core.part("shell")
    return {name: getattr(shell, name) for name in ("InteractiveShell", "ExecutionInfo", "ExecutionResult")}


def formatters():
    forms = core.part("display")

    class BaseFormatter(forms.Formatter):
        format_type, print_method, kinds = "text/plain", "", ()

        def __init__(self, parent=None, **options):
            super().__init__(self.format_type, self.print_method, self.kinds)
            self.parent = parent

    return {"BaseFormatter": BaseFormatter, "DisplayFormatter": forms.DisplayFormatter,
            "PlainTextFormatter": forms.PlainTextFormatter, "FormatterWarning": forms.FormatterWarning}


def events():
    return {"EventManager": core.part("shell").Events}


def error():
    return {name: type(name, (Exception,), {}) for name in ("UsageError", "TryNext", "StdinNotImplementedError")}


def magic():
    def keeper(kind):
        def register(function):
            core.get_ipython().register_magic_function(function, kind)
            return function
        return register

    def register_both(function):
        core.get_ipython().register_magic_function(function, "line")
        core.get_ipython().register_magic_function(lambda line, cell: function(line, cell), "cell", function.__name__)
        return function

    def marker(*kinds):
        """For methods of a Magics class: with a name of their own, or without."""
        def mark(given):
            def marked(method, name=None):
                method.is_magic = [(kind, name or method.__name__) for kind in kinds]
                return method
            return marked(given) if callable(given) else lambda method: marked(method, given)
        return mark

    class Magics:
        def __init__(self, shell=None, **options):
            self.shell = shell

    def magics_class(cls):
        cls.magics = {"line": {}, "cell": {}}
        for key in dir(cls):
            for kind, name in getattr(getattr(cls, key), "is_magic", ()):
                cls.magics[kind][name] = key
        return cls

    def needs_local_scope(function):
        function.needs_local_scope = True
        return function

    return {"register_line_magic": keeper("line"), "register_cell_magic": keeper("cell"),
            "register_line_cell_magic": register_both, "Magics": Magics, "magics_class": magics_class,
            "line_magic": marker("line"), "cell_magic": marker("cell"), "line_cell_magic": marker("line", "cell"),
            "needs_local_scope": needs_local_scope}


def terminal():
    return {"TerminalInteractiveShell": type("TerminalInteractiveShell", (), {})}


def latextools():
    def latex_to_png(text, encode=False, backend=None, wrap=False, color="Black", scale=1.0):
        import io
        out = io.BytesIO()
        try:
            from matplotlib import mathtext
            mathtext.math_to_image("$%s$" % text if wrap else text, out, dpi=120 * scale, format="png",
                                   color=color.lower())
        except Exception:
            return None  # there is no matplotlib, or it cannot set this
        return out.getvalue()

    return {"latex_to_png": latex_to_png}


def nbformat():
    """plotly shows nothing where this is missing; all it wants is a number."""
    return {"__version__": "5.11.1", "version_info": (5, 11, 1)}


def pylabtools():
    figures = core.part("figures")

    def print_figure(figure, fmt="png", **options):
        return figures.picture_of(figure, fmt)

    return {"backend2gui": {}, "backends": {"inline": "module://matplotlib_inline.backend_inline"},
            "print_figure": print_figure, "getfigs": figures.all_figures}


def capture():
    cells = core.part("cell_magics")
    return {name: getattr(cells, name) for name in ("capture_output", "CapturedIO", "RichOutput")}


def pretty():
    printing = core.part("pretty")

    def pprint(value, **options):
        sys.stdout.write(printing.pretty(value) + "\n")

    def for_type(kind, function):
        before = printing.PRINTERS.get(kind)
        printing.PRINTERS[kind] = function
        return before

    def for_type_by_name(module, name, function):
        before = printing.PRINTERS_BY_NAME.get((module, name))
        printing.PRINTERS_BY_NAME[module, name] = function
        return before

    return {"pretty": printing.pretty, "pprint": pprint, "PrettyPrinter": printing.Printer,
            "RepresentationPrinter": printing.Printer, "for_type": for_type, "for_type_by_name": for_type_by_name}


FILLERS = {
    "IPython": top, "IPython.display": display, "IPython.core": dict, "IPython.core.display": display_of_core,
    "IPython.core.display_functions": display, "IPython.core.getipython": getipython,
    "IPython.core.interactiveshell": interactiveshell, "IPython.core.formatters": formatters,
    "IPython.core.events": events, "IPython.core.error": error, "IPython.core.magic": magic,
    "IPython.core.pylabtools": pylabtools, "IPython.lib": dict, "IPython.lib.display": display,
    "IPython.terminal": dict, "IPython.terminal.interactiveshell": terminal, "nbformat": nbformat,
    "IPython.lib.latextools": latextools,
    "IPython.lib.pretty": pretty, "IPython.utils": dict, "IPython.utils.capture": capture, "IPython.utils.io": capture,
}
