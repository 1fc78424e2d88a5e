"""What IPython adds to the language: %line magics, %%cell magics, !commands, and get_ipython().

Only looked at when a cell is not Python as it stands, so Python's own % and ! are never mistaken; or when its one line
begins with a word that nothing is called by, as in `pip install x`.
"""
import os
import re
import shlex
import subprocess
import sys

core = core  # given by the driver

LINE = re.compile(r"^(\s*)(?:([A-Za-z_][\w.,\s\[\]'\"]*?)\s*=\s*)?(%|!!?)(?!=)(.*)$")
HELP = re.compile(r"^(\s*)(?:\?{1,2}([\w.]+)|([\w.]+)\?{1,2})\s*$")
MARK = re.compile(r"\"\"\"|'''|[\"'#(\[{)\]}]")
QUOTE_END = {quote: re.compile(r"(?:\\.|[^\\])*?" + quote) for quote in ("'", '"', "'''", '"""')}
NAME = re.compile(r"\$\$|\$([A-Za-z_]\w*)|\{([^{}]+)\}")


# --- from a cell to Python


def transform(code):
    stripped = code.lstrip()
    if stripped.startswith("%%"):
        first, _, rest = stripped.partition("\n")
        name, _, line = first[2:].partition(" ")
        return "get_ipython().run_cell_magic(%r, %r, %r)" % (name, line.strip(), rest)
    lines = code.split("\n")
    changed = []
    place = Place()
    while lines:
        line = lines.pop(0)
        if not place.begins_statement():
            place.read(line)
        elif LINE.match(line):
            while line.endswith("\\") and lines:
                line = line[:-1] + lines.pop(0)
            line = transform_line(line)
        elif HELP.match(line):
            line = transform_line(line)
        else:
            place.read(line)
        changed.append(line)
    return "\n".join(changed)


def automagic(code):
    """A cell of one line whose % is left out. Whether its first word is free, the caller has seen."""
    name, _, line = code.strip().partition(" ")
    return "get_ipython().run_line_magic(%r, %r)" % (name, line.strip()) if name in LINE_MAGICS else None


class Place:
    """How far Python has come: inside strings and brackets no line begins a statement."""

    def __init__(self):
        self.depth, self.quote, self.continued = 0, "", False

    def begins_statement(self):
        return not self.depth and not self.quote and not self.continued

    def read(self, line):
        self.continued = line.endswith("\\")
        rest = line
        while rest:
            if self.quote:
                end = QUOTE_END[self.quote].match(rest)
                if not end:
                    break
                self.quote, rest = "", rest[end.end():]
                continue
            mark = MARK.search(rest)
            if not mark:
                break
            if mark[0] == "#":
                self.continued = False
                break
            self.take(mark[0])
            rest = rest[mark.end():]
        if len(self.quote) == 1 and not self.continued:
            self.quote = ""  # a mistake of this line alone

    def take(self, mark):
        if mark in "([{":
            self.depth += 1
        elif mark in ")]}":
            self.depth = max(0, self.depth - 1)
        else:
            self.quote = mark


def transform_line(line):
    found = LINE.match(line)
    if found:
        indent, target, kind, rest = found.groups()
        if kind == "%":
            name, _, arguments = rest.partition(" ")
            call = "get_ipython().run_line_magic(%r, %r)" % (name, arguments.strip())
        elif target or kind == "!!":
            call = "get_ipython().getoutput(%r)" % rest.strip()
        else:
            call = "get_ipython().system(%r)" % rest.strip()
        return indent + (target + " = " if target else "") + call
    found = HELP.match(line)
    if found:
        return "%sget_ipython().run_line_magic('pinfo', %r)" % (found[1], found[2] or found[3])
    return line


# --- commands


def expand(command):
    """$name and {expression}, with the cell's values; what has none is the shell's."""
    import inspect
    frame = inspect.currentframe()
    while frame is not None and not frame.f_code.co_filename.startswith("Cell In["):
        frame = frame.f_back
    local = frame.f_locals if frame is not None else {}

    def value_of(found):
        if found[0] == "$$":
            return "$"
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


