"""What detached commands write: on disk, bounded, found again."""
import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from hearth import HEARTH, Engine, is_alive, need_root, wait_until


class Logs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        cls.engine = Engine().start("--warm", "0")
        cls.hearth = staticmethod(cls.engine.hearth)

    @classmethod
    def tearDownClass(cls):
        cls.engine.remove()

    def tearDown(self):
        self.hearth("rm", "--all")
        self.assertEqual(self.folders(), [], "removing a sandbox removes its log")

    def folders(self):
        """Of logs that there are. Folders for the next ones may lie beside them; there is nothing in those."""
        while True:
            found = list(pathlib.Path(self.engine.state_dir, "runtime/logs").iterdir())
            spares = [folder for folder in found if folder.name.startswith(".spare-")]
            with contextlib.suppress(FileNotFoundError):  # one has become somebody's meanwhile
                self.assertEqual([file for folder in spares for file in folder.iterdir() if file.stat().st_size], [])
                return [folder for folder in found if folder not in spares]

    def wait_for_the_disk(self):
        """The files are there before anything is in them."""
        wait_until(lambda: [file for folder in self.folders() for file in folder.iterdir() if file.stat().st_size])

    def log(self, *words):
        result = self.hearth("logs", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def run_detached(self, *words):
        started = self.hearth("run", "-d", *words)
        self.assertEqual(started.returncode, 0, started.stderr)
        return started.stdout.strip()

    def test_there_is_no_log_until_it_is_needed(self):
        self.run_detached()
        self.hearth("run", "--", "echo", "x")
        self.assertEqual(self.folders(), [])

    def test_lines_have_a_stream_and_a_time(self):
        box = self.run_detached("--", "sh", "-c", "echo one; echo two >&2; sleep 0.3; echo three; sleep 100")
        wait_until(lambda: self.log(box) == "one\nthree\n")
        self.assertEqual(self.hearth("logs", box).stderr, "two\n")
        self.assertEqual(self.log("--tail", "1", box), "three\n")
        stamped = self.log("--timestamps", box).splitlines()
        self.assertRegex(stamped[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z one$")
        moment = stamped[1].split()[0]
        self.assertEqual(self.log("--since", moment, box), "three\n")
        self.assertEqual(self.log("--since", "10m", box), "one\nthree\n")
        self.wait_for_the_disk()
        (written,) = self.folders()[0].iterdir()
        wait_until(lambda: "stdout F three\n" in written.read_text())
        self.assertIn("stderr F two\n", written.read_text())

    def test_exec_writes_to_the_same_log_and_users_may_open_stdout_anew(self):
        box = self.run_detached()
        self.hearth("exec", "-d", "-u", "65534", box, "--", "sh", "-c", "echo anew > /dev/stdout")
        wait_until(lambda: self.log(box) == "anew\n")

    def test_rotation_bounds_the_disk_and_the_end_is_there(self):
        box = self.run_detached("--log-size", "64k", "--log-files", "2", "--", "sh", "-c", "seq 1 50000; echo end; sleep 100")
        wait_until(lambda: self.log("--tail", "1", box) == "end\n")
        # What can be read may be in the guest's memory still.
        wait_until(lambda: any(path.read_text().endswith(" F end\n") for path in self.folders()[0].iterdir()), what="its end on disk")
        lines = self.log(box).split()
        self.assertEqual(lines[-2:], ["50000", "end"])
        self.assertEqual([int(line) for line in lines[1:-1]], list(range(int(lines[1]), 50001)), "nothing is missing in between")
        self.assertLessEqual(sum(path.stat().st_size for path in self.folders()[0].iterdir()), 2 * 65536)

    def test_memory_only(self):
        box = self.run_detached("--log-files", "0", "--", "sh", "-c", "echo kept; sleep 100")
        wait_until(lambda: self.log(box) == "kept\n")
        self.assertEqual(self.folders(), [])

    def test_follow_sees_everything_until_the_sandbox_ends(self):
        box = self.run_detached("--", "sh", "-c", "for i in $(seq 200); do echo $i; sleep 0.002; done; sleep 100")
        follower = subprocess.Popen([HEARTH, "logs", "-f", "--state-dir", self.engine.state_dir, box], stdout=subprocess.PIPE, text=True)
        seen = [follower.stdout.readline() for _ in range(200)]
        self.assertEqual(seen, [f"{i}\n" for i in range(1, 201)])
        self.hearth("rm", box)
        self.assertEqual(follower.wait(60), 0)
        follower.stdout.close()

    def test_output_survives_a_killed_runtime(self):
        box = self.run_detached("--", "sh", "-c", "for i in $(seq 2000); do echo $i; sleep 0.001; done; sleep 100")
        wait_until(lambda: len(self.log(box).split()) > 100)
        runtime = self.engine.runtime_pid()
        os.kill(runtime, signal.SIGKILL)
        wait_until(lambda: not is_alive(runtime))
        self.engine.process.wait(60)
        self.engine.start("--warm", "0")
        wait_until(lambda: self.log("--tail", "1", box) == "2000\n", 30)
        self.assertEqual(self.log(box).split(), [str(i) for i in range(1, 2001)])

    def test_a_sandbox_that_has_exited_still_has_its_log(self):
        box = self.run_detached("--", "sh", "-c", "echo last words; sleep 100")
        self.wait_for_the_disk()
        pid = int(re.search(r'"pid": ?(\d+)', self.hearth("inspect", box).stdout).group(1))
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.engine.sandboxes()[0]["state"] == "exited")
        self.assertEqual(self.log(box), "last words\n")
        self.assertEqual(self.log("-f", box), "last words\n")

    def test_a_paused_one_shows_what_is_on_disk(self):
        box = self.run_detached("--", "sh", "-c", "echo before; sleep 100")
        self.wait_for_the_disk()
        self.hearth("pause", box)
        self.assertEqual(self.log(box), "before\n")

    def attach(self, *words, **kwargs):
        return subprocess.Popen([HEARTH, "attach", "--state-dir", self.engine.state_dir, *words], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1, **kwargs)

    def test_attach_types_and_sees_and_ends_with_the_command(self):
        box = self.run_detached("-i", "--", "sh", "-c", "while read word; do echo got $word; test $word = end && exit 9; done")
        first, second = self.attach(box), self.attach("--no-stdin", box)
        # Whoever is not there yet sees nothing of what was before: it is said again until both have heard it.
        said = 0
        while len(select.select([first.stdout, second.stdout], [], [], 0)[0]) < 2:
            self.assertLess(said, 300, "nobody hears")
            first.stdin.write("one\n")
            said += 1
            time.sleep(0.1)
        first.stdin.close()  # its end is not the command's
        self.assertIsNone(first.poll())
        third = self.attach(box)
        third.stdin.write("end\n")
        self.assertEqual([one.wait(60) for one in (first, second, third)], [9, 9, 9])
        self.assertEqual(first.stdout.read(), "got one\n" * said + "got end\n")
        for later in (second, third):
            self.assertRegex(later.stdout.read(), r"^(got one\n)*got end\n$")
        for one in (first, second, third):
            for stream in (one.stdout, one.stderr, one.stdin):
                stream.close()
        self.assertIn("no detached command is running", self.hearth("attach", box).stderr)

    def test_signals_go_to_the_command_or_to_us(self):
        box = self.run_detached("--", "sh", "-c", "trap 'echo caught; exit 3' TERM; while :; do echo still; sleep 0.05; done")
        looker = self.attach("--sig-proxy=false", box)
        proxy = self.attach(box)
        for one in (looker, proxy):
            self.assertEqual(one.stdout.readline(), "still\n")
        looker.send_signal(signal.SIGTERM)
        self.assertEqual(looker.wait(60), 128 + signal.SIGTERM)
        self.assertIsNone(proxy.poll())
        proxy.send_signal(signal.SIGTERM)
        self.assertEqual(proxy.wait(60), 3)
        self.assertRegex(proxy.stdout.read(), r"^(still\n)*caught\n$")
        for one in (looker, proxy):
            for stream in (one.stdout, one.stderr, one.stdin):
                stream.close()

    def test_a_detached_terminal_can_be_left_and_found_again(self):
        box = self.run_detached("-it", "--", "sh")
        for command, last in (("echo $((6*7)); x=kept\r", b"42"), ("echo $x; stty size\r", b"kept")):
            outer, inner = pty.openpty()
            fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 97, 0, 0))
            client = subprocess.Popen([HEARTH, "attach", "--state-dir", self.engine.state_dir, box],
                                      stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
            os.close(inner)
            os.write(outer, command.encode())
            seen = b""
            while b"\n" + last not in seen and b"\r" + last not in seen:
                seen += os.read(outer, 4096)
            if b"stty" in command.encode():
                while b"31 97" not in seen:
                    seen += os.read(outer, 4096)
            os.write(outer, b"\x10\x11")
            self.assertEqual(client.wait(60), 0)
            os.close(outer)
        self.assertEqual(self.hearth("exec", box, "--", "true").returncode, 0)

    def test_errors_say_what_is_wrong(self):
        for words, why in ((["logs", "nobody"], "there is no sandbox 'nobody'"),
                           (["logs", "--since", "soon", "x"], "'soon' is no time"),
                           (["logs", "--tail", "-1", "x"], "--tail"),
                           (["attach", "nobody"], "there is no sandbox 'nobody'"),
                           (["attach", "--sig-proxy", "maybe", "x"], "neither true nor false"),
                           (["run", "-d", "--log-size", "1k"], "the least is 64k"),
                           (["run", "-d", "--log-files", "101"], "--log-files")):
            result = self.hearth(*words)
            self.assertNotEqual(result.returncode, 0, words)
            self.assertIn(why, result.stderr)


if __name__ == "__main__":
    unittest.main()
