"""Other people's clients: installed unchanged, in an environment of their own."""
import os
import pathlib
import subprocess
import sys
import unittest

BUILD = pathlib.Path(os.environ.get("HEARTH_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))


def run_with(packages):
    """Goes on in a Python that has the packages. Skips, naming what is missing, where they cannot be had."""
    if os.environ.get("HEARTH_COMPAT_VENV"):
        return
    venv = BUILD / "compat-venv" / pathlib.Path(sys.argv[0]).stem
    python = venv / "bin" / "python"
    stamp = venv / "packages.txt"
    try:
        if not stamp.exists() or stamp.read_text().split() != packages:
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, capture_output=True, timeout=120)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True, capture_output=True, timeout=600)
            stamp.write_text("\n".join(packages))
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
        why = said[-1] if said else str(error)

        class Missing(unittest.TestCase):
            @unittest.skip(f"needs {' '.join(packages)} from PyPI: {why}")
            def test_client(self):
                pass

        sys.exit(not unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Missing)).wasSuccessful())
    os.environ["HEARTH_COMPAT_VENV"] = str(venv)
    os.execv(str(python), [str(python), *sys.argv])
