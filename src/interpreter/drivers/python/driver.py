"""The kernel of a Python context: runs cells in __main__, one after the other.

Read by a one-line bootstrap from the guest's socket and executed there; nothing of it is on disk. The
names PARTS (the sources of the other parts, compiled when first needed) and CONTROL (the socket's
descriptor) are given. The guest says

    run COUNT LANGUAGE SETS RESETS CODE\\n   and then as many bytes of each
    ack\\n                                  what was written so far has been read
    interrupt COUNT\\n                      beside SIGINT, for kernels that signals do not reach

and this side answers with frames: "event LENGTH\\n" and a JSON object, "sync\\n" (asks for an ack), and
"end COUNT STATUS\\n". Output goes through descriptors 1 and 2, which are pipes of the guest's; it reads them
before it looks at a frame. So the only order that must be asked for is that of what follows a frame,
or of one pipe after the other (see Stream).
"""
import builtins
import io
import os
import sys
from _ast import Expr, Expression, PyCF_ONLY_AST
from _signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_STREAM, socket
from _thread import RLock, get_ident
from keyword import iskeyword
from time import perf_counter_ns
from types import ModuleType

try:
    from _json import encode_basestring_ascii as quote
except ImportError:
    from json.encoder import py_encode_basestring_ascii as quote

AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, without importing ast
COROUTINE = 0x80  # inspect.CO_COROUTINE
# Cells that are run again and again are compiled once.
MOST_CACHED = 64
LONGEST_CACHED = 4096
# How long to look for the next cell before sleeping: who sends cell after cell does not pay for
# waking this process, which takes longer than a small cell. On two quiet processors a cell then
# takes 80 to 120 us instead of 180; it costs a sandbox so much time after each cell, and no more.
SPIN_NS = 400_000

namespace = sys.modules["__main__"].__dict__
core = sys.modules["_hearth"] = ModuleType("_hearth")
control = socket(AF_UNIX, SOCK_STREAM, 0, CONTROL)
control.settimeout(None)
cache = {}
parts = {}
before_end = []  # what to do when a cell is over: figures to show, and so on


class State:
    pid = os.getpid()
    thread = get_ident()
    running = False
    last_writer = None  # a Stream, or "frame"
    count = 0


def part(name):
    """One of the other files, as a module."""
    module = parts.get(name)
    if module is None:
        module = ModuleType("_hearth_" + name)
        module.core = core
        exec(compile(PARTS[name], "<hearth " + name + ">", "exec", dont_inherit=True), module.__dict__)
        parts[name] = module
    return module


# --- talking to the guest


every_signal = valid_signals()
sending = RLock()


def send(data):
    """Frames, and nothing of other threads' in between.

    A handler of signals runs in the middle of sendall() as well, where it may raise (an interrupt does) or
    send something itself. While no signal reaches this thread, sendall() is one call to the kernel of the
    system, and handlers that run after it find nothing half-done: so the lock may be taken again.
    """
    before = pthread_sigmask(SIG_BLOCK, ())
    try:
        pthread_sigmask(SIG_BLOCK, every_signal)
        with sending:
            control.sendall(data)
    finally:
        pthread_sigmask(SIG_SETMASK, before)


class Inbox:
    """What the guest sent and nobody has read yet."""

    data = b""

    def more(self, flags=0):
        piece = control.recv(1 << 16, flags)
        if not piece:
            os._exit(0)
        self.data += piece

    def line(self):
        while True:
            end = self.data.find(b"\n")
            if end >= 0:
                line = self.data[:end]
                self.data = self.data[end + 1:]
                return line
            self.more()

    def take(self, count):
        if len(self.data) < count:
            pieces = [self.data]
            missing = count - len(self.data)
            while missing:
                piece = control.recv(min(missing, 1 << 20))
                if not piece:
                    os._exit(0)
                pieces.append(piece)
                missing -= len(piece)
            self.data = b""
            return b"".join(pieces)
        taken = self.data[:count]
        self.data = self.data[count:]
        return taken


inbox = Inbox()


def sync():
    """Returns when the guest has read everything that was written so far."""
    if State.running and State.thread == get_ident() and State.pid == os.getpid():
        send(b"sync\n")
        while inbox.line() != b"ack":
            pass


