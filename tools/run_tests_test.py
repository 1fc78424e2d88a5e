#!/usr/bin/env python3
"""run_tests.py with a real ctest, over tests that pass, fail, and change their minds."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().with_name("run_tests.py")
# Fails until it has been run before.
UNSTEADY = "test -e {0}.mark && exit 0; touch {0}.mark; echo '{0}.cc:7: Failure'; echo 'Expected: 1'; echo '  Actual: 2'; exit 1"
PYTHON = """
import unittest
class Some(unittest.TestCase):
    def test_a_sum(self):
        self.assertEqual(1 + 1, 3, "in this world")
unittest.main()
"""


class RunTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="run-tests-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tests = ""

    def add(self, name, *words, **properties):
        self.tests += f"add_test({name} {' '.join(f'[==[{word}]==]' for word in words)})\n"
        for key, value in properties.items():
            self.tests += f"set_tests_properties({name} PROPERTIES {key} {value})\n"

    def add_unsteady(self, *names):
        for name in names:
            self.add(name, "sh", "-c", UNSTEADY.format(self.folder / name))

    def run_tool(self, *words):
        (self.folder / "CTestTestfile.cmake").write_text(self.tests)
        command = [sys.executable, str(TOOL), str(self.folder), "ctest", "--test-dir", str(self.folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.lines = done.stdout.splitlines()
        return done.returncode

    def kept(self, name):
        return self.folder / f"Testing/failed/{name}.log"

    def test_all_is_well(self):
        self.add("good", "true")
        self.assertEqual(self.run_tool(), 0)
        self.assertFalse(self.kept("good").exists())

    def test_what_passes_alone_is_unsteady_and_no_failure(self):
        self.add("good", "true")
        self.add_unsteady("restless")
        self.assertEqual(self.run_tool("-j", "4"), 0)
        place = self.folder / "restless"
        self.assertEqual(self.lines[-4:], [f"unsteady: restless failed once and passed alone; its first output is in {self.kept('restless')}",
                                           f"    {place}.cc:7: Failure", "    Expected: 1", "      Actual: 2"])
        self.assertIn("Expected: 1\n", self.kept("restless").read_text())

    def test_what_fails_twice_has_failed(self):
        self.add_unsteady("restless")
        self.add("bad", sys.executable, "-c", PYTHON)
        self.assertNotEqual(self.run_tool(), 0)
        self.assertEqual(self.lines[-4], f"failed: bad (Failed); all that it wrote is in {self.kept('bad')}")
        self.assertRegex(self.lines[-3], r"^    FAIL: test_a_sum \(")
        self.assertRegex(self.lines[-2], r"^    File .*, line 4, in test_a_sum$")
        self.assertEqual(self.lines[-1], "    AssertionError: 2 != 3 : in this world")
        self.assertTrue(any(line.startswith("unsteady: restless") for line in self.lines))

    def test_its_time_is_up(self):
        self.add("slow", "sh", "-c", "echo last words; exec sleep 100", TIMEOUT=1)
        self.assertNotEqual(self.run_tool(), 0)
        self.assertEqual(self.lines[-2:], [f"failed: slow (Timeout); all that it wrote is in {self.kept('slow')}", "    last words"])

    def test_a_crowd_is_not_tried_again(self):
        names = [f"restless-{i}" for i in range(6)]
        self.add_unsteady(*names)
        self.assertNotEqual(self.run_tool(), 0)
        self.assertEqual(sum("failed, too many" in line and names[5] in line for line in self.lines), 1)
        self.assertFalse(any(line.startswith("unsteady") for line in self.lines))
        self.assertEqual(self.run_tool(), 0, "none of them has been run a second time before")

    def test_what_a_user_asks_for_is_what_is_run(self):
        self.add("bad", "false")
        self.add_unsteady("restless")
        self.assertEqual(self.run_tool("-R", "rest"), 0)
        self.assertFalse(any("bad" in line for line in self.lines))

    def test_no_test_at_all_fails_as_ctest_does(self):
        self.add("good", "true")
        self.assertNotEqual(self.run_tool("-R", "nothing", "--no-tests=error"), 0)

    def test_a_lot_of_output_is_kept_whole(self):
        self.add("loud", "sh", "-c", "seq 1 100000; exit 1")
        self.run_tool()
        self.assertEqual(len(self.kept("loud").read_text().split()), 100000)


if __name__ == "__main__":
    unittest.main()
