"""%line magics, and the commands that they and !lines run."""
import os
import re
import shlex
import subprocess
import sys

core = core  # given by the driver
history = core.part("history")

# $$, {{ and }} are one of them; $name.field and {expression} are the cell's. Within '...' a $ is the shell's.
NAME = re.compile(r"\$\$|\{\{|\}\}|\$([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?=(?:[^']*'[^']*')*[^']*$)|\{([^{}]+)\}")
SECRET = re.compile("key|token|secret", re.IGNORECASE)


# --- commands


def expand(command):
    """With the cell's values in it; what has none is the shell's."""
    import inspect
    if "$" not in command and "{" not in command:
        return command
    frame = inspect.currentframe()
    while frame is not None and not frame.f_code.co_filename.startswith("Cell In["):
        frame = frame.f_back
    local = frame.f_locals if frame is not None else {}

    def value_of(found):
        if found[0] in ("$$", "{{", "}}"):
            return found[0][0]
        try:
            return str(eval(found[1] or found[2], core.namespace, local))
        except Exception:
            return found[0]

    return NAME.sub(value_of, command)


def run(arguments, **options):
    """A command with the cell's own output; interrupts end it as they end the cell."""
    core.flush()
    sys.stdout.flush()
    core.sync()
    status = subprocess.run(arguments, stdin=subprocess.DEVNULL, **options).returncode
    core.namespace["_exit_code"] = status
    return status


def shell_program():
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


def usage(text):
    print("UsageError: " + text, file=sys.stderr)


def prepared(code):
    """Another cell inside this one, as a function that gives its value."""
    compiling, transform = core.part("compiling"), core.part("transform")
    name = "%s (inner)" % compiling.cell_name(core.State.count)
    code = transform.clean(code)
    compiling.remember_source(name, code)
    try:
        tree = compiling.parse(code, name)
    except SyntaxError:
        code = transform.transform(code)
        tree = compiling.parse(code, name)
    body, last = compiling.compile_tree(tree, code, name, "last_expr")
    if any(each and each.co_flags & compiling.COROUTINE for each in (body, last)):
        raise SyntaxError("'await' outside function")

    def run_it():
        if body:
            exec(body, core.namespace)
        return eval(last, core.namespace) if last else None
    return run_it


def run_python(code):
    return prepared(code)()


def forget_missing_modules():
    import importlib
    importlib.invalidate_caches()


def shell():
    return core.part("shell").shell


# --- where the kernel is


def cd(line):
    words = [word for word in line.split() if word != "-q"]
    target = os.path.expanduser(" ".join(words).strip("'\"") or "~")
    if target == "-":
        target = visited[-2] if len(visited) > 1 else os.getcwd()
    if not visited:
        visited.append(os.getcwd())
    try:
        os.chdir(target)
    except OSError as error:
        print(error)
    else:
        visited.append(os.getcwd())
    if "-q" not in line.split():
        print(os.getcwd())


visited = core.namespace["_dh"]


def dhist(line):
    print("Directory history (kept in _dh)")
    for at, folder in enumerate(visited):
        print("%d: %s" % (at, folder))


def env(line):
    if not line:
        return {name: "<hidden>" if SECRET.search(name) else value for name, value in os.environ.items()}
    name, separator, value = line.partition("=" if "=" in line else " ")
    name, value = name.strip(), value.strip()
    if separator:
        os.environ[name] = value
        return print("env: %s=%s" % (name, value))
    if name not in os.environ:
        return usage("Environment does not have key: %s" % name)
    return os.environ[name]


# --- packages and extensions


def pip(line):
    run([sys.executable, "-m", "pip"] + shlex.split(line))
    forget_missing_modules()


def conda(line):
    if not os.path.exists(os.path.join(sys.prefix, "conda-meta")):
        raise ValueError("This Python is not in a conda environment. Use %pip install instead.")
    shell().system("conda " + line)


def load_ext(line):
    for name in line.split():
        shell().extension_manager.load_extension(name)


def config(line):
    """`Class.name = value`: what there is to choose."""
    name, equals, value = (part.strip() for part in line.partition("="))
    if not equals:
        return None
    section, _, key = name.rpartition(".")
    try:
        value = eval(value, core.namespace)
    except Exception:
        pass  # a word
    shell().config.setdefault(section, type(shell().config)())[key] = value
    if section in ("InteractiveShell", "ZMQInteractiveShell", "TerminalInteractiveShell"):
        setattr(shell(), key, value)
    if section == "InlineBackend" and key in ("figure_format", "figure_formats"):
        core.part("figures").set_formats(value)
    return None


