"""E2B's code interpreter for Python, through the gateway. Run by engine_test.py."""
import asyncio
import os
import pathlib
import unittest

from e2b_code_interpreter import AsyncSandbox, Sandbox

# The kinds of charts, each by what draws one.
DRAWN = {
    "line": "plt.plot([1, 2], [3, 4], label='L'); plt.xlabel('t (s)'); plt.title('A line')",
    "scatter": "plt.scatter([1, 2], [3, 4])",
    "bar": "plt.bar(['a', 'b'], [1, 2])",
    "pie": "plt.pie([1, 2], labels=['a', 'b'])",
    "box_and_whisker": "plt.boxplot([[1, 2, 3], [2, 3, 4]])",
    "superchart": "figure, (left, right) = plt.subplots(1, 2); left.plot([1], [2]); right.bar(['x'], [1])",
}

# A package with a module and a program.
WHEEL = """
import zipfile
info = "tiny_one-1.dist-info/"
files = {
    "tiny_one.py": "answer = 42\\ndef main(): print(answer)\\n",
    info + "METADATA": "Metadata-Version: 2.1\\nName: tiny-one\\nVersion: 1\\n",
    info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    info + "entry_points.txt": "[console_scripts]\\ntiny-one = tiny_one:main\\n",
}
files[info + "RECORD"] = "".join(name + ",,\\n" for name in files)
with zipfile.ZipFile("tiny_one-1-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
"""


class Cells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = Sandbox.create(timeout=300, envs={"GLOBAL": "yes"})
        cls.addClassCleanup(cls.box.kill)

    def test_results_streams_errors(self):
        pieces = []
        run = self.box.run_code("x = 20\nprint('out')\nx * 2 + 2", on_stdout=lambda message: pieces.append(message.line))
        self.assertEqual((run.text, "".join(pieces)), ("42", "out\n"))
        self.assertEqual(self.box.run_code("x").text, "20")
        self.assertEqual(self.box.run_code("1 / 0").error.name, "ZeroDivisionError")
        self.assertEqual(self.box.run_code("{'a': [1]}").results[0].json, {"a": [1]})

    def test_what_pip_installs_is_there_at_once(self):
        self.assertEqual(self.box.run_code("import importlib.util; importlib.util.find_spec('tiny_one')").results, [])
        self.box.files.write("make.py", WHEEL)
        done = self.box.commands.run("python3 make.py && pip install --quiet --no-index ./tiny_one-1-py3-none-any.whl && tiny-one")
        self.assertEqual(done.stdout, "42\n")
        self.assertEqual(self.box.run_code("import tiny_one; tiny_one.answer").text, "42")

    @unittest.skipUnless(os.environ.get("WHEELS"), "needs matplotlib and pandas from PyPI")
    def test_charts_and_tables(self):
        wheels = sorted(pathlib.Path(os.environ["WHEELS"]).glob("*.whl"))
        self.box.files.write_files([{"path": f"wheels/{each.name}", "data": each.read_bytes()} for each in wheels])
        self.box.commands.run("pip install --quiet --no-index wheels/*.whl", timeout=240)
        for kind, drawing in DRAWN.items():
            with self.subTest(kind=kind):
                run = self.box.run_code(f"import matplotlib.pyplot as plt\n{drawing}\nplt.show()", timeout=120)
                self.assertIsNone(run.error)
                [shown] = run.results
                self.assertTrue(shown.png)
                self.assertEqual(shown.chart.type.value, kind)
        line = self.box.run_code(f"{DRAWN['line']}\nplt.show()").results[0].chart
        self.assertEqual((line.title, line.x_label, line.x_unit), ("A line", "t (s)", "s"))
        self.assertEqual([(each.label, each.points) for each in line.elements], [("L", [(1, 3), (2, 4)])])
        [table] = self.box.run_code("import pandas\npandas.DataFrame({'a': [1, 2], 'b': ['x', 'y']})").results
        self.assertEqual(table.data, {"a": [1, 2], "b": ["x", "y"]})
        self.assertIn("<table", table.html)

    def test_environment(self):
        self.assertEqual(self.box.run_code("import os; os.environ.get('GLOBAL')").text, "yes")
        code = "import os; os.environ.get('ONE')"
        self.assertEqual(self.box.run_code(code, envs={"ONE": "1"}).text, "1")
        self.assertFalse(self.box.run_code(code).text)

    def test_contexts_from_the_start(self):
        box = Sandbox.create(timeout=60)
        self.addCleanup(box.kill)
        self.assertEqual([each.language for each in box.list_code_contexts()], ["python", "javascript"])

    def test_contexts(self):
        context = self.box.create_code_context(cwd="/tmp")
        self.box.run_code("here = 1", context=context)
        self.assertEqual(self.box.run_code("import os; (here, os.getcwd())", context=context).text, "(1, '/tmp')")
        self.assertEqual(self.box.run_code("here").error.name, "NameError")
        self.box.restart_code_context(context)
        self.assertEqual(self.box.run_code("here", context=context).error.name, "NameError")
        self.box.remove_code_context(context)
        self.assertNotIn(context.id, [each.id for each in self.box.list_code_contexts()])

    def test_interrupted(self):
        self.box.run_code("kept = 'kept'")
        with self.assertRaises(Exception):
            self.box.run_code("import time; time.sleep(60)", timeout=1)
        self.assertEqual(self.box.run_code("kept").text, "kept")

    def test_languages(self):
        self.assertEqual("".join(self.box.run_code("x=1; echo hi", language="bash").logs.stdout), "hi\n")
        self.assertEqual("".join(self.box.run_code("echo $x", language="bash").logs.stdout), "1\n")
        self.assertEqual(self.box.run_code("6 * 7", language="js").text, "42")

    def test_java(self):
        if self.box.commands.run("java --list-modules | grep -q jdk.jshell && echo yes || true").stdout != "yes\n":
            self.skipTest("needs a JDK on this machine: sandboxes of the image host have its programs")
        run = self.box.run_code('int x = 20; System.out.println("out"); x * 2 + 2', language="java")
        self.assertEqual((run.text, "".join(run.logs.stdout), "".join(run.logs.stderr)), ("42", "out\n", ""))
        self.assertEqual(self.box.run_code("x / 0", language="java").error.name, "ArithmeticException")

    def test_variables_survive_a_pause(self):
        box = Sandbox.create(timeout=120)
        self.addCleanup(box.kill)
        box.run_code("kept = 'kept'")
        box.pause()
        box.connect()
        self.assertEqual(box.run_code("kept").text, "kept")

    def test_asynchronously(self):
        async def both():
            box = await AsyncSandbox.create(timeout=60)
            try:
                return await asyncio.gather(box.run_code("6 * 7"), box.run_code("echo hi", language="bash"))
            finally:
                await box.kill()
        python, bash = asyncio.run(both())
        self.assertEqual((python.text, "".join(bash.logs.stdout)), ("42", "hi\n"))


if __name__ == "__main__":
    unittest.main()
