"""kubectl and the Python client, unchanged, into real sandboxes: exec, attach, cp, logs, port-forward.

Pods are made by hand here: what a controller would write (which sandbox a container is) is written by the test.
Every conversation is held by the oldest and the newest kubectl there is, over SPDY and over WebSocket.
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.error
import urllib.request

from client_venv import run_with

CLIENT = ["kubernetes==35.0.0"]
if __name__ == "__main__":
    run_with(CLIENT)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import kubernetes  # noqa: E402
from hearth import Engine, need_root, wait_until  # noqa: E402
from kubectls import find_kubectls  # noqa: E402

TALK = """
echo one; echo two >&2; echo three
while read line; do echo "got $line"; done
exec sleep 1000
"""


class Cluster:
    """An engine with two pods: `talk`, whose main process reads lines, and `shell`, whose main process has a terminal."""

    def __init__(self):
        need_root()
        self.engine = Engine()
        self.folder = tempfile.mkdtemp(prefix="hearth-kubectl-")

    def start(self):
        self.engine.start()
        self.config = f"{self.engine.state_dir}/admin.kubeconfig"
        self.api = kubernetes.config.new_client_from_config(self.config)
        self.core = kubernetes.client.CoreV1Api(self.api)
        wait_until(lambda: self.has_account(), 30, "the default service account")
        self.make_pod("talk", "-di", "sh", "-c", TALK)
        self.make_pod("shell", "-dit", "sh")
        served = self.engine.hearth("exec", "-d", "talk", "--", "sh", "-c", "mkdir /tmp/www; echo hello > /tmp/www/page; exec "
                                    "python3 -m http.server 8000 --bind 127.0.0.1 --directory /tmp/www")
        assert served.returncode == 0, served.stderr
        wait_until(lambda: "8000" in self.engine.hearth("ports", "talk").stdout, 30, "a server inside")
        return self

    def has_account(self):
        return any(item.metadata.name == "default" for item in self.core.list_namespaced_service_account("default").items)

    def make_pod(self, name, flags, *command):
        made = self.engine.hearth("run", flags, "--name", name, "--", *command)
        assert made.returncode == 0, made.stderr
        container = {"name": "main", "image": "host", "stdin": True, "tty": "t" in flags}
        self.core.create_namespaced_pod("default", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                                                    "spec": {"nodeName": "here", "containers": [container]}})
        running = {"name": "main", "image": "host", "imageID": "", "ready": True, "restartCount": 0,
                   "containerID": f"hearth://{name}", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        self.core.patch_namespaced_pod_status(name, "default", {
            "status": {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": [running]}})

    def end(self):
        self.engine.hearth("rm", "--all")
        self.engine.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes_with(self, word):
        """Of sandboxes, as the host sees them."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", word.encode()]:
                found.append(pid)
        return found


CLUSTER = None


def setUpModule():
    global CLUSTER
    cluster = Cluster()
    unittest.addModuleCleanup(cluster.end)
    CLUSTER = cluster.start()


