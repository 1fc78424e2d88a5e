"""What people and scripts do with `hearth run` and its sisters."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from hearth import HEARTH, Engine, need_root, wait_until


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        cls.engine = Engine().start()

    @classmethod
    def tearDownClass(cls):
        cls.engine.remove()

    def tearDown(self):
        self.hearth("rm", "--all")

    def hearth(self, *words, **kwargs):
        return self.engine.hearth(*words, **kwargs)

    def run_rm(self, *command, options=(), **kwargs):
        return self.hearth("run", "--rm", *options, "--", *command, **kwargs)

    def ids(self):
        return [box["id"] for box in self.engine.sandboxes()]

    def test_prints_42(self):
        result = self.run_rm("python3", "-c", "print(6*7)")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "42\n", ""))
        self.assertEqual(self.ids(), [])

    def test_gives_the_commands_own_output_and_code(self):
        result = self.run_rm("sh", "-c", "echo out; echo err >&2; exit 7")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (7, "out\n", "err\n"))

    def test_codes_for_everything_else(self):
        self.assertEqual(self.run_rm("sh", "-c", "kill -TERM $$").returncode, 128 + 15)
        self.assertEqual(self.run_rm("no-such-program").returncode, 127)
        self.assertEqual(self.run_rm("/etc/passwd").returncode, 126)
        self.assertEqual(self.run_rm("true", options=["-u", "nobody-here"]).returncode, 125)
        timed_out = self.run_rm("sleep", "100", options=["--timeout", "300ms"])
        self.assertEqual(timed_out.returncode, 124)
        self.assertIn("300ms", timed_out.stderr)
        nowhere = subprocess.run([HEARTH, "run", "--state-dir", "/nonexistent", "--", "true"], capture_output=True, text=True)
        self.assertEqual(nowhere.returncode, 125)
        self.assertIn("hearth up", nowhere.stderr)

    def test_out_of_memory_is_said(self):
        result = self.run_rm("python3", "-c", "x = bytearray(1 << 30)", options=["--memory", "64m"])
        self.assertEqual(result.returncode, 137)
        self.assertIn("memory", result.stderr)

    def test_stdin_environment_directory_user(self):
        self.assertEqual(self.run_rm("cat", options=["-i"], stdin="typed").stdout, "typed")
        self.assertEqual(self.run_rm("cat", stdin="typed").stdout, "")
        options = ["-e", "A=x y", "-w", "/usr", "-u", "user"]
        self.assertEqual(self.run_rm("sh", "-c", "echo $A; pwd; id -un", options=options).stdout, "x y\n/usr\nuser\n")

    def test_stays_without_rm(self):
        self.hearth("run", "--name", "kept", "--", "sh", "-c", "echo state > /tmp/file")
        self.assertEqual(self.ids(), ["kept"])
        self.assertEqual(self.hearth("exec", "kept", "--", "cat", "/tmp/file").stdout, "state\n")
        again = self.hearth("run", "--name", "kept", "--", "true")
        self.assertEqual(again.returncode, 125)
        self.assertIn("kept", again.stderr)

    def test_listing(self):
        self.hearth("run", "-d", "--name", "one", "--memory", "256m", "--", "sleep", "1000")
        table = self.hearth("ls").stdout.splitlines()
        self.assertEqual(len(table), 2, table)
        self.assertIn("one", table[1])
        box = self.engine.sandboxes()[0]
        self.assertEqual((box["id"], box["state"], box["image"]), ("one", "running", "host"))
        inspected = json.loads(self.hearth("inspect", "one").stdout)
        self.assertEqual(inspected[0]["id"], "one")
        self.assertEqual(self.hearth("inspect", "nobody").returncode, 1)
        removed = self.hearth("rm", "one", "nobody")
        self.assertEqual(removed.returncode, 1)
        self.assertIn("nobody", removed.stderr)
        self.assertEqual(self.ids(), [])

    def test_detached_and_its_log(self):
        made = self.hearth("run", "-d", "--", "sh", "-c", "echo first; sleep 0.2; echo second >&2; sleep 1000")
        box = made.stdout.strip()
        self.assertEqual(self.ids(), [box])
        self.assertTrue(wait_until(lambda: self.hearth("logs", box).stderr == "second\n"))
        self.assertEqual(self.hearth("logs", box).stdout, "first\n")
        follower = subprocess.Popen([HEARTH, "logs", "-f", "--state-dir", self.engine.state_dir, box],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(follower.stdout.readline(), "first\n")
        self.assertEqual(follower.stdout.readline(), "second\n")
        self.hearth("rm", box)
        follower.wait(60)
        follower.stdout.close()

    def test_a_hundred_mebibytes_through_a_pipe(self):
        words = [HEARTH, "run", "--rm", "--state-dir", self.engine.state_dir, "--", "head", "-c", "104857600", "/dev/zero"]
        client = subprocess.Popen(words, stdout=subprocess.PIPE)
        total = 0
        while piece := client.stdout.read(1 << 20):
            total += len(piece)
        client.stdout.close()
        self.assertEqual((client.wait(), total), (0, 104857600))

    def test_interrupt_reaches_the_command(self):
        words = [HEARTH, "run", "--rm", "--state-dir", self.engine.state_dir, "--", "sh", "-c",
                 "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.01; done"]
        client = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.assertEqual(client.stdout.readline(), "ready\n")
        client.send_signal(signal.SIGINT)
        self.assertEqual(client.stdout.read(), "caught\n")
        self.assertEqual(client.wait(60), 5)
        client.stdout.close()
        self.assertEqual(self.ids(), [])

    def test_a_killed_client_leaks_nothing(self):
        words = [HEARTH, "run", "--rm", "--state-dir", self.engine.state_dir, "--", "sh", "-c", "echo x; sleep 1000"]
        client = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.assertEqual(client.stdout.readline(), "x\n")
        client.kill()
        client.wait()
        client.stdout.close()
        wait_until(lambda: self.ids() == [], what="the sandbox's end")

    def test_a_real_terminal(self):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
        words = [HEARTH, "run", "--rm", "-it", "--state-dir", self.engine.state_dir, "--", "sh"]
        client = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        seen = ""

        def expect(pattern):
            nonlocal seen
            end = time.monotonic() + 60
            while not re.search(pattern, seen):
                self.assertLess(time.monotonic(), end, f"no {pattern!r} in {seen!r}")
                if select.select([master], [], [], 0.1)[0]:
                    seen += os.read(master, 4096).decode(errors="replace")
            seen = seen[re.search(pattern, seen).end():]

        expect(r"# ")
        os.write(master, b"stty size; tty\n")
        expect(r"30 90\r\n/dev/pts/\d+\r\n")
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        client.send_signal(signal.SIGWINCH)
        os.write(master, b"until test \"$(stty size)\" = '40 100'; do sleep 0.05; done; echo resi''zed\n")
        expect(r"resized\r\n")
        os.write(master, b"sh -c 'echo as\"\"leep; exec sleep 1000'\n")  # in the foreground when it says so
        expect(r"asleep\r\n")
        os.write(master, b"\x03")  # Ctrl-C goes to the command, not to us
        os.write(master, b"exit 6\n")
        self.assertEqual(client.wait(60), 6)
        os.close(master)

    def test_help_and_bad_words(self):
        for verb in ("up", "run", "exec", "ls", "inspect", "rm", "logs", "version", "env", "doctor",
                     "pause", "resume", "commit", "fork", "network", "stats", "volume", "image", "team", "key", "template"):
            result = self.hearth(verb, "--help")
            self.assertEqual(result.returncode, 0, verb)
            self.assertIn(verb, result.stdout)
        self.assertIn("run", self.hearth("--help").stdout)
        for words in (["rnu"], ["run", "--memory", "lots", "--", "true"], ["run", "--nonsense"], ["run", "-e", "X", "--", "true"],
                      ["run", "--timeout", "soon", "--", "true"], ["exec", "nobody", "--", "true"], ["run", "--name", "../x", "--", "true"],
                      ["run", "--image", "nothing", "--", "true"], ["logs", "nobody"]):
            result = self.hearth(*words)
            self.assertNotEqual(result.returncode, 0, words)
            self.assertTrue(result.stderr.startswith("hearth"), (words, result.stderr))
            self.assertNotIn("terminate", result.stderr)

    def test_version_and_doctor(self):
        self.assertRegex(self.hearth("version").stdout, r"\d+\.\d+\.\d+")
        checks = json.loads(self.hearth("doctor", "-o", "json").stdout)
        self.assertTrue(checks)
        self.assertEqual(self.hearth("doctor").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
