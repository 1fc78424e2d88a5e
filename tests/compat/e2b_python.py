"""What a user of the Python SDKs does, and what comes back. Run by e2b_test.py."""
import io
import time
import unittest

from e2b import CommandExitException, FileType, NotFoundException, PtySize, Sandbox, TimeoutException
from e2b_code_interpreter import Sandbox as Interpreter


def eventually(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.02)
    raise AssertionError("it did not happen")


class Commands(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox.create()
        self.addCleanup(self.box.kill)

    def test_output_and_end(self):
        done = self.box.commands.run("echo out; echo err >&2")
        self.assertEqual((done.stdout, done.stderr, done.exit_code), ("out\n", "err\n", 0))

    def test_a_failure_is_raised(self):
        with self.assertRaises(CommandExitException) as caught:
            self.box.commands.run("echo why >&2; exit 3")
        self.assertEqual((caught.exception.exit_code, caught.exception.stderr), (3, "why\n"))

    def test_user_directory_environment(self):
        self.assertEqual(self.box.commands.run("whoami; pwd").stdout, "user\n/home/user\n")
        done = self.box.commands.run("whoami; pwd; echo $A", user="root", cwd="/tmp", envs={"A": "x y"})
        self.assertEqual(done.stdout, "root\n/tmp\nx y\n")

    def test_unknown_user_and_directory(self):
        with self.assertRaises(Exception) as caught:
            self.box.commands.run("true", user="nobody-of-that-name")
        self.assertIn("nobody-of-that-name", str(caught.exception))
        with self.assertRaises(Exception) as caught:
            self.box.commands.run("true", cwd="/no/such/folder")
        self.assertIn("/no/such/folder", str(caught.exception))

    def test_output_arrives_as_it_is_written(self):
        pieces = []

        def heard(text):
            pieces.append(text)
            self.box.files.write("/tmp/heard", "")

        self.box.commands.run("echo 1; until test -e /tmp/heard; do sleep 0.02; done; echo 2", on_stdout=heard)
        self.assertEqual("".join(pieces), "1\n2\n")

    def test_a_lot_of_output(self):
        done = self.box.commands.run("head -c 5000000 /dev/zero | tr '\\0' x")
        self.assertEqual(len(done.stdout), 5_000_000)

    def test_a_deadline_ends_the_command(self):
        with self.assertRaises(TimeoutException):
            self.box.commands.run("sleep 60", timeout=0.5)
        eventually(lambda: "sleep 60" not in self.box.commands.run("ps axo args | grep '[s]leep 60' || true").stdout)

    def test_background_input_list_and_kill(self):
        handle = self.box.commands.run("cat", background=True, stdin=True)
        self.assertIn(handle.pid, [each.pid for each in self.box.commands.list()])
        self.box.commands.send_stdin(handle.pid, "hello\n")
        for stdout, _, _ in handle:
            if stdout:
                self.assertEqual(stdout, "hello\n")
                break
        self.assertTrue(self.box.commands.kill(handle.pid))
        self.assertFalse(self.box.commands.kill(handle.pid))
        eventually(lambda: handle.pid not in [each.pid for each in self.box.commands.list()])

    def test_input_can_end(self):
        handle = self.box.commands.run("cat; echo end", background=True, stdin=True)
        self.box.commands.send_stdin(handle.pid, "hello\n")
        self.box.commands.close_stdin(handle.pid)
        self.assertEqual(handle.wait().stdout, "hello\nend\n")

    def test_reattach(self):
        handle = self.box.commands.run("while ! test -e /tmp/go; do sleep 0.02; done; echo late; exit 7", background=True)
        handle.disconnect()
        again = self.box.commands.connect(handle.pid)
        self.box.commands.run("touch /tmp/go")
        with self.assertRaises(CommandExitException) as caught:
            again.wait()
        self.assertEqual((caught.exception.exit_code, caught.exception.stdout), (7, "late\n"))

    def test_reattach_to_nothing(self):
        with self.assertRaises(NotFoundException):
            self.box.commands.connect(999999)

    def test_terminal(self):
        output = bytearray()
        handle = self.box.pty.create(PtySize(rows=24, cols=80), timeout=60)
        self.box.pty.resize(handle.pid, PtySize(rows=33, cols=99))
        self.box.pty.send_stdin(handle.pid, b"stty size; tty; exit 5\n")
        with self.assertRaises(CommandExitException) as caught:
            handle.wait(on_pty=output.extend)
        self.assertEqual(caught.exception.exit_code, 5)
        self.assertIn(b"33 99", output)
        self.assertIn(b"/dev/pts/", output)

    def test_is_running(self):
        self.assertTrue(self.box.is_running())


class Files(unittest.TestCase):
    def setUp(self):
        box = Sandbox.create()
        self.addCleanup(box.kill)
        self.box = box
        self.files = box.files
        self.folder = f"/home/user/{self.id().split('.')[-1]}"
        self.assertTrue(self.files.make_dir(self.folder))
        self.addCleanup(self.files.remove, self.folder)

    def test_text_and_bytes(self):
        info = self.files.write(f"{self.folder}/deep/er/a.txt", "héllo")
        self.assertEqual((info.name, info.path), ("a.txt", f"{self.folder}/deep/er/a.txt"))
        self.assertEqual(self.files.read(f"{self.folder}/deep/er/a.txt"), "héllo")
        blob = bytes(range(256)) * 5000
        self.files.write(f"{self.folder}/b", blob)
        self.assertEqual(bytes(self.files.read(f"{self.folder}/b", format="bytes")), blob)
        self.assertEqual(b"".join(self.files.read(f"{self.folder}/b", format="stream")), blob)

    def test_compressed_streamed_and_empty(self):
        self.files.write(f"{self.folder}/z", "x" * 100_000, gzip=True)
        self.assertEqual(self.files.read(f"{self.folder}/z", gzip=True), "x" * 100_000)
        self.files.write(f"{self.folder}/s", io.BytesIO(b"streamed" * 1000), use_octet_stream=True)
        self.assertEqual(self.files.read(f"{self.folder}/s"), "streamed" * 1000)
        self.files.write(f"{self.folder}/e", "")
        self.assertEqual(self.files.read(f"{self.folder}/e"), "")

    def test_several_at_once(self):
        written = self.files.write_files([{"path": f"{self.folder}/1", "data": "one"}, {"path": f"{self.folder}/2", "data": b"two"}])
        self.assertEqual([each.name for each in written], ["1", "2"])
        self.assertEqual(self.files.read(f"{self.folder}/2"), "two")

    def test_information(self):
        self.files.write("relative.txt", "12345")  # below the user's home
        info = self.files.get_info("/home/user/relative.txt")
        self.files.remove("relative.txt")
        self.assertEqual((info.type, info.size, info.permissions, info.owner, info.group, info.mode),
                         (FileType.FILE, 5, "-rw-r--r--", "user", "user", 0o644))

    def test_links(self):
        self.files.write(f"{self.folder}/f", "x")
        self.box.commands.run("ln -s f link; ln -s . folder", cwd=self.folder)
        info = self.files.get_info(f"{self.folder}/link")
        self.assertEqual((info.type, info.symlink_target), (FileType.SYMLINK, f"{self.folder}/f"))
        self.assertEqual({each.name: each.type for each in self.files.list(self.folder)},
                         {"f": FileType.FILE, "folder": FileType.SYMLINK, "link": FileType.SYMLINK})

    def test_metadata(self):
        self.files.write(f"{self.folder}/m", "x", metadata={"colour": "blue"})
        self.assertEqual(self.files.get_info(f"{self.folder}/m").metadata, {"colour": "blue"})
        self.files.write(f"{self.folder}/m", "y")
        self.assertFalse(self.files.get_info(f"{self.folder}/m").metadata)

    def test_folders(self):
        self.assertFalse(self.files.make_dir(self.folder))
        self.files.make_dir(f"{self.folder}/a/b")
        self.files.write(f"{self.folder}/a/f", "x")
        self.assertEqual([e.name for e in self.files.list(self.folder)], ["a"])
        self.assertEqual([e.path for e in self.files.list(self.folder, depth=2)],
                         [f"{self.folder}/a", f"{self.folder}/a/b", f"{self.folder}/a/f"])
        self.assertEqual(self.files.rename(f"{self.folder}/a", f"{self.folder}/c").path, f"{self.folder}/c")
        self.assertTrue(self.files.exists(f"{self.folder}/c/f"))
        self.files.remove(f"{self.folder}/c")
        self.assertFalse(self.files.exists(f"{self.folder}/c"))

    def test_what_is_not_there(self):
        for call in (self.files.read, self.files.list, self.files.get_info):
            with self.assertRaises(NotFoundException):
                call(f"{self.folder}/nothing")

    def test_watching(self):
        handle = self.files.watch_dir(self.folder, recursive=True)
        self.files.write(f"{self.folder}/w", "x")
        self.assertEqual([(e.name, e.type.value) for e in handle.get_new_events()],
                         [("w", "create"), ("w", "chmod"), ("w", "write")])
        self.files.rename(f"{self.folder}/w", f"{self.folder}/v")
        self.files.remove(f"{self.folder}/v")
        self.assertEqual([(e.name, e.type.value) for e in handle.get_new_events()],
                         [("w", "rename"), ("v", "create"), ("v", "remove")])
        handle.stop()


class Cells(unittest.TestCase):
    def setUp(self):
        self.box = Interpreter.create()
        self.addCleanup(self.box.kill)

    def test_the_last_expression_is_the_result(self):
        self.assertEqual(self.box.run_code("x = 20\nx * 2 + 2").text, "42")
        self.assertEqual(self.box.run_code("x").text, "20")

    def test_streams_in_order(self):
        pieces = []
        run = self.box.run_code("import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('again')",
                                on_stdout=lambda m: pieces.append(m.line), on_stderr=lambda m: pieces.append(m.line))
        self.assertEqual("".join(pieces), "out\nerr\nagain\n")
        self.assertEqual("".join(run.logs.stdout), "out\nagain\n")

    def test_errors(self):
        run = self.box.run_code("def f():\n    return 1 / 0\nf()")
        self.assertEqual((run.error.name, run.error.value), ("ZeroDivisionError", "division by zero"))
        self.assertIn("in f", run.error.traceback)
        self.assertEqual(self.box.run_code("1 +").error.name, "SyntaxError")

    def test_rich_results(self):
        run = self.box.run_code("class H:\n    def _repr_html_(self): return '<b>x</b>'\ndisplay(H())\n{'a': [1]}")
        self.assertEqual(run.results[0].html, "<b>x</b>")
        self.assertFalse(run.results[0].is_main_result)
        self.assertEqual(run.results[1].json, {"a": [1]})
        self.assertTrue(run.results[1].is_main_result)

    def test_top_level_await(self):
        self.assertEqual(self.box.run_code("import asyncio\nawait asyncio.sleep(0.01)\n'awake'").text, "awake")

    def test_contexts(self):
        context = self.box.create_code_context(cwd="/tmp")
        self.box.run_code("here = 1", context=context)
        self.assertEqual(self.box.run_code("import os; (here, os.getcwd())", context=context).text, "(1, '/tmp')")
        self.assertEqual(self.box.run_code("here").error.name, "NameError")
        self.assertIn(context.id, [each.id for each in self.box.list_code_contexts()])
        self.box.restart_code_context(context)
        self.assertEqual(self.box.run_code("here", context=context).error.name, "NameError")
        self.box.remove_code_context(context)
        self.assertNotIn(context.id, [each.id for each in self.box.list_code_contexts()])

    def test_environment_of_one_run(self):
        code = "import os; os.environ.get('ONE')"
        self.assertEqual(self.box.run_code(code, envs={"ONE": "1"}).text, "1")
        self.assertFalse(self.box.run_code(code).text)

    def test_a_run_that_takes_too_long_leaves_the_context_usable(self):
        self.box.run_code("kept = 'kept'")
        with self.assertRaises(Exception):
            self.box.run_code("import time; time.sleep(60)", timeout=1)
        self.assertEqual(self.box.run_code("kept").text, "kept")

    def test_other_languages(self):
        self.assertEqual("".join(self.box.run_code("echo hi; x=1", language="bash").logs.stdout), "hi\n")
        self.assertEqual("".join(self.box.run_code("echo $x", language="bash").logs.stdout), "1\n")
        with self.assertRaises(Exception) as caught:
            self.box.run_code("1", language="cobol")
        self.assertIn("cobol", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
