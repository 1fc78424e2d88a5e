"""A real engine for E2B's own packages: one for everything in a file."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "e2e")]
from hearth import Engine, expect_host_as_before, free_ports, host_state, need_root, wait_until  # noqa: E402


class EngineCase(unittest.TestCase):
    options = ("--e2b-warm", "4", "--warm", "4")
    seconds = 240

    @classmethod
    def setUpClass(cls):
        need_root()
        before = host_state()
        cls.engine = Engine().start(*cls.options)
        cls.addClassCleanup(expect_host_as_before, before)
        cls.addClassCleanup(cls.engine.remove)
        url = cls.engine.endpoints()["e2b"]
        key = pathlib.Path(cls.engine.state_dir, "e2b.key").read_text().strip()
        cls.settings = {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": key}

    @classmethod
    def team(cls, name, *limits):
        """A key of a team of its own."""
        for words in (("team", "create", name, *limits), ("key", "create", "--team", name, "--name", "test")):
            done = cls.engine.hearth(*words)
            assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def run_script(self, *words, **env):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("E2B_")}
        done = subprocess.run(words, capture_output=True, text=True, timeout=self.seconds, env={**clean, **self.settings, **env})
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}\n{done.stderr}\n{self.engine.said()[-3000:]}")
        return done.stdout

    def run_node(self, folder, name, **env):
        """A script of node, beside the packages that it imports."""
        shutil.copy(HERE / name, folder / name)
        return self.run_script("node", "--test", str(folder / name), **env)
