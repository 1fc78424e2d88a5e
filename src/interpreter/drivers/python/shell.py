"""get_ipython(): as much of the shell of a real kernel as cells and libraries ask for. It also sees every cell begin
and end, once somebody has asked for it."""
import inspect
import os
import re
import subprocess
import sys

core = core  # given by the driver
display = core.part("display")
history = core.part("history")
magics = core.part("magics")


# --- what happens when a cell runs


class Events:
    known = ("pre_execute", "pre_run_cell", "post_execute", "post_run_cell", "shell_initialized")

    def __init__(self):
        self.callbacks = {name: [] for name in self.known}

    def register(self, event, function):
        if not callable(function):
            raise TypeError("Need a callable, got %r" % (function,))
        if function not in self.callbacks[event]:
            self.callbacks[event].append(function)

    def unregister(self, event, function):
        if function not in self.callbacks[event]:
            raise ValueError("Function %r is not registered as a %s callback" % (function, event))
        self.callbacks[event].remove(function)

    def trigger(self, event, *arguments):
        for function in list(self.callbacks[event]):
            display.reported(lambda: function(*arguments) if takes_any(function) else function())


def takes_any(function):
    try:
        return bool(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return True


class ExecutionInfo:
    def __init__(self, code):
        self.raw_cell = self.transformed_cell = code
        self.store_history, self.silent, self.shell_futures, self.cell_id = True, False, True, None


class ExecutionResult:
    error_before_exec = error_in_exec = result = None

    def __init__(self, info, count):
        self.info, self.execution_count = info, count

    @property
    def success(self):
        return self.error_before_exec is None and self.error_in_exec is None

    def raise_error(self):
        if not self.success:
            raise self.error_before_exec or self.error_in_exec


results = []  # of the cell that runs


def tell_before(code):
    results[:] = [ExecutionResult(ExecutionInfo(code), core.State.count)]
    shell.events.trigger("pre_execute")
    shell.events.trigger("pre_run_cell", results[0].info)


def tell_after(error):
    result = results.pop() if results else ExecutionResult(ExecutionInfo(""), core.State.count)
    if isinstance(error, SyntaxError):
        result.error_before_exec = error
    else:
        result.error_in_exec = error
        result.result = None if error else history.outputs.get(core.State.count)
    shell.events.trigger("post_execute")
    shell.events.trigger("post_run_cell", result)


# --- what libraries look for


class Config(dict):
    """Sections come into being when they are asked for, as do the settings in them."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.setdefault(name, Config())

    __setattr__ = dict.__setitem__


class Kernel:
    def __init__(self, shell):
        self.shell = shell

    def do_shutdown(self, restart=False):
        os._exit(0)


class DisplayPublisher:
    def publish(self, data, metadata=None, **options):
        display.display(data, raw=True)

    def clear_output(self, wait=False):
        pass  # what was sent is with the client already


class HistoryManager:
    input_hist_raw = input_hist_parsed = history.inputs
    output_hist = history.outputs

    def get_range(self, session=0, start=1, stop=None, raw=True, output=False):
        for number, code in list(enumerate(history.inputs))[start:stop]:
            yield 0, number, (code, history.outputs.get(number)) if output else code

    def get_tail(self, count=10, **options):
        return list(self.get_range(start=max(1, len(history.inputs) - count)))


class TransformerManager:
    def transform_cell(self, code):
        transform = core.part("transform")
        changed = transform.transform(transform.clean(code))
        return changed if changed.endswith("\n") else changed + "\n"


class MagicsManager:
    magics = {"line": magics.LINE_MAGICS, "cell": magics.CELL_MAGICS}

    def lsmagic(self):
        return self.magics

    def register_function(self, function, magic_kind="line", magic_name=None):
        self.magics[magic_kind][magic_name or function.__name__] = function


class ExtensionManager:
    built_in = ("autoreload", "storemagic")  # the modules that they are about are always fresh enough

    def __init__(self):
        self.loaded = set()

    def load_extension(self, name):
        if name in self.loaded or name in self.built_in:
            return
        import importlib
        module = importlib.import_module(name)
        self.loaded.add(name)
        if hasattr(module, "load_ipython_extension"):
            module.load_ipython_extension(shell)
        else:
            print("The %s module is not an IPython extension." % name)

    def reload_extension(self, name):
        self.unload_extension(name)
        self.load_extension(name)

    def unload_extension(self, name):
        module = sys.modules.get(name)
        if name in self.loaded and hasattr(module, "unload_ipython_extension"):
            module.unload_ipython_extension(shell)
        self.loaded.discard(name)


class SList(list):
    """What a command wrote, line by line."""

    l = list = property(lambda self: self)
    n = nlstr = property("\n".join)
    s = spstr = property(" ".join)

    def grep(self, pattern, prune=False, field=None):
        wanted = pattern if callable(pattern) else lambda line: re.search(pattern, line, re.IGNORECASE)

        def part_of(line):
            words = line.split()
            return line if field is None else words[field] if field < len(words) else ""
        return SList(line for line in self if bool(wanted(part_of(line))) is not prune)

    def fields(self, *wanted):
        rows = [line.split() for line in self]
        if not wanted:
            return rows
        return SList(" ".join(row[at] for at in wanted if at < len(row)) for row in rows)


def called(magic, *arguments):
    """Some magics want the variables too."""
    if getattr(magic, "needs_local_scope", False):
        return magic(*arguments, local_ns=core.namespace)
    return magic(*arguments)


# --- the shell


class InteractiveShell:
    ast_node_interactivity = "last_expr"
    autoawait = True
    colors = "nocolor"
    custom_exceptions = ()
    CustomTB = None
    banner = ""
    parent = None

    def __init__(self):
        self.user_ns = self.user_global_ns = core.namespace
        self.user_module = sys.modules["__main__"]
        self.user_ns_hidden = {}
        self.events = Events()
        self.config = Config(IPKernelApp=Config(), InlineBackend=Config())
        self.display_formatter = display.formatter
        self.display_pub = DisplayPublisher()
        self.displayhook = display.displayhook
        self.history_manager = HistoryManager()
        self.input_transformer_manager = TransformerManager()
        self.input_transformers_cleanup, self.input_transformers_post = [], []
        self.ast_transformers = []
        self.magics_manager = MagicsManager()
        self.extension_manager = ExtensionManager()
        self.kernel = Kernel(self)

    @classmethod
    def instance(cls, *ignored, **options):
        return shell

    @classmethod
    def initialized(cls):
        return True

    @property
    def execution_count(self):
        return core.State.count

    # --- code

    def run_cell(self, code, store_history=False, silent=False, **options):
        """Another cell inside this one: its value is shown, and so is its error, which does not end this one."""
        result = ExecutionResult(ExecutionInfo(code), core.State.count)
        try:
            result.result = magics.run_python(code)
            if not silent:
                display.displayhook(result.result)
        except Exception as error:
            result.error_in_exec = error
            self.showtraceback((type(error), error, error.__traceback__))
        return result

    def transform_cell(self, code):
        return self.input_transformer_manager.transform_cell(code)

    def transform_ast(self, tree):
        import ast
        for transformer in self.ast_transformers:
            tree = ast.fix_missing_locations(transformer.visit(tree))
        return tree

    def ev(self, expression):
        return eval(expression, core.namespace)

    def ex(self, code):
        exec(code, core.namespace)

    def push(self, variables, interactive=True):
        core.namespace.update(variables)

    def del_var(self, name, by_name=False):
        del core.namespace[name]

    def reset(self, *ignored, **options):
        magics.reset("-f")

    def safe_execfile(self, path, *namespaces, **options):
        with open(path, "rb") as file:
            exec(compile(file.read(), path, "exec"), *(namespaces or (core.namespace,)))

    def set_custom_exc(self, kinds, handler):
        """A handler of errors: what it returns is the traceback's text."""
        self.custom_exceptions = tuple(kinds)
        self.CustomTB = handler

    def showtraceback(self, exc_tuple=None, *ignored, **options):
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1] or getattr(sys, "last_value", None)
        if error is not None:
            core.send_event(core.part("errors").event_of(error))

    showsyntaxerror = showtraceback

    # --- commands

    def system(self, command):
        command = magics.expand(command)
        magics.run([magics.shell_program(), "-c", command])
        if re.search(r"\bpip3?\b.*\binstall\b", command):
            magics.forget_missing_modules()

    system_raw = system_piped = system

    def getoutput(self, command, split=True, **options):
        done = subprocess.run([magics.shell_program(), "-c", magics.expand(command)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        core.namespace["_exit_code"] = done.returncode
        text = done.stdout.decode("utf-8", "replace")
        return SList(text.splitlines()) if split else text

    def var_expand(self, command, depth=0):
        return magics.expand(command)

    # --- magics

    def run_line_magic(self, name, line, **options):
        magic = self.find_line_magic(name)
        if magic is None:
            return magics.usage("Line magic function `%%%s` not found%s." % (name, self.hint(
                self.find_cell_magic(name), "cell magic `%%" + name)))
        return called(magic, line if name in magics.RAW else magics.expand(line))

    def run_cell_magic(self, name, line, cell):
        magic = self.find_cell_magic(name)
        if magic is None:
            return magics.usage("Cell magic `%%%%%s` not found%s." % (name, self.hint(
                self.find_line_magic(name), "line magic `%" + name)))
        if not cell:
            return magics.usage("%%%%%s is a cell magic, but the cell body is empty." % name)
        return called(magic, line if name in magics.RAW else magics.expand(line), cell)

    @staticmethod
    def hint(other, name):
        return " (But %s` exists, did you mean that instead?)" % name if other else ""

    def magic(self, text):
        name, _, line = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, line)

    def find_line_magic(self, name):
        return magics.LINE_MAGICS.get(name)

    def find_cell_magic(self, name):
        return magics.CELL_MAGICS.get(name)

    def find_magic(self, name, magic_kind="line"):
        return self.magics_manager.magics[magic_kind].get(name)

    def register_magic_function(self, function, magic_kind="line", magic_name=None):
        self.magics_manager.register_function(function, magic_kind, magic_name)

    def register_magics(self, *kinds):
        for each in kinds:
            each = each(self) if isinstance(each, type) else each
            for kind, named in getattr(each, "magics", {}).items():
                for name, function in named.items():
                    method = getattr(each, function) if isinstance(function, str) else function
                    self.register_magic_function(method, kind, name)

    # --- the rest

    def register_post_execute(self, function):
        self.events.register("post_execute", function)

    def enable_gui(self, *ignored):
        pass  # there is none

    def enable_matplotlib(self, gui=None):
        return "inline", "module://matplotlib_inline.backend_inline"

    def set_next_input(self, *ignored, **options):
        pass  # nobody looks at it

    def ask_yes_no(self, prompt, default=None, interrupt=None):
        return bool(default)


ZMQInteractiveShell = type("ZMQInteractiveShell", (InteractiveShell,), {"__module__": "ipykernel.zmqshell"})
shell = ZMQInteractiveShell()
