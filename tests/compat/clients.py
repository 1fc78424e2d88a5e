"""A sandbox that serves, for other people's clients."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from hearth import HEARTH, Engine, need_root  # noqa: E402


class Forwarded:
    """Ports of a sandbox on this machine's loopback."""

    def __init__(self, engine, box, *ports):
        self.process = subprocess.Popen([HEARTH, "--state-dir", engine.state_dir, "forward", box, *map(str, ports)],
                                        text=True, stdout=subprocess.PIPE)
        lines = [self.process.stdout.readline() for _ in ports]
        if not all(lines):
            raise unittest.SkipTest(f"needs the ports {ports} of this machine's loopback")
        self.ports = [int(re.match(r"127\.0\.0\.1:(\d+) ", line)[1]) for line in lines]

    def end(self):
        self.process.terminate()
        self.process.communicate(timeout=60)


class SurfaceCase(unittest.TestCase):
    """An engine, and a sandbox of it."""
    serve = "all"
    ports = ()

    @classmethod
    def setUpClass(cls):
        need_root()
        cls.engine = Engine()
        cls.addClassCleanup(cls.engine.remove)
        cls.engine.start()
        done = cls.engine.hearth("run", "-d", "-u", "user", "--serve", cls.serve)
        assert done.returncode == 0, done.stderr
        cls.forwarded = Forwarded(cls.engine, done.stdout.strip(), *cls.ports)
        cls.addClassCleanup(cls.forwarded.end)

    def run_script(self, *words, **env):
        done = subprocess.run(words, capture_output=True, text=True, timeout=200, env=dict(os.environ, **env))
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}\n{done.stderr}")
