"""A real engine for end-to-end tests: `hearth up` on a state folder of its own."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ.get("HEARTH_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"))
HEARTH = str(BIN / "hearth")
SECONDS = 60  # for what takes a moment, on a machine that is busy or stands still for a while
# What `hearth up` itself waits for its runtime, and a little more.
START_SECONDS = 200
EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def need_root():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root: sandboxes are made by the kernel")
    if not pathlib.Path(HEARTH).exists():
        raise unittest.SkipTest(f"needs {HEARTH}: build first")


def wait_until(condition, seconds=SECONDS, what="it"):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen within {seconds} s")


def free_ports(count):
    """Of loopback, where whoever is told to take one must find it free: below those that the kernel gives to anybody."""
    lowest = int(EPHEMERAL.read_text().split()[0])
    found = []
    while len(found) < count:
        port = random.randrange(10_000, max(lowest, 20_000))
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in found:
                found.append(port)
    return found


class Engine:
    def __init__(self, state_dir=None):
        self.own_folder = state_dir is None
        self.state_dir = state_dir or tempfile.mkdtemp(prefix="hearth-e2e-")
        self.process = None

    def start(self, *extra):
        if self.process:
            self.output.close()
        # Sandboxes that nobody asked for would be counted.
        extra = extra if "--e2b-warm" in extra or "--no-e2b" in extra else ("--e2b-warm", "0", *extra)
        ports = [word for name in ("kube", "api", "e2b", "metrics") for word in (f"--{name}-port", "0")]
        self.output = open(os.path.join(tempfile.gettempdir(), f"hearth-e2e-{os.getpid()}-{os.path.basename(self.state_dir)}.log"), "w+")
        self.process = subprocess.Popen([HEARTH, "up", "--state-dir", self.state_dir, *ports, *extra],
                                        stdout=self.output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: self.is_ready() or self.process.poll() is not None, START_SECONDS, "ready")
        except AssertionError:
            self.remove()  # nobody else will: whoever asked for it gets no engine
            raise
        if self.process.poll() is not None:
            raise AssertionError(f"hearth up ended: {self.said()}")
        return self

    def said(self):
        with open(self.output.name) as text:
            return text.read()

    def is_ready(self):
        return re.search(r"^ready\b", self.said(), re.M)

    def end(self, sig=signal.SIGINT):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
        code = self.process.wait(2 * SECONDS)
        self.output.close()
        os.unlink(self.output.name)
        return code

    def remove(self):
        """Also of an engine that was killed: without its folder nobody could find what it left."""
        if self.process and self.process.poll() and os.path.isdir(self.state_dir):
            with contextlib.suppress(AssertionError):  # one that never started
                self.start("--warm", "0")
        if self.process and self.process.poll() is None:
            self.end()
        if self.own_folder:
            shutil.rmtree(self.state_dir, ignore_errors=True)

    def endpoints(self):
        return json.loads(pathlib.Path(self.state_dir, "endpoints.json").read_text())

    def hearth(self, *words, stdin=None, timeout=2 * SECONDS, **kwargs):
        """Runs a client verb; the result has returncode, stdout, stderr as text."""
        env = dict(os.environ, HEARTH_STATE_DIR=self.state_dir, **kwargs.pop("env", {}))
        given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run([HEARTH, *words], env=env, capture_output=True, text=True, timeout=timeout, **given, **kwargs)

    def sandboxes(self):
        return json.loads(self.hearth("ls", "-o", "json").stdout)

    def runtime_pid(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"hearth-runtime") and self.state_dir.encode() in words:
                return int(pid)
        return None


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def engine_process(pid):
    """What it is, None where it is none. An API server alone, of a test beside this one, makes nothing on the machine."""
    name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")  # a zombie has none
    return f"{name} {pid}" if name.startswith("hearth") and len(words) > 1 and words[1] != b"apiserver" else None


def host_state():
    """What an engine must not leave anything of."""
    processes, namespaces = set(), set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            engine = engine_process(pid)
            processes.update({engine} - {None})
            # Those of strangers come and go. What is in a sandbox has users of its own.
            if engine or os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user"):
                namespaces.update(os.readlink(f"/proc/{pid}/ns/{kind}") for kind in os.listdir(f"/proc/{pid}/ns"))
        except OSError:
            continue
    mounts = set(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())
    corners = [pathlib.Path("/sys/fs/cgroup/hearth"), *pathlib.Path("/sys/fs/cgroup").glob("*/hearth")]
    cgroups = {entry.path for corner in corners if corner.is_dir() for entry in os.scandir(corner) if entry.is_dir()}
    return {"processes": processes, "namespaces": namespaces, "mounts": mounts, "cgroups": cgroups,
            "folders": {str(path) for place in ("/run", "/dev/shm") for path in pathlib.Path(place).glob("hearth/*")},
            "links": set(os.listdir("/sys/class/net")), "addresses": host_addresses(), "tables": nft_tables()}


def expect_host_as_before(before, kinds=("processes", "cgroups", "folders", "links", "addresses", "tables")):
    """Whatever tests beside this one do for a while."""
    def left():
        now = host_state()
        return {kind: sorted(now[kind] - before[kind])[:20] for kind in kinds if now[kind] - before[kind]}
    try:
        wait_until(lambda: not left())
    except AssertionError:
        raise AssertionError(f"left behind: {left()}") from None


def host_addresses():
    """The machine's own, of IPv4."""
    trie = pathlib.Path("/proc/net/fib_trie").read_text()
    return set(re.findall(r"\|-- (\S+)\n\s+/32 host LOCAL", trie))


def nft_tables():
    """None where there is no nft to ask."""
    if not shutil.which("nft"):
        return set()
    return set(subprocess.run(["nft", "list", "tables"], capture_output=True, text=True).stdout.splitlines())