class Stream(io.FileIO):
    """Descriptor 1 or 2 below sys.stdout or sys.stderr. Whoever writes after another asks the guest to
    read first, so that it sees both in the right order."""

    def __init__(self, fd):
        super().__init__(fd, "wb", closefd=False)
        self.other = None

    def write(self, data):
        if State.last_writer is not self:
            if State.last_writer is not None:
                if self.other is not None:
                    self.other.flush()
                sync()
            State.last_writer = self
        return super().write(data)


def open_streams():
    texts = []
    for fd, name in ((1, "<stdout>"), (2, "<stderr>")):
        raw = Stream(fd)
        text = io.TextIOWrapper(
            io.BufferedWriter(raw, 1 << 16), encoding="utf-8", errors="backslashreplace",
            line_buffering=True, write_through=fd == 2)
        text.mode = "w"
        texts.append((raw, text))
    texts[0][0].other, texts[1][0].other = texts[1][1], texts[0][1]
    sys.stdout = sys.__stdout__ = texts[0][1]
    sys.stderr = sys.__stderr__ = texts[1][1]
    sys.stdin = sys.__stdin__ = open(0, closefd=False)


own_stdout = own_stderr = None


def flush():
    for stream in (own_stdout, own_stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed by the cell
    if sys.stdout is not own_stdout:
        try:
            sys.stdout.flush()
        except Exception:
            pass


def send_event(event):
    """An event in the middle of a cell: after what was printed before it, before what comes after."""
    if State.pid != os.getpid():
        return  # a fork of ours: its parent speaks
    flush()
    data = event.encode("ascii")
    send(b"event %d\n%b" % (len(data), data))
    State.last_writer = "frame"


# --- running a cell


def cell_name(count):
    return "Cell In[%d]" % count


def remember_source(name, code):
    """For tracebacks and inspect.getsource."""
    import linecache
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)


def parse(code, name):
    return compile(code, name, "exec", PyCF_ONLY_AST | AWAIT, True)


def automagic(code):
    """What IPython makes of `pip install x` and `pwd`, while nothing is called pip or pwd."""
    words = code.split(None, 1)
    if not words or not words[0].isidentifier() or "\n" in code.strip():
        return None
    is_taken = words[0] in namespace or hasattr(builtins, words[0]) or iskeyword(words[0])
    if is_taken or len(words) > 1 and words[1].startswith("="):
        return None
    return part("magics").automagic(code)


def compile_cell(code):
    name = cell_name(State.count)
    remember_source(name, code)
    magic = automagic(code)
    try:
        tree = parse(magic or code, name)
    except SyntaxError:
        if "%" not in code and "!" not in code and "?" not in code:
            raise
        changed = part("magics").transform(code)
        if changed == code:
            raise
        tree = parse(changed, name)
    last = None
    if tree.body and type(tree.body[-1]) is Expr and not code.rstrip().endswith(";"):
        last = compile(Expression(tree.body.pop().value), name, "eval", AWAIT, True)
    body = compile(tree, name, "exec", AWAIT, True) if tree.body else None
    asynchronous = bool((body.co_flags if body else 0) & COROUTINE
                        or (last.co_flags if last else 0) & COROUTINE)
    if not asynchronous and ("asyncio" in sys.modules or "asyncio" in code or "aiohttp" in code):
        asynchronous = part("awaiting").needs_loop(code)
    compiled = (body, last, asynchronous)
    if len(code) <= LONGEST_CACHED and not magic:  # a variable may take the name
        if len(cache) >= MOST_CACHED:
            del cache[next(iter(cache))]
        cache[code] = compiled
    return compiled


def execute(code):
    body, last, asynchronous = cache.get(code) or compile_cell(code)
    if asynchronous:
        return part("awaiting").await_all(body, last)
    if body:
        exec(body, namespace)
    return eval(last, namespace) if last else None


def remember_value(value):
    namespace["___"] = namespace.get("__")
    namespace["__"] = namespace.get("_")
    namespace["_"] = value