class Kubectl:
    """One conversation each; mixed into a test case for each way to talk."""
    program = None
    environment = {}

    def env(self):
        return dict(os.environ, KUBECONFIG=CLUSTER.config, HOME=CLUSTER.folder, **self.environment)

    def run_kubectl(self, *words, stdin=None, timeout=120, text=True):
        given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run([self.program, *words], env=self.env(), capture_output=True, text=text, timeout=timeout, **given)

    def start_kubectl(self, *words, **kwargs):
        process = subprocess.Popen([self.program, *words], env=self.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, **kwargs)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stdin and process.stdin.close()))
        return process

    # exec

    def test_output_and_exit_code(self):
        done = self.run_kubectl("exec", "talk", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        self.assertEqual((done.returncode, done.stdout), (7, "out\n"), done.stderr)
        self.assertIn("err\n", done.stderr)
        self.assertEqual(self.run_kubectl("exec", "talk", "--", "true").returncode, 0)
        self.assertEqual(self.run_kubectl("exec", "talk", "--", "sh", "-c", "kill -9 $$").returncode, 137)

    def test_a_program_that_is_not_there(self):
        done = self.run_kubectl("exec", "talk", "--", "no-such-program")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no-such-program", done.stderr)

    def test_input_has_an_end(self):
        done = self.run_kubectl("exec", "-i", "talk", "--", "wc", "-c", stdin="x" * 300_000)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "300000"), done.stderr)

    def test_much_output(self):
        done = self.run_kubectl("exec", "talk", "--", "sh", "-c", "head -c 8000000 /dev/zero", text=False)
        self.assertEqual((done.returncode, len(done.stdout)), (0, 8_000_000))

    def test_a_terminal(self):
        screen = Screen(self, "exec", "-it", "talk", "--", "sh")
        wait_until(lambda: screen.ask("stty size\n", r"(\d+ \d+)\r\n") == "40 100", what="the size")
        screen.resize(50, 120)
        wait_until(lambda: screen.ask("stty size\n", r"(\d+ \d+)\r\n") == "50 120", what="the new size")
        screen.type("exit 9\n")
        self.assertEqual(screen.exit_code(), 9)

    def test_ctrl_c_reaches_the_command_and_not_kubectl(self):
        screen = Screen(self, "exec", "-it", "talk", "--", "sh", "-c", "trap 'echo stopped; exit 5' INT; echo ready; while :; do sleep 0.1; done")
        screen.wait_for("ready")
        screen.type("\x03")
        screen.wait_for("stopped")
        self.assertEqual(screen.exit_code(), 5)

    def test_a_client_that_is_killed_takes_its_command_along(self):
        word = f"7{os.getpid()}{abs(hash(self.id())) % 10000:04}"
        process = self.start_kubectl("exec", "-i", "talk", "--", "sleep", word, stdin=subprocess.PIPE)
        wait_until(lambda: CLUSTER.processes_with(word), 30, "the command")
        process.kill()
        wait_until(lambda: not CLUSTER.processes_with(word), 30, "its end")

    # attach

    def test_attach_to_a_terminal(self):
        screen = Screen(self, "attach", "-it", "shell")

        def answered():
            screen.type("echo $((6 * 7))\n")  # what is typed before kubectl has its terminal ready is lost
            screen.read_more(1)
            return re.search(r"42\r\n", screen.seen)
        wait_until(answered, what="an answer")

    def test_attach_to_pipes(self):
        process = self.start_kubectl("attach", "-i", "talk", stdin=subprocess.PIPE)
        word = f"hello-{abs(hash(self.id())) % 1000000}"

        def answered():
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            return select.select([process.stdout], [], [], 0.5)[0]
        wait_until(answered, 30, "an answer")
        line = process.stdout.readline()
        while line and "got" not in line:
            line = process.stdout.readline()
        self.assertEqual(line, f"got {word}\n")

    # cp

    def test_cp_both_ways(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=CLUSTER.folder))
        content = os.urandom(1_000_000)
        (folder / "there").write_bytes(content)
        name = f"/tmp/{folder.name}"
        done = self.run_kubectl("cp", str(folder / "there"), f"talk:{name}")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_kubectl("cp", f"talk:{name}", str(folder / "back"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((folder / "back").read_bytes(), content)

    # logs

    def test_logs(self):
        done = self.run_kubectl("logs", "talk")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()[:3]), ["one", "three", "two"])
        self.assertEqual(len(self.run_kubectl("logs", "talk", "--tail", "1").stdout.splitlines()), 1)
        for line in self.run_kubectl("logs", "talk", "--timestamps").stdout.splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z ")
        # Others may have written in between.
        wait_until(lambda: self.run_kubectl("logs", "talk", "--since", "1h").stdout == self.run_kubectl("logs", "talk").stdout)
        self.assertEqual(self.run_kubectl("logs", "talk", "--limit-bytes", "3").stdout, "one"[:3])
        self.assertNotEqual(self.run_kubectl("logs", "talk", "-c", "other").returncode, 0)
        self.assertNotEqual(self.run_kubectl("logs", "talk", "--previous").returncode, 0)

    def test_logs_that_go_on(self):
        process = self.start_kubectl("logs", "-f", "--tail", "1", "--timestamps", "talk")
        process.stdout.readline()
        word = f"news-{abs(hash(self.id())) % 1000000}"
        typed = subprocess.Popen([self.program, "attach", "-i", "talk"], env=self.env(), stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (typed.kill(), typed.communicate()))

        def seen():
            typed.stdin.write(f"{word}\n")
            typed.stdin.flush()
            return select.select([process.stdout], [], [], 0.5)[0] and word in process.stdout.readline()
        wait_until(seen, 30, "the new line")

    # port-forward

    def forward(self, *ports):
        process = self.start_kubectl("port-forward", "pod/talk", *ports)
        return process, int(re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> ", process.stdout.readline())[1])

    def test_port_forward(self):
        process, port = self.forward(":8000")
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/page", timeout=20) as answer:
                self.assertEqual(answer.read(), b"hello\n")
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/no-such-file", timeout=20)
        self.assertIsNone(process.poll())

    def test_port_forward_where_nobody_listens(self):
        process, port = self.forward(":8001")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.settimeout(20)
            try:
                connection.sendall(b"hello")
                self.assertEqual(connection.recv(100), b"")
            except ConnectionError:
                pass
        deadline = time.monotonic() + 60
        said = ""
        while "nobody listens on port 8001" not in said and time.monotonic() < deadline:
            line = process.stdout.readline()
            self.assertTrue(line, f"kubectl ended: {said}")
            said += line
        self.assertIn("nobody listens on port 8001", said)


class Screen:
    """kubectl on a terminal of 40 rows and 100 columns."""

    def __init__(self, case, *words):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.update(case.env())
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
            os.execv(case.program, [case.program, *words])
        self.resize(40, 100)
        self.seen = ""
        self.code = None
        case.addCleanup(self.close)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read_more(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += piece.decode(errors="replace")
        return bool(piece)

    def wait_for(self, pattern):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if found := re.search(pattern, self.seen):
                return found
            self.read_more(0.2)
        raise AssertionError(f"{pattern!r} was not seen: {self.seen!r}")

    def ask(self, text, pattern):
        self.seen = ""
        self.type(text)
        return self.wait_for(pattern)[1]

    def exit_code(self):
        def ended():
            self.read_more(0)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            return pid
        wait_until(ended, 30, "the end of kubectl")
        return self.code

    def close(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


class PythonClientTest(unittest.TestCase):
    """WebSocket, version 4 of the channels."""

    def stream(self, *command, **kwargs):
        from kubernetes.stream import stream
        options = {"stdin": False, "stdout": True, "stderr": True, "tty": False, **kwargs}
        # stream() takes the client's request method over; one of its own keeps the others whole.
        core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(CLUSTER.config))
        return stream(core.connect_get_namespaced_pod_exec, "talk", "default", command=list(command), **options)

    def test_output(self):
        self.assertEqual(self.stream("sh", "-c", "echo out; echo err >&2").splitlines(), ["out", "err"])

    def test_streams_and_exit_code(self):
        talk = self.stream("sh", "-c", "read line; echo got $line; echo err >&2; exit 3", stdin=True, _preload_content=False)
        talk.write_stdin("hello\n")
        talk.run_forever(timeout=60)
        self.assertEqual(talk.read_stdout(), "got hello\n")
        self.assertEqual(talk.read_stderr(), "err\n")
        self.assertEqual(talk.returncode, 3)

    def test_a_client_that_leaves(self):
        word = f"8{os.getpid()}"
        talk = self.stream("sleep", word, stdin=True, _preload_content=False)
        wait_until(lambda: CLUSTER.processes_with(word), 30, "the command")
        talk.close()
        wait_until(lambda: not CLUSTER.processes_with(word), 30, "its end")

    def test_port_forward(self):
        from kubernetes.stream import portforward
        core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(CLUSTER.config))
        forward = portforward(core.connect_get_namespaced_pod_portforward, "talk", "default", ports="8000")
        connection = forward.socket(8000)
        connection.setblocking(True)
        connection.settimeout(20)
        connection.sendall(b"GET /page HTTP/1.0\r\n\r\n")
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        self.assertTrue(answer.endswith(b"hello\n"), answer)
        self.assertIsNone(forward.error(8000))

    def test_port_forward_where_nobody_listens(self):
        from kubernetes.stream import portforward
        core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(CLUSTER.config))
        forward = portforward(core.connect_get_namespaced_pod_portforward, "talk", "default", ports="8001")
        forward.socket(8001).settimeout(20)
        wait_until(lambda: forward.error(8001), 30, "the error")
        self.assertIn("nobody listens on port 8001", forward.error(8001))

    def test_logs(self):
        self.assertIn("three\n", CLUSTER.core.read_namespaced_pod_log("talk", "default"))


WAYS = {
    "Spdy": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"},
    "WebSocket": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"},
}


def load_tests(loader, tests, _pattern):
    """A case for each kubectl and each way: those before 1.30 know only SPDY for everything."""
    found = find_kubectls()
    chosen = {version: found[version] for version in (list(found)[:1] + list(found)[-1:])}
    suite = unittest.TestSuite([loader.loadTestsFromTestCase(PythonClientTest)])
    for version, program in chosen.items():
        for way, environment in WAYS.items():
            if way == "WebSocket" and int(version.split(".")[1]) < 30:
                continue
            name = f"Kubectl{version.replace('.', '_')}{way}Test"
            case = type(name, (Kubectl, unittest.TestCase), {"program": program, "environment": environment,
                                                             "__module__": __name__, "__qualname__": name})
            suite.addTests(loader.loadTestsFromTestCase(case))
    if not chosen:
        suite.addTest(unittest.FunctionTestCase(lambda: unittest.TestCase().skipTest("needs kubectl")))
    return suite


if __name__ == "__main__":
    unittest.main(verbosity=2)