def pylab(line):
    run_python("import numpy\nimport matplotlib\nfrom matplotlib import pylab, mlab, pyplot\nnp = numpy\nplt = pyplot\n"
               "from pylab import *\nfrom numpy import *")
    print("Populating the interactive namespace from numpy and matplotlib")


def precision(line):
    return core.part("display").formatter.formatters["text/plain"].set_precision(line.strip())


# --- what there is


def lsmagic(line):
    magics = shell().magics_manager.magics
    for kind, mark in (("line", "%"), ("cell", "%%")):
        print("Available %s magics:\n%s\n" % (kind, "  ".join(mark + name for name in sorted(magics[kind]))))


def show_history(line):
    options, wanted = line.split(), None
    for word in options:
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if found:
            wanted = range(int(found[1]), int(found[2] or found[1]) + 1)
    for number, code in list(enumerate(history.inputs))[1:]:
        if wanted is None or number in wanted:
            print("%4d: %s" % (number, code) if "-n" in options else code)


def traceback_again(line):
    shell().showtraceback()


def alias(line):
    name, _, command = line.strip().partition(" ")
    LINE_MAGICS[name] = lambda rest: shell().system(command.replace("%l", rest) if "%l" in command else
                                                    "%s %s" % (command, rest))


# --- programs


def run_file(line):
    """%run [-i] [-m module | file] arguments"""
    words = shlex.split(line)
    flags = []
    while words and words[0].startswith("-"):
        flags.append(words.pop(0))
    if not words:
        return usage("%run: a file is missing")
    path = find_module(words[0]) if "-m" in flags else os.path.expanduser(words[0])
    path = path if os.path.exists(path) else path + ".py"
    if not os.path.exists(path):
        raise Exception("File `%r` not found." % words[0])
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    space = core.namespace if "-i" in flags else {"__name__": "__main__", "__builtins__": __builtins__}
    file_before, argv = core.namespace.get("__file__"), sys.argv
    space["__file__"] = path
    sys.argv = [path] + words[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        exec(code, space)
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
    finally:
        sys.argv = argv
        del sys.path[0]
        if space is not core.namespace:
            core.namespace.update({name: value for name, value in space.items() if not name.startswith("__")})
        elif file_before is None:
            core.namespace.pop("__file__", None)
    return None


def find_module(name):
    from importlib.util import find_spec
    spec = find_spec(name)
    return spec.origin if spec is not None and spec.origin else name


def nothing(*ignored):
    """For magics that set up what is always so here, or what nobody looks at."""


timing = core.part("timing")
names = core.part("names")
RAW = {"timeit", "time", "prun", "alias", "history", "hist", "writefile", "file", "config"}
LINE_MAGICS = {
    "cd": cd, "pwd": lambda line: os.getcwd(), "dhist": dhist, "env": env, "set_env": env,
    "pip": pip, "conda": conda, "mamba": conda, "load_ext": load_ext, "reload_ext": load_ext, "config": config,
    "pylab": pylab, "precision": precision, "lsmagic": lsmagic, "history": show_history, "hist": show_history,
    "tb": traceback_again, "alias": alias, "run": run_file,
    "timeit": timing.timeit, "time": lambda line: timing.timed(prepared(line)), "prun": timing.prun,
    "who": names.who, "who_ls": names.who_ls, "whos": names.whos, "reset": names.reset,
    "reset_selective": names.reset_selective, "pinfo": names.pinfo, "pinfo2": names.pinfo2, "pdoc": names.pinfo,
    "psource": names.pinfo2,
    "sx": lambda line: shell().getoutput(line), "system": lambda line: shell().getoutput(line),
}
reset = names.reset
for name in ("matplotlib", "autoreload", "unload_ext", "gui", "xmode", "colors", "autosave", "load", "automagic", "pdb",
             "store", "pprint", "killbgscripts", "aimport", "doctest_mode", "logstart", "logstop"):
    LINE_MAGICS[name] = nothing
for name in ("ls", "ll", "mkdir", "rm", "mv", "cp", "cat", "rmdir", "uv", "more", "less"):
    program = {"ll": "ls -l", "more": "cat", "less": "cat"}.get(name, name)
    LINE_MAGICS[name] = lambda line, program=program: shell().system(program + " " + line)
CELL_MAGICS = core.part("cell_magics").CELL_MAGICS