def event_of_value(value):
    kind = type(value)
    if kind is int or kind is float or kind is bool or kind is str:
        text = repr(value)
        if kind is str:
            text = text[1:-1]
        return '{"type":"result","text":%s,"is_main_result":true,"extra":{}}' % quote(text)
    return part("display").event_of(value, True)


def set_variables(block):
    for entry in block.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            os.environb[name] = value
        elif name:
            os.environb.pop(name, None)


def run_cell(code):
    """The frames of what comes last in a cell: its value or its error."""
    events = []
    try:
        try:
            State.running = True
            value = execute(code)
            if value is not None:
                remember_value(value)
                event = event_of_value(value)
                if event:
                    events.append(event)
        finally:
            if before_end:
                if events:
                    send_event(events.pop())
                for action in before_end:
                    action()
            State.running = False
    except BaseException as error:
        State.running = False
        events.append(part("errors").event_of(error))
    if State.pid != os.getpid():
        os._exit(0)  # the cell forked and the child came back: it is not the kernel
    flush()
    return events


def look_for_more():
    until = perf_counter_ns() + SPIN_NS
    while not inbox.data and perf_counter_ns() < until:
        try:
            inbox.more(MSG_DONTWAIT)
        except BlockingIOError:
            pass
    if not inbox.data and "awaiting" in parts:
        part("awaiting").idle()


def serve():
    while True:
        look_for_more()
        words = inbox.line().split()
        if not words or words[0] != b"run":
            continue  # an ack that an interrupt kept us from reading, or an interrupt
        sets, resets, length = int(words[3]), int(words[4]), int(words[5])
        State.count = int(words[1])
        State.last_writer = None
        if sets:
            set_variables(inbox.take(sets))
        before = inbox.take(resets) if resets else b""
        events = run_cell(inbox.take(length).decode("utf-8", "replace"))
        if before:
            set_variables(before)
        frames = b""
        for event in events:
            data = event.encode("ascii")
            frames += b"event %d\n%b" % (len(data), data)
        send(frames + b"end %d 0\n" % State.count)


# --- the world as cells see it


def on_interrupt(number, frame):
    if State.running:
        raise KeyboardInterrupt


def no_input(prompt=""):
    raise EOFError("input() does not work here: nobody can type into a running cell")


def display(*values, **options):
    """Shows values as rich results of this cell."""
    return part("display").display(*values, **options)


def get_ipython():
    return part("magics").shell


class Watcher:
    """Sees some modules being imported, and completes them: first among the finders."""

    watched = {"matplotlib", "matplotlib.pyplot", "PIL.Image", "IPython", "IPython.display",
               "IPython.core.display_functions", "IPython.core.getipython"}
    busy = set()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.watched or name in cls.busy:
            return None
        from importlib.util import find_spec
        cls.busy.add(name)
        try:
            spec = find_spec(name)
        except ImportError:
            spec = None
        finally:
            cls.busy.discard(name)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        return part("imports").completed(name, spec)


class LateSite:
    """Finds what a user installed for himself since the kernel began: Python looks for that folder once, at its start."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        import site
        folder = site.getusersitepackages()
        if path is not None or not site.ENABLE_USER_SITE or folder in sys.path or not os.path.isdir(folder):
            return None
        from importlib.machinery import PathFinder
        site.addsitedir(folder)
        return PathFinder.find_spec(name)


class Substitute:
    """Stands in for IPython where it is not installed: last among the finders."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "IPython" or name.startswith("IPython."):
            return part("imports").substitute(name)
        return None


def set_up():
    global own_stdout, own_stderr
    import signal
    signal.signal(signal.SIGINT, on_interrupt)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    open_streams()
    own_stdout, own_stderr = sys.stdout, sys.stderr
    builtins.input = no_input
    builtins.display = display
    builtins.get_ipython = get_ipython
    sys.meta_path.insert(0, Watcher)
    sys.meta_path += [LateSite, Substitute]
    sys.argv = [""]
    for name in [name for name in namespace if not name.startswith("__")]:
        del namespace[name]
    import linecache  # noqa: F401  (so that no cell pays for it)


set_up()
core.__dict__.update(
    {name: value for name, value in globals().items() if not name.startswith("__")})
send(b"ready\n")
serve()