class Shell:
    """As much of IPython's shell object as cells ask for."""

    @property
    def user_ns(self):
        return core.namespace

    @property
    def execution_count(self):
        return core.State.count

    def system(self, command):
        command = expand(command)
        if re.match(r"cd(\s|$)", command) and not re.search(r"[;&|]", command):
            pass  # in a shell of its own, as IPython has it; %cd moves the kernel
        run([shell_program(), "-c", command])
        if re.search(r"\bpip3?\b.*\binstall\b", command):
            forget_missing_modules()

    system_raw = system_piped = system

    def getoutput(self, command):
        done = subprocess.run([shell_program(), "-c", expand(command)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        core.namespace["_exit_code"] = done.returncode
        return done.stdout.decode("utf-8", "replace").splitlines()

    def run_line_magic(self, name, line, **options):
        magic = LINE_MAGICS.get(name)
        if magic is None:
            return usage("Line magic function `%%%s` not found." % name)
        return magic(expand(line) if name not in RAW else line)

    def run_cell_magic(self, name, line, cell):
        magic = CELL_MAGICS.get(name)
        if magic is None:
            return usage("Cell magic `%%%%%s` not found." % name)
        return magic(line, cell)

    def magic(self, text):
        name, _, line = text.partition(" ")
        return self.run_line_magic(name.lstrip("%"), line)

    def run_cell(self, code, **options):
        return run_python(code)

    def enable_gui(self, *ignored):
        pass

    def set_next_input(self, *ignored, **options):
        pass


shell = Shell()


def run_python(code):
    """Another cell inside this one."""
    name = "%s (inner)" % core.cell_name(core.State.count)
    core.remember_source(name, code)
    try:
        tree = core.parse(code, name)
    except SyntaxError:
        tree = core.parse(transform(code), name)
    import ast
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec", dont_inherit=True), core.namespace)
        return eval(compile(last, name, "eval", dont_inherit=True), core.namespace)
    exec(compile(tree, name, "exec", dont_inherit=True), core.namespace)
    return None


# --- line magics


def forget_missing_modules():
    import importlib
    importlib.invalidate_caches()


def cd(line):
    target = os.path.expanduser(line.strip().strip("'\"")) or os.path.expanduser("~")
    if target == "-":
        target = cd.before
    before = os.getcwd()
    os.chdir(target)
    cd.before = before
    print(os.getcwd())


cd.before = "."


def pip(line):
    run([sys.executable, "-m", "pip"] + shlex.split(line))
    forget_missing_modules()


def env(line):
    if not line:
        return dict(os.environ)
    name, separator, value = line.partition("=" if "=" in line else " ")
    if not separator:
        return os.environ.get(name.strip())
    os.environ[name.strip()] = value.strip()
    print("env: %s=%s" % (name.strip(), value.strip()))
    return None


def timed(run_it):
    import time
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        return run_it()
    finally:
        sys.stdout.flush()
        print("CPU times: total: %.3g s\nWall time: %.3g s" % (time.process_time() - cpu,
                                                             time.perf_counter() - wall))


def timeit_line(line, setup="pass"):
    import timeit as timing
    words = line.split()
    number = repeat = 0
    while words and re.match(r"-[nr]\d*$", words[0]):
        flag = words.pop(0)
        value = int(flag[2:] or words.pop(0))
        number, repeat = (value, repeat) if flag[1] == "n" else (number, value)
    timer = timing.Timer(" ".join(words) or "pass", setup, globals=core.namespace)
    number = number or timer.autorange()[0]
    results = [took / number for took in timer.repeat(repeat or 5, number)]
    best = min(results)
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        if best * factor >= 1 or unit == "ns":
            return print("%.3g %s per loop (best of %d runs, %d loops each)" % (
                best * factor, unit, len(results), number))


def variables():
    hidden = {"_", "__", "___", "_exit_code"}
    return sorted(name for name in core.namespace if not name.startswith("_") and name not in hidden)


def whos(line):
    print("Variable   Type   Data/Info")
    for name in variables():
        value = core.namespace[name]
        print("%s   %s   %s" % (name, type(value).__name__, repr(value)[:60]))


def reset(line):
    for name in variables():
        del core.namespace[name]


def pinfo(name):
    import inspect
    try:
        value = eval(name, core.namespace)
    except Exception:
        return print("Object `%s` not found." % name)
    print("Type:      %s\nDocstring: %s" % (type(value).__name__, inspect.getdoc(value)))


def run_file(line):
    import runpy
    words = shlex.split(line)
    before, sys.argv = sys.argv, words
    try:
        core.namespace.update({
            name: value for name, value in runpy.run_path(words[0], run_name="__main__").items()
            if not name.startswith("__")})
    finally:
        sys.argv = before


def nothing(*ignored):
    """For magics that set up what is always so here."""


RAW = {"timeit", "time", "prun"}
LINE_MAGICS = {
    "cd": cd, "pip": pip, "env": env, "set_env": env, "timeit": timeit_line,
    "time": lambda line: timed(lambda: run_python(line)), "pwd": lambda line: os.getcwd(),
    "who": lambda line: print("\t".join(variables())), "who_ls": lambda line: variables(),
    "whos": whos, "reset": reset, "pinfo": pinfo, "pinfo2": pinfo, "run": run_file,
    "matplotlib": nothing, "load_ext": nothing, "reload_ext": nothing, "autoreload": nothing,
    "config": nothing, "pylab": nothing, "gui": nothing, "precision": nothing, "xmode": nothing,
    "colors": nothing, "sx": shell.getoutput, "system": shell.getoutput, "prun": run_python,
}
for program in ("ls", "mkdir", "rm", "mv", "cp", "cat", "rmdir", "uv", "conda", "mamba"):
    LINE_MAGICS[program] = lambda line, program=program: shell.system(program + " " + line)


# --- cell magics


def script(program):
    def run_script(line, cell):
        core.flush()
        core.sync()
        done = subprocess.run(program + shlex.split(line), input=cell.encode())
        core.namespace["_exit_code"] = done.returncode
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, " ".join(program))
    return run_script


def writefile(line, cell):
    words = shlex.split(line)
    append = "-a" in words or "--append" in words
    path = os.path.expanduser([word for word in words if not word.startswith("-")][0])
    existed = os.path.exists(path)
    with open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write(cell if cell.endswith("\n") else cell + "\n")
    print("%s %s" % ("Appending to" if append else "Overwriting" if existed else "Writing", path))


def capture(line, cell):
    import contextlib
    import io

    class Captured:
        def __init__(self):
            self.out, self.err = io.StringIO(), io.StringIO()
        stdout = property(lambda self: self.out.getvalue())
        stderr = property(lambda self: self.err.getvalue())
        __str__ = lambda self: self.stdout

    captured = Captured()
    with contextlib.redirect_stdout(captured.out), contextlib.redirect_stderr(captured.err):
        run_python(cell)
    names = [word for word in line.split() if not word.startswith("-")]
    if names:
        core.namespace[names[0]] = captured


def show_as(mime):
    return lambda line, cell: core.part("display").display({mime: cell}, raw=True)


CELL_MAGICS = {
    "bash": script(["bash"]), "sh": script(["sh"]), "script": script([]),
    "python": script([sys.executable]), "python3": script([sys.executable]),
    "perl": script(["perl"]), "ruby": script(["ruby"]), "js": show_as("application/javascript"),
    "javascript": show_as("application/javascript"), "html": show_as("text/html"),
    "HTML": show_as("text/html"), "markdown": show_as("text/markdown"),
    "latex": show_as("text/latex"), "svg": show_as("image/svg+xml"), "SVG": show_as("image/svg+xml"),
    "writefile": writefile, "file": writefile, "capture": capture,
    "time": lambda line, cell: timed(lambda: run_python(cell)),
    "timeit": lambda line, cell: timeit_line(
        " ".join(word for word in line.split() if word.startswith("-")) + " exec(_timed_cell)"
        if core.namespace.update(_timed_cell=compile(cell, "<timeit>", "exec")) is None else ""),
}
