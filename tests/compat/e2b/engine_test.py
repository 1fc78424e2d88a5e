"""E2B's SDKs and command line, unchanged, against `hearth up`."""
import contextlib
import hashlib
import json
import os
import pathlib
import pty
import subprocess
import tempfile
import unittest

from engine import HERE, EngineCase, free_ports, wait_until

from client_venv import node_folder_with, python_with, wheels_of
from names import names_are_here

NEW_PYTHON = ["e2b==2.63.0", "e2b-code-interpreter==2.11.5"]
OLD_PYTHON = ["e2b==2.45.1"]
NEW_NODE = ["e2b@2.51.0", "@e2b/code-interpreter@2.8.0"]
OLD_NODE = ["e2b@2.45.0"]
CLI = ["@e2b/cli@2.19.0"]


class Packages(EngineCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.settings["FEW_KEY"] = cls.team("few", "--sandboxes", "1")

    def run_python(self, packages, name):
        self.run_script(python_with(packages), str(HERE / name))

    def test_python(self):
        self.run_python(NEW_PYTHON, "sandboxes_python.py")

    def test_python_of_before(self):
        self.run_python(OLD_PYTHON, "sandboxes_python.py")

    def test_careless_python(self):
        self.run_python(NEW_PYTHON, "edges_python.py")

    def test_careless_python_of_before(self):
        self.run_python(OLD_PYTHON, "edges_python.py")

    def test_python_asynchronous(self):
        self.run_python(NEW_PYTHON, "async_python.py")

    def test_python_cells(self):
        # Sandboxes of the image host have the system's Python.
        asked = subprocess.run(["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
        try:
            wheels = str(wheels_of(["matplotlib", "pandas"], asked.stdout.strip()))
        except unittest.SkipTest:
            wheels = ""  # all else is looked at without them
        self.run_script(python_with(NEW_PYTHON), str(HERE / "cells_python.py"), WHEELS=wheels)

    def test_python_of_another_team(self):
        """It uses the public template of the first one, and its second sandbox is a warm one."""
        script = "from e2b import Sandbox; box = Sandbox.create(timeout=120); print(box.sandbox_id, box.commands.run('echo $((6*7))').stdout)"
        key = self.team("other")

        def get(*words):
            done = self.engine.hearth("get", *words, "-n", "other", "-o", "json")
            return json.loads(done.stdout) if done.returncode == 0 else {}

        def create():
            name, said = self.run_script(python_with(NEW_PYTHON), "-c", script, E2B_API_KEY=key).split()
            self.assertEqual(said, "42")
            return get("sandbox", name)["metadata"]["labels"]["agents.x-k8s.io/launch-type"]
        self.assertEqual(create(), "cold")
        wait_until(lambda: get("pool", "default.base").get("status", {}).get("readyReplicas") == 2, 60, "a full pool")
        self.assertEqual(create(), "warm")

    def test_javascript(self):
        self.run_node(node_folder_with(NEW_NODE), "sandboxes.mjs")

    def test_javascript_of_before(self):
        self.run_node(node_folder_with(OLD_NODE), "sandboxes.mjs")

    def test_careless_javascript(self):
        self.run_node(node_folder_with(NEW_NODE), "edges.mjs")

    def test_careless_javascript_of_before(self):
        self.run_node(node_folder_with(OLD_NODE), "edges.mjs")

    def test_javascript_cells(self):
        self.run_node(node_folder_with(NEW_NODE), "cells.mjs")


class Encrypted(EngineCase):
    """The SDKs over TLS, with the engine's own authority, as they are told of one."""

    python = """
from e2b import Sandbox
box = Sandbox.create(timeout=60)
box.files.write("note", "kept")
print(box.commands.run("cat note").stdout)
box.kill()
"""
    node = """
import { Sandbox } from 'e2b'
const box = await Sandbox.create({ timeoutMs: 60_000 })
await box.files.write('note', 'kept')
console.log((await box.commands.run('cat note')).stdout)
await box.kill()
"""

    @classmethod
    def setUpClass(cls):
        [port] = free_ports(1)
        cls.options = ("--e2b-warm", "2", "--warm", "2", "--e2b-domain", "localhost", "--e2b-tls-port", str(port))
        super().setUpClass()
        url = f"https://localhost:{port}"
        cls.settings |= {"E2B_API_URL": url, "E2B_SANDBOX_URL": url}
        found = list(pathlib.Path(cls.engine.state_dir).rglob("pki/ca.crt"))
        cls.authority = str(found[0])

    def run_refused(self, *words):
        """Without the authority nobody is talked to."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("E2B_")}
        done = subprocess.run(words, capture_output=True, text=True, timeout=self.seconds, env={**clean, **self.settings})
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("certificate", (done.stdout + done.stderr).lower())

    def test_python(self):
        words = python_with(NEW_PYTHON), "-c", self.python
        self.assertEqual(self.run_script(*words, SSL_CERT_FILE=self.authority), "kept\n")
        self.run_refused(*words)

    def test_javascript(self):
        script = node_folder_with(NEW_NODE) / "encrypted.mjs"
        script.write_text(self.node)
        self.assertEqual(self.run_script("node", str(script), NODE_EXTRA_CA_CERTS=self.authority), "kept\n")
        self.run_refused("node", str(script))


class Named(EngineCase):
    """The SDKs with nothing but a domain, as a server with a wildcard in DNS has it: every sandbox, and every port, has a name."""

    python = """
import os, ssl, time, urllib.error, urllib.request
from e2b_code_interpreter import Sandbox
box = Sandbox.create(timeout=120)
assert box.get_info().sandbox_domain == os.environ["E2B_DOMAIN"], box.get_info()

def get(url):
    while True:
        try:
            return urllib.request.urlopen(url, timeout=60).read().decode()
        except urllib.error.HTTPError as error:  # nobody listens yet
            assert error.code == 502, error

box.files.write("web/index.html", "page")
box.commands.run("cd web && python3 -m http.server 8000", background=True)
print(get("https://" + box.get_host(8000)), get(box.download_url("web/index.html")), box.run_code("6 * 7").text)
box.kill()
"""
    node = """
import { Sandbox } from '@e2b/code-interpreter'
const box = await Sandbox.create({ timeoutMs: 120_000 })
const get = async (url) => {
  for (;;) {
    const answer = await fetch(url)
    if (answer.status !== 502) return await answer.text() // somebody listens
  }
}
await box.files.write('web/index.html', 'page')
await box.commands.run('cd web && python3 -m http.server 8000', { background: true })
const page = await get('https://' + box.getHost(8000))
console.log(page, await get(await box.downloadUrl('web/index.html')), (await box.runCode('6 * 7')).text)
const form = new FormData()
form.append('file', new Blob(['sent']), 'sent')
await fetch(await box.uploadUrl(), { method: 'POST', body: form })
if ((await box.files.read('sent')) !== 'sent') throw new Error('not sent')
await box.kill()
"""

    @classmethod
    def setUpClass(cls):
        [port] = free_ports(1)
        cls.options = ("--e2b-warm", "2", "--warm", "2", "--e2b-domain", "sbx.test", "--e2b-tls-port", str(port))
        super().setUpClass()
        [authority] = pathlib.Path(cls.engine.state_dir).rglob("pki/ca.crt")
        cls.settings = {"E2B_API_KEY": cls.settings["E2B_API_KEY"], "E2B_DOMAIN": f"sbx.test:{port}",
                        "SSL_CERT_FILE": str(authority), "NODE_EXTRA_CA_CERTS": str(authority)}

    def expect_all_reached(self, *words):
        with names_are_here() as resolving:
            self.assertEqual(self.run_script(*resolving, *words), "page page 42\n")

    def test_python(self):
        self.expect_all_reached(python_with(NEW_PYTHON), "-c", self.python)

    def test_javascript(self):
        script = node_folder_with(NEW_NODE) / "named.mjs"
        script.write_text(self.node)
        self.expect_all_reached("node", str(script))


class CommandLine(EngineCase):
    options = ("--e2b-warm", "2", "--warm", "2")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = node_folder_with(CLI) / "node_modules/.bin/e2b"
        home = tempfile.TemporaryDirectory(prefix="hearth-e2b-cli-")  # no settings of whoever runs this
        cls.addClassCleanup(home.cleanup)
        cls.settings["HOME"] = home.name

    def e2b(self, *words):
        return self.run_script(str(self.program), *words)

    def e2b_fails(self, *words, code=1):
        """What it says, on both streams."""
        env = {**{name: value for name, value in os.environ.items() if not name.startswith("E2B_")}, **self.settings}
        done = subprocess.run([self.program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self.seconds, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def in_terminal(self, *words, types):
        """What a person sees who types that at the first prompt, until it is over."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(self.program, [self.program, *words], {**os.environ, **self.settings})
        seen = b""
        with contextlib.suppress(OSError):  # its other end is closed
            while piece := os.read(terminal, 4096):
                seen += piece
                if types and b"$ " in seen:
                    os.write(terminal, types)
                    types = b""
        os.close(terminal)
        self.assertEqual(os.waitpid(pid, 0)[1], 0, seen)
        return seen

    def listed(self, state):
        return [each["sandboxId"] for each in json.loads(self.e2b("sandbox", "list", "-f", "json", "-s", state))]

    def test_the_life_of_a_sandbox(self):
        self.e2b("sandbox", "create", "base", "--detach", "--timeout", "120")
        box, = self.listed("running")
        self.assertEqual(json.loads(self.e2b("sandbox", "info", "-f", "json", box))["sandboxId"], box)
        self.assertEqual(self.e2b("sandbox", "exec", "-u", "root", "-c", "/tmp", "-e", "A=b", box, "echo $A; pwd; whoami"),
                         "b\n/tmp\nroot\n")
        self.e2b("sandbox", "logs", box)
        wait_until(lambda: "CPU" in self.e2b("sandbox", "metrics", box), 30, "a first metric")
        self.e2b("sandbox", "pause", box)
        self.assertEqual((self.listed("running"), self.listed("paused")), ([], [box]))
        self.e2b("sandbox", "resume", box)
        self.assertEqual(self.listed("running"), [box])
        self.e2b("sandbox", "kill", box)
        self.assertEqual(self.listed("running,paused"), [])

    def test_input_ends_and_a_terminal(self):
        box = self.e2b("sandbox", "create", "base", "--detach", "--timeout", "120").strip()
        env = {**os.environ, **self.settings}
        sent = os.urandom(1_000_000)
        done = subprocess.run([self.program, "sandbox", "exec", box, "sha256sum"], input=sent, capture_output=True, timeout=self.seconds, env=env)
        self.assertEqual(done.stdout.decode().split()[0], hashlib.sha256(sent).hexdigest(), done.stderr)
        self.assertIn("out", self.e2b_fails("sandbox", "exec", box, "echo out; exit 3", code=3))
        self.assertIn(b"re42", self.in_terminal("sandbox", "connect", box, types=b"echo re$((40+2)); exit\n"))
        self.e2b("sandbox", "kill", box)

    def test_snapshots(self):
        box = self.e2b("sandbox", "create", "base", "--detach", "--timeout", "120").strip()
        self.e2b("sandbox", "exec", box, "echo kept > kept")
        self.e2b("sandbox", "snapshot", "create", box, "--name", "by-hand")
        self.assertIn("default/by-hand:default", self.e2b("sandbox", "snapshot", "list"))
        copy = self.e2b("sandbox", "create", "by-hand", "--detach", "--timeout", "120").strip()
        self.assertEqual(self.e2b("sandbox", "exec", copy, "cat kept"), "kept\n")
        self.e2b("sandbox", "snapshot", "delete", "default/by-hand:default")
        self.assertNotIn("by-hand", self.e2b("sandbox", "snapshot", "list"))
        self.e2b("sandbox", "kill", box, copy)

    def test_what_it_says_when_it_cannot(self):
        self.assertIn("404: template 'nosuch' not found", self.e2b_fails("sandbox", "create", "nosuch", "--detach"))
        for verb in ("info", "resume"):
            self.assertIn("Sandbox inope wasn't found", self.e2b_fails("sandbox", verb, "inope"))
        for words in (("exec", "inope", "id"), ("connect", "inope")):
            self.assertIn("SandboxNotFoundError", self.e2b_fails("sandbox", *words))
        # As of one that was there once: it has none.
        self.assertEqual(self.e2b("sandbox", "logs", "inope"), "\nLogs for sandbox inope:\n")
        self.assertIn("sandbox not found", self.e2b("sandbox", "metrics", "inope"))
        self.assertIn("no id of a sandbox", self.e2b_fails("sandbox", "info", "NOT-AN-ID"))
        self.assertIn("[404] not found: template 'nosuch' not found", self.e2b_fails("template", "delete", "-y", "nosuch"))
        self.assertIn("[404] not found: template 'nosuch' not found", self.e2b_fails("template", "publish", "-y", "nosuch"))

    def test_templates(self):
        self.assertIn("base", self.e2b("template", "list"))
        done = self.engine.hearth("template", "create", "mine", "--image", "host", "--surfaces", "envd")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mine", self.e2b("template", "list"))
        self.e2b("template", "delete", "-y", "mine")
        self.assertNotIn("mine", self.e2b("template", "list"))


if __name__ == "__main__":
    unittest.main()
