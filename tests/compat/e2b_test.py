"""The E2B SDKs from PyPI and npm, unchanged: against an engine, and straight against a sandbox's guest."""
import os
import pathlib
import shutil
import subprocess
import unittest

from client_venv import node_folder_with, python_with
from clients import Engine, SurfaceCase, need_root

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = ["e2b==2.63.0", "e2b-code-interpreter==2.11.5"]
NEWER, OLDER = ["e2b@2.51.0", "@e2b/code-interpreter@2.8.0"], ["e2b@2.45.0", "@e2b/code-interpreter@2.8.0"]


def node_script(packages, name):
    script = node_folder_with(packages) / name
    shutil.copy(HERE / name, script)
    return str(script)


class Guest(SurfaceCase):
    """Their debug mode: fixed ports, no control plane."""
    serve = "envd,code"
    ports = ("49983", "49999")
    debug = {"E2B_DEBUG": "true", "E2B_API_KEY": "e2b_" + "0" * 40}

    def test_python(self):
        self.run_script(python_with(PYTHON), str(HERE / "e2b_python.py"), **self.debug)

    def test_javascript(self):
        self.run_script("node", "--test", node_script(NEWER, "e2b_js.mjs"), **self.debug)


class Whole(unittest.TestCase):
    """An engine as `hearth up` starts it; the SDKs know its address and a key, and nothing else."""

    @classmethod
    def setUpClass(cls):
        need_root()
        cls.engine = Engine()
        cls.addClassCleanup(cls.engine.remove)
        cls.engine.start("--e2b-warm", "8")
        lines = cls.engine.hearth("env").stdout.splitlines()
        cls.env = dict(line.removeprefix("export ").split("=", 1) for line in lines if "E2B_" in line)

    def run_script(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=280, env=dict(os.environ, **self.env))
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}\n{done.stderr}")

    def test_python(self):
        self.run_script(python_with(PYTHON), str(HERE / "e2b_python.py"))

    def test_lives_python(self):
        self.run_script(python_with(PYTHON), str(HERE / "e2b_life_python.py"))

    def test_javascript(self):
        self.run_script("node", "--test", node_script(NEWER, "e2b_js.mjs"))

    def test_lives_javascript(self):
        self.run_script("node", "--test", node_script(NEWER, "e2b_life_js.mjs"))

    def test_older_javascript(self):
        self.run_script("node", "--test", node_script(OLDER, "e2b_js.mjs"))

    def test_lives_older_javascript(self):
        self.run_script("node", "--test", node_script(OLDER, "e2b_life_js.mjs"))


if __name__ == "__main__":
    unittest.main()
