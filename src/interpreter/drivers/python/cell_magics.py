"""%%cell magics: cells that are something else than Python, or are run in some other way."""
import os
import shlex
import subprocess
import sys

core = core  # given by the driver


# --- other programs


def script(program):
    def run_script(line, cell):
        options, arguments = options_of(shlex.split(line))
        streams = (("stdout", "out"), ("stderr", "err"))
        pipes = {stream: subprocess.PIPE for stream, option in streams if option in options}
        core.flush()
        core.sync()
        process = subprocess.Popen(program + arguments, stdin=subprocess.PIPE, **pipes)
        if "bg" in options:
            process.stdin.write(cell.encode())
            return process.stdin.close()
        written = process.communicate(cell.encode())
        for text, option in zip(written, ("out", "err")):
            if option in options:
                core.namespace[options[option]] = text.decode("utf-8", "replace")
        core.namespace["_exit_code"] = process.returncode
        if process.returncode != 0 and "no-raise-error" not in options:
            raise subprocess.CalledProcessError(process.returncode, cell.encode(), *written)
        return None
    return run_script


def options_of(words):
    """What is for us, and what is for the program."""
    options, rest = {}, []
    words = list(words)
    while words:
        word = words.pop(0)
        name, equals, value = word[2:].partition("=")
        if word in ("--no-raise-error", "--raise-error", "--bg"):
            options[name] = ""
        elif word.startswith("--") and name in ("out", "err", "proc"):
            options[name] = value if equals else words.pop(0) if words else "_"
        else:
            rest.append(word)
    return options, rest


# --- files


def writefile(line, cell):
    words = shlex.split(line)
    append = "-a" in words or "--append" in words
    path = os.path.expanduser([word for word in words if not word.startswith("-")][0])
    existed = os.path.exists(path)
    with open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write(cell if cell.endswith("\n") else cell + "\n")
    print("%s %s" % ("Appending to" if append else "Overwriting" if existed else "Writing", path))


# --- what is captured


class RichOutput:
    def __init__(self, data):
        self.data, self.metadata = data, {}

    def display(self):
        core.display(self.data, raw=True)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.data


class CapturedIO:
    def __init__(self):
        import io
        self.out, self.err, self.outputs = io.StringIO(), io.StringIO(), []

    stdout = property(lambda self: self.out.getvalue())
    stderr = property(lambda self: self.err.getvalue())

    def __str__(self):
        return self.stdout

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for output in self.outputs:
            output.display()

    __call__ = show


class capture_output:
    """For `with`: what is written and displayed goes where it is wanted later."""

    def __init__(self, stdout=True, stderr=True, display=True):
        self.stdout, self.stderr, self.display = stdout, stderr, display

    def __enter__(self):
        captured = CapturedIO()
        self.before = sys.stdout, sys.stderr, sys.displayhook
        if self.stdout:
            sys.stdout = captured.out
        if self.stderr:
            sys.stderr = captured.err
        if self.display:
            bundles = core.part("display")
            bundles.shown_instead.append(lambda bundle: captured.outputs.append(RichOutput(bundle)))
            sys.displayhook = lambda value: None if value is None else core.display(value)
        return captured

    def __exit__(self, *error):
        if self.display:
            if "matplotlib.pyplot" in sys.modules:
                core.part("figures").show_all()
            core.part("display").shown_instead.pop()
        sys.stdout, sys.stderr, sys.displayhook = self.before


def capture(line, cell):
    words = line.split()
    wanted = [option not in words for option in ("--no-stdout", "--no-stderr", "--no-display")]
    with capture_output(*wanted) as captured:
        sys.displayhook(core.part("magics").run_python(cell))
    names = [word for word in words if not word.startswith("-")]
    if names:
        core.namespace[names[0]] = captured


# --- what is shown


def show_as(kind):
    return lambda line, cell: core.display(getattr(core.part("ipython_shim"), kind)(cell))


timing = core.part("timing")
CELL_MAGICS = {
    "bash": script(["bash"]), "sh": script(["sh"]), "script": script([]), "system": script(["bash"]),
    "!": script(["bash"]), "sx": script(["bash"]), "python": script([sys.executable]),
    "python3": script([sys.executable]), "perl": script(["perl"]), "ruby": script(["ruby"]),
    "js": show_as("Javascript"), "javascript": show_as("Javascript"), "html": show_as("HTML"), "HTML": show_as("HTML"),
    "markdown": show_as("Markdown"), "latex": show_as("Latex"), "svg": show_as("SVG"), "SVG": show_as("SVG"),
    "writefile": writefile, "file": writefile, "capture": capture, "prun": timing.prun, "timeit": timing.timeit,
    "time": lambda line, cell: timing.timed(core.part("magics").prepared(cell)),
}
