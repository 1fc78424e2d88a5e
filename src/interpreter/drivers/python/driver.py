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
from _signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_STREAM, socket
from _thread import RLock, get_ident
from time import perf_counter_ns
from types import ModuleType

try:
    from _json import encode_basestring_ascii as quote
except ImportError:
    from json.encoder import py_encode_basestring_ascii as quote

# How long to look for the next cell before sleeping: who sends cell after cell does not pay for
# waking this process, which takes longer than a small cell. On two quiet processors a cell then
# takes 80 to 120 us instead of 180; it costs a sandbox so much time after each cell, and no more.
SPIN_NS = 400_000

namespace = sys.modules["__main__"].__dict__
core = sys.modules["_hearth"] = ModuleType("_hearth")
control = socket(AF_UNIX, SOCK_STREAM, 0, CONTROL)
control.settimeout(None)
parts = {}
before_end = []  # what to do when a cell is over: figures to show, and so on


class State:
    pid = os.getpid()
    thread = get_ident()
    running = False
    last_writer = None  # a Stream, or "frame"
    count = 0
    future = 0  # flags of the compiler that cells have set
    watchers = None  # the part "shell", once somebody has asked for it


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


def mend_streams():
    """After a cell that closed what all cells write to."""
    for fd, kept in spare_outputs.items():
        try:
            os.fstat(fd)
        except OSError:
            os.dup2(kept, fd)
    if own_stdout.closed or own_stderr.closed:
        open_streams()
    if sys.stdout is None or getattr(sys.stdout, "closed", None) is True:
        sys.stdout = own_stdout
    if sys.stderr is None or getattr(sys.stderr, "closed", None) is True:
        sys.stderr = own_stderr


def open_streams():
    global own_stdout, own_stderr
    texts = []
    for fd, name in ((1, "<stdout>"), (2, "<stderr>")):
        raw = Stream(fd)
        text = io.TextIOWrapper(
            io.BufferedWriter(raw, 1 << 16), encoding="utf-8", errors="backslashreplace",
            line_buffering=True, write_through=fd == 2)
        text.mode = "w"
        texts.append((raw, text))
    texts[0][0].other, texts[1][0].other = texts[1][1], texts[0][1]
    own_stdout = sys.stdout = sys.__stdout__ = texts[0][1]
    own_stderr = sys.stderr = sys.__stderr__ = texts[1][1]


own_stdout = own_stderr = None
spare_outputs = {}  # each of them a second time, for cells that close the first


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


def execute(code):
    body, last, asynchronous = compiled(code)
    if asynchronous:
        return part("awaiting").await_all(body, last)
    if body:
        exec(body, namespace)
    return eval(last, namespace) if last else None


def event_of_value(value):
    kind = type(value)
    # Who has the shell may have said how such values look.
    if State.watchers is None and (kind is int or kind is float or kind is bool or kind is str):
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
            remember_input(code, State.count)
            if State.watchers:
                State.watchers.tell_before(code)
            value = execute(code)
            if value is not None:
                event = event_of_value(value)
                remember_value(value)
                if event:
                    events.append(event)
        finally:
            if before_end or State.watchers:
                if events:
                    send_event(events.pop())
                for action in before_end:
                    action()
                if State.watchers:
                    State.watchers.tell_after(sys.exc_info()[1])
            State.running = False
    except BaseException as error:
        State.running = False
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
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
        mend_streams()
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


def displayhook(value):
    part("display").displayhook(value)


def get_ipython():
    State.watchers = part("shell")
    return State.watchers.shell


def set_up():
    import signal
    signal.signal(signal.SIGINT, on_interrupt)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for fd in (1, 2):
        spare_outputs[fd] = os.dup(fd)
    open_streams()
    sys.stdin = sys.__stdin__ = open(0, closefd=False)
    sys.displayhook = displayhook
    builtins.input = no_input
    builtins.display = display
    builtins.get_ipython = get_ipython
    builtins.__IPYTHON__ = True
    sys.argv = [""]
    for name in [name for name in namespace if not name.startswith("__")]:
        del namespace[name]


set_up()
core.__dict__.update(
    {name: value for name, value in globals().items() if not name.startswith("__")})
part("finders")
compiled = part("compiling").compiled
remember_input, remember_value = part("history").remember_input, part("history").remember_value
send(b"ready\n")
serve()
