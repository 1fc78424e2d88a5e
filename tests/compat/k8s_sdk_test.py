"""The Python SDK of Kubernetes' agent-sandbox, unchanged, against both of its runtimes as we serve them.

What it would ask a Kubernetes API for (where is the sandbox?) is told by a stand-in; everything that goes to the
sandbox itself is the SDK's own.
"""
import io
import os
import pathlib
import re
import subprocess
import sys
import unittest

from client_venv import run_with

SDK = ["k8s-agent-sandbox==1.0.8"]
if __name__ == "__main__":
    run_with(SDK)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from hearth import HEARTH, Engine, need_root  # noqa: E402
from k8s_agent_sandbox.exceptions import SandboxRequestError  # noqa: E402
from k8s_agent_sandbox.models import SandboxDirectConnectionConfig, SandboxdInClusterConnectionConfig  # noqa: E402
from k8s_agent_sandbox.sandbox import Sandbox  # noqa: E402

PORTS = {"runtime-api": 8888, "sandboxd": 8080}


class Server:
    """A sandbox whose two surfaces are on our loopback."""

    def start(self):
        need_root()
        self.engine = Engine().start()
        box = self.engine.hearth("run", "-d", "--serve", ",".join(PORTS), "--", "sleep", "1000")
        if box.returncode != 0:
            self.engine.remove()
            raise AssertionError(f"hearth run --serve: {box.stderr}")
        self.forward = subprocess.Popen(
            [HEARTH, "forward", box.stdout.strip(), *(f"0:{port}" for port in PORTS.values())],
            env=dict(os.environ, HEARTH_STATE_DIR=self.engine.state_dir), stdout=subprocess.PIPE, text=True)
        self.ports = {}
        for name in PORTS:
            line = self.forward.stdout.readline()
            self.ports[name] = int(re.match(r"127\.0\.0\.1:(\d+) -> ", line)[1])
        return self

    def end(self):
        self.forward.terminate()
        self.forward.wait(60)
        self.forward.stdout.close()
        self.engine.hearth("rm", "--all")
        self.engine.remove()


SERVER = None


def port_of(surface):
    """Where a surface can be reached: given by hand (HEARTH_RUNTIME_API_PORT, ...), or of a sandbox started here."""
    given = os.environ.get(f"HEARTH_{surface.upper().replace('-', '_')}_PORT")
    if given:
        return int(given)
    global SERVER
    SERVER = SERVER or Server().start()
    return SERVER.ports[surface]


def tearDownModule():
    if SERVER:
        SERVER.end()


class NoKubernetes:
    """Stands in for the Kubernetes API."""

    injected_api_client = None

    def get_sandbox(self, name, namespace):
        return {"metadata": {"name": name, "namespace": namespace}, "status": {"podIPs": ["127.0.0.1"]}}


def connect(config):
    return Sandbox(claim_name="claim", sandbox_id="box", connection_config=config, k8s_helper=NoKubernetes())


