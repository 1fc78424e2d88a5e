"""E2B's SDKs and command line, unchanged, against `hearth up`."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from engine import HERE, EngineCase, free_ports, wait_until

from client_venv import node_folder_with, python_with

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
        self.run_python(NEW_PYTHON, "cells_python.py")

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

    def test_templates(self):
        self.assertIn("base", self.e2b("template", "list"))
        done = self.engine.hearth("template", "create", "mine", "--image", "host", "--surfaces", "envd")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mine", self.e2b("template", "list"))
        self.e2b("template", "delete", "-y", "mine")
        self.assertNotIn("mine", self.e2b("template", "list"))


if __name__ == "__main__":
    unittest.main()
