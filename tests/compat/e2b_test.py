"""The E2B SDKs from PyPI and npm, unchanged, straight against a sandbox's guest. Against an engine: e2b/engine_test.py."""
import pathlib
import shutil
import unittest

from client_venv import node_folder_with, python_with
from clients import SurfaceCase

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = ["e2b==2.63.0", "e2b-code-interpreter==2.11.5"]
NODE = ["e2b@2.51.0", "@e2b/code-interpreter@2.8.0"]


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
        self.run_script("node", "--test", node_script(NODE, "e2b_js.mjs"), **self.debug)


if __name__ == "__main__":
    unittest.main()
