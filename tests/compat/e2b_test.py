"""The E2B SDKs from PyPI and npm, straight against a sandbox's guest (their debug mode: fixed ports, no control plane)."""
import pathlib
import shutil
import unittest

from client_venv import node_folder_with, python_with
from clients import SurfaceCase

HERE = pathlib.Path(__file__).resolve().parent


class E2b(SurfaceCase):
    serve = "envd,code"
    ports = ("49983", "49999")
    debug = {"E2B_DEBUG": "true", "E2B_API_KEY": "e2b_" + "0" * 40}

    def test_python(self):
        python = python_with(["e2b==2.63.0", "e2b-code-interpreter==2.11.5"])
        self.run_script(python, str(HERE / "e2b_python.py"), **self.debug)

    def test_javascript(self):
        folder = node_folder_with(["e2b@2.51.0", "@e2b/code-interpreter@2.8.0"])
        script = folder / "e2b_js.mjs"
        shutil.copy(HERE / "e2b_js.mjs", script)
        self.run_script("node", "--test", str(script), **self.debug)


if __name__ == "__main__":
    unittest.main()