class FileVerbs:
    """What the SDK does with files is the same whatever the runtime."""

    def test_moves_files(self):
        for content in (b"", b"text\n", bytes(range(256)) * 1000, b"\r\n--boundary--\r\n"):
            self.box.files.write("moved.bin", content)
            self.assertEqual(self.box.files.read("moved.bin"), content)

    def test_makes_the_folders_on_the_way(self):
        self.box.files.write("some/deep/folder/x.txt", "text")
        self.assertEqual(self.box.files.read("some/deep/folder/x.txt"), b"text")
        self.assertEqual(self.box.files.read("/some/deep/folder/x.txt"), b"text")

    def test_takes_strange_names(self):
        for name in ("größe €.txt", "100%.txt", "a b+c&d=e?.txt", "it's.txt", "%41.txt", "semi;colon.txt"):
            self.box.files.write(name, name)
            self.assertTrue(self.box.files.exists(name), name)
            self.assertEqual(self.box.files.read(name).decode(), name)
            self.assertIn(name, [entry.name for entry in self.box.files.list(".")])

    def test_streams(self):
        content = os.urandom(3 << 20)
        self.box.files.write("stream.bin", io.BytesIO(content))
        taken = io.BytesIO()
        self.assertEqual(self.box.files.read_to("stream.bin", taken), len(content))
        self.assertEqual(taken.getvalue(), content)
        with self.assertRaises(RuntimeError):
            self.box.files.read_to("stream.bin", io.BytesIO(), max_bytes=1000)

    def test_lists(self):
        self.box.files.write("listed/file", "12345")
        self.box.files.write("listed/folder/inner", "")
        entries = {entry.name: entry for entry in self.box.files.list("listed")}
        self.assertEqual(sorted(entries), ["file", "folder"])
        self.assertEqual((entries["file"].type, entries["file"].size), ("file", 5))
        self.assertEqual(entries["folder"].type, "directory")
        self.assertGreater(entries["file"].modified.timestamp(), 1_700_000_000)

    def test_tells_what_exists(self):
        self.box.files.write("there", "")
        self.assertTrue(self.box.files.exists("there"))
        self.assertTrue(self.box.files.exists("."))
        self.assertFalse(self.box.files.exists("not-there"))

    def test_says_what_is_not_there(self):
        for ask in (self.box.files.read, self.box.files.list):
            with self.assertRaises(SandboxRequestError) as caught:
                ask("not-there")
            self.assertEqual(caught.exception.status_code, 404)

    def test_lets_nobody_out(self):
        for path in ("../../etc/passwd", "a/../../../etc/passwd"):
            with self.assertRaises(SandboxRequestError) as caught:
                self.box.files.read(path, allow_unsafe_paths=True)
            self.assertEqual(caught.exception.status_code, 403)
            with self.assertRaises(SandboxRequestError) as caught:
                self.box.files.write(path, "bad", allow_unsafe_paths=True)
            self.assertEqual(caught.exception.status_code, 403)


class RuntimeApiTest(FileVerbs, unittest.TestCase):
    def setUp(self):
        self.box = connect(SandboxDirectConnectionConfig(api_url=f"http://127.0.0.1:{port_of('runtime-api')}"))
        self.addCleanup(self.box.connector.close)

    def test_runs_commands(self):
        result = self.box.commands.run("echo 'hello world'")
        self.assertEqual((result.stdout, result.stderr, result.exit_code, result.timed_out), ("hello world\n", "", 0, False))
        result = self.box.commands.run("sh -c 'echo out; echo err >&2; exit 3'")
        self.assertEqual((result.stdout, result.stderr, result.exit_code), ("out\n", "err\n", 3))

    def test_tells_what_cannot_be_run(self):
        for command in ("no-such-program", "echo 'open"):
            result = self.box.commands.run(command)
            self.assertEqual((result.stdout, result.exit_code), ("", 1))
            self.assertTrue(result.stderr.startswith("Failed to execute command: "), result.stderr)

    def test_ends_what_takes_too_long(self):
        result = self.box.commands.run("sleep 1000", command_timeout=0.5)
        self.assertTrue(result.timed_out)
        self.assertIn("timed out", result.stderr)

    def test_commands_see_the_files(self):
        self.box.files.write("seen/by.sh", "echo from a file")
        self.assertEqual(self.box.commands.run("sh seen/by.sh").stdout, "from a file\n")
        self.box.commands.run("sh -c 'echo made > by-command'")
        self.assertEqual(self.box.files.read("by-command"), b"made\n")

    def test_cannot_delete(self):
        with self.assertRaises(NotImplementedError):
            self.box.files.delete("x")


class SandboxdTest(FileVerbs, unittest.TestCase):
    def setUp(self):
        self.box = connect(SandboxdInClusterConnectionConfig(mode="in-cluster-pod-ip", rest_port=port_of("sandboxd")))
        self.addCleanup(self.box.connector.close)

    def test_tells_modes(self):
        self.box.files.write("modes/x", "")
        self.assertEqual([entry.mode for entry in self.box.files.list("modes")], ["0644"])

    def test_deletes(self):
        self.box.files.write("deleted/x", "")
        with self.assertRaises(SandboxRequestError) as caught:
            self.box.files.delete("deleted")
        self.assertEqual(caught.exception.status_code, 409)
        self.box.files.delete("deleted/x")
        self.box.files.delete("deleted")
        self.assertFalse(self.box.files.exists("deleted"))
        self.box.files.write("deleted/again/x", "")
        self.box.files.delete("deleted", recursive=True)
        self.assertFalse(self.box.files.exists("deleted"))
        with self.assertRaises(SandboxRequestError) as caught:
            self.box.files.delete("deleted")
        self.assertEqual(caught.exception.status_code, 404)


if __name__ == "__main__":
    unittest.main(verbosity=2)
