"""Other people's clients: installed unchanged, in an environment of their own, once."""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

BUILD = pathlib.Path(os.environ.get("HEARTH_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
FOLDER = BUILD / "compat"
AGENT_SANDBOX = ["k8s-agent-sandbox[async]==1.0.8"]


def fetch(what, folder, *commands):
    """Fills the folder. Skips, naming what is missing, where it cannot be had."""
    stamp = folder / "complete"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run beside each other, and some want the same
        if stamp.exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            for command in commands:
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
            raise unittest.SkipTest(f"needs {what}: {said[-1] if said else error}") from error
        stamp.touch()
    return folder


def folder_for(kind, packages):
    return FOLDER / f"{kind}-{re.sub(r'[^a-z0-9.]+', '-', '-'.join(packages))}"


def python_with(packages):
    """A Python that has the packages."""
    folder = folder_for("python", packages)
    python = str(folder / "bin" / "python")
    fetch(f"{' '.join(packages)} from PyPI", folder, [sys.executable, "-m", "venv", "."],
          [python, "-m", "pip", "install", "--quiet", *packages])
    return python


def wheels_of(packages, version):
    """A folder with the packages, and all that they need, as that version of Python on this machine installs them without an index."""
    return fetch(f"{' '.join(packages)} from PyPI", folder_for(f"wheels-{version}", packages),
                 [sys.executable, "-m", "pip", "download", "--quiet", "--dest", ".", "--only-binary", ":all:", "--python-version", version, *packages])


def node_folder_with(packages):
    """A folder in which scripts of node can import the packages."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise unittest.SkipTest("needs node and npm")
    return fetch(f"{' '.join(packages)} from npm", folder_for("node", packages),
                 ["npm", "init", "--yes"], ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages])


def run_with(packages):
    """Goes on in a Python that has the packages."""
    if os.environ.get("HEARTH_COMPAT_VENV"):
        return
    try:
        python = python_with(packages)
    except unittest.SkipTest as skip:
        class Missing(unittest.TestCase):
            @unittest.skip(str(skip))
            def test_client(self):
                pass

        sys.exit(not unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Missing)).wasSuccessful())
    os.environ["HEARTH_COMPAT_VENV"] = python
    os.execv(python, [python, *sys.argv])
