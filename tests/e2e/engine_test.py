"""The engine's contracts with scripts: ready, endpoints, one at a time, three ways to end."""
import contextlib
import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from hearth import HEARTH, SECONDS, START_SECONDS, Engine, expect_host_as_before, host_state, is_alive, need_root, wait_until


def tag_of(state_dir):
    """By which a runtime calls what it makes on the machine."""
    status = os.stat(f"{state_dir}/runtime")
    return f"{status.st_dev:x}-{status.st_ino:x}"


def in_memory(state_dir, part=""):
    return [path for place in ("/run", "/dev/shm") for path in glob.glob(f"{place}/hearth/{tag_of(state_dir)}{part}")]


class EngineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()

    def setUp(self):
        self.before = host_state()
        self.engine = Engine().start()
        self.addCleanup(self.engine.remove)

    def expect_host_as_before(self):
        expect_host_as_before(self.before, self.before.keys())

    def make_one(self):
        made = self.engine.hearth("run", "-d", "--name", "box", "--", "sleep", "1000")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(made.stdout.strip(), "box")
        return self.engine.sandboxes()[0]["pid"]

    def test_tells_where_it_serves(self):
        endpoints = self.engine.endpoints()
        self.assertEqual(set(endpoints), {"e2b", "kube", "metrics"})
        for name in endpoints:
            self.assertIn(f" {name}={endpoints[name]} ", self.engine.said())
        for name in ("endpoints.json", "admin.kubeconfig", "admin.token", "e2b.key"):
            status = os.stat(f"{self.engine.state_dir}/{name}")
            self.assertEqual(status.st_mode & 0o777, 0o600)
            self.assertEqual(status.st_uid, os.stat(f"/proc/{self.engine.process.pid}").st_uid)
        with urllib.request.urlopen(endpoints["metrics"] + "/healthz", timeout=SECONDS) as answer:
            self.assertEqual(answer.status, 200)
        self.make_one()
        with urllib.request.urlopen(endpoints["metrics"] + "/metrics", timeout=SECONDS) as answer:
            self.assertIn('hearth_sandboxes{state="running"} 1', answer.read().decode())

    def test_env_prints_what_clients_need(self):
        lines = self.engine.hearth("env").stdout.splitlines()
        self.assertIn(f"export HEARTH_STATE_DIR={self.engine.state_dir}", lines)
        self.assertTrue(any(line.startswith("export HEARTH_METRICS_URL=") for line in lines), lines)
        self.assertIn(f"export KUBECONFIG={self.engine.state_dir}/admin.kubeconfig", lines)
        script = self.engine.hearth("env").stdout + 'echo "$HEARTH_STATE_DIR"'
        self.assertEqual(subprocess.check_output(["sh", "-c", script], text=True).strip(), self.engine.state_dir)

    def test_runs_as_an_ordinary_user_and_its_files_are_closed(self):
        status = pathlib.Path(f"/proc/{self.engine.process.pid}/status").read_text()
        uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
        self.assertNotIn("0", uids)
        capabilities = next(line for line in status.splitlines() if line.startswith("CapPrm:")).split()[1]
        self.assertEqual(int(capabilities, 16), 0)
        self.assertEqual(os.stat(self.engine.state_dir).st_mode & 0o007, 0)
        self.assertEqual(os.stat(f"{self.engine.state_dir}/runtime.sock").st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(f"{self.engine.state_dir}/runtime").st_mode & 0o777, 0o700)

    def test_a_second_engine_refuses(self):
        second = subprocess.run([HEARTH, "up", "--state-dir", self.engine.state_dir, "--metrics-port", "0",
                                 "--kube-port", "0", "--e2b-port", "0"],
                                capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(second.returncode, 1)
        self.assertIn(str(self.engine.process.pid), second.stderr)
        self.assertEqual(self.engine.hearth("ls").returncode, 0)

    def test_a_busy_port_is_named(self):
        flags = ("--metrics-port", "--kube-port", "--e2b-port")
        for flag in flags:
            with self.subTest(flag=flag), socket.socket() as busy:
                busy.bind(("127.0.0.1", 0))
                busy.listen()
                port = str(busy.getsockname()[1])
                other = Engine()
                self.addCleanup(other.remove)
                free = [word for other_flag in flags if other_flag != flag for word in (other_flag, "0")]
                result = subprocess.run([HEARTH, "up", "--state-dir", other.state_dir, flag, port, *free],
                                        capture_output=True, text=True, timeout=SECONDS)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(port, result.stderr)
                self.assertIn(flag, result.stderr)
                self.assertIsNone(other.runtime_pid())

    def test_ctrl_c_leaves_nothing(self):
        self.make_one()
        self.engine.hearth("run", "--", "true")
        self.assertEqual(self.engine.end(signal.SIGINT), 0)
        self.expect_host_as_before()
        self.assertFalse(os.path.exists(f"{self.engine.state_dir}/endpoints.json"))

    def test_sigterm_lets_sandboxes_live(self):
        pid = self.make_one()
        self.engine.hearth("exec", "box", "--", "sh", "-c", "echo kept > /tmp/file")
        self.assertEqual(self.engine.end(signal.SIGTERM), 0)
        self.assertTrue(is_alive(pid))
        self.assertIsNone(self.engine.runtime_pid())
        self.assertEqual(self.engine.hearth("ls").returncode, 1)

        self.engine.start()
        self.assertEqual(self.engine.sandboxes()[0]["pid"], pid)
        self.assertEqual(self.engine.hearth("exec", "box", "--", "cat", "/tmp/file").stdout, "kept\n")
        self.engine.end()
        self.expect_host_as_before()

    def test_kill_9_of_the_engine(self):
        pid = self.make_one()
        self.engine.end(signal.SIGKILL)
        self.engine.start()
        self.assertEqual([box["pid"] for box in self.engine.sandboxes()], [pid])
        self.assertEqual(self.engine.hearth("exec", "box", "--", "echo", "here").stdout, "here\n")
        self.engine.end()
        self.expect_host_as_before()

    def test_kill_9_of_engine_and_runtime(self):
        pid = self.make_one()
        doomed = self.engine.hearth("run", "-d", "--name", "doomed", "--", "sleep", "1000")
        self.assertEqual(doomed.returncode, 0, doomed.stderr)
        doomed_pid = next(box["pid"] for box in self.engine.sandboxes() if box["id"] == "doomed")
        runtime = self.engine.runtime_pid()
        os.kill(runtime, signal.SIGKILL)
        self.engine.end(signal.SIGKILL)
        os.kill(doomed_pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(doomed_pid))

        self.engine.start()
        self.assertEqual([box["pid"] for box in self.engine.sandboxes()], [pid])
        self.engine.end()
        self.expect_host_as_before()

    def test_says_so_when_the_runtime_dies(self):
        os.kill(self.engine.runtime_pid(), signal.SIGKILL)
        self.assertEqual(self.engine.process.wait(SECONDS), 1)
        self.assertIn("hearth up", self.engine.said())
        self.engine.start()

    def kill_all_but_sandboxes(self):
        runtime = self.engine.runtime_pid()
        self.engine.end(signal.SIGKILL)
        os.kill(runtime, signal.SIGKILL)
        wait_until(lambda: not is_alive(runtime))

    def test_what_is_left_of_a_removed_state_folder_goes_with_the_next_engine(self):
        pid = self.make_one()
        paused = self.engine.hearth("run", "-d", "--name", "paused", "--", "sleep", "1000")
        self.assertEqual(paused.returncode, 0, paused.stderr)
        self.assertEqual(self.engine.hearth("pause", "paused").returncode, 0)
        neighbour = Engine().start("--warm", "0")
        self.addCleanup(neighbour.remove)
        self.assertEqual(neighbour.hearth("run", "-d", "--name", "box", "--", "sleep", "1000").returncode, 0)
        self.kill_all_but_sandboxes()
        shutil.rmtree(self.engine.state_dir)
        self.assertTrue(is_alive(pid))
        other = Engine().start("--warm", "0")
        self.addCleanup(other.remove)
        wait_until(lambda: not is_alive(pid), 30, "the end of the sandbox")
        # Whoever lives is left alone.
        self.assertEqual(neighbour.hearth("exec", "box", "--", "echo", "here").stdout, "here\n")
        neighbour.end()
        other.end()
        self.expect_host_as_before()

    def test_a_folder_that_got_the_inode_of_one_that_is_gone_has_an_engine_of_its_own(self):
        self.make_one()
        tag = tag_of(self.engine.state_dir)
        (note,) = [path for path in (pathlib.Path(place, "hearth", tag, "home") for place in ("/run", "/dev/shm")) if path.is_file()]
        self.kill_all_but_sandboxes()
        shutil.rmtree(self.engine.state_dir)
        # What the kernel does when it pleases: another folder has the name by which the dead one is known.
        text = note.read_bytes()
        other = Engine().start("--warm", "0")
        self.addCleanup(other.remove)
        other.end()
        twin = note.parent.with_name(tag_of(other.state_dir))
        twin.parent.mkdir(0o700, exist_ok=True)
        twin.mkdir(0o700)
        (twin / "home").write_bytes(text)
        other.start("--warm", "0")
        result = other.hearth("run", "--", "echo", "alive")
        self.assertEqual((result.stdout, result.stderr), ("alive\n", ""))
        other.end()
        self.expect_host_as_before()

    def test_a_state_folder_that_was_moved_is_not_gone(self):
        pid = self.make_one()
        self.kill_all_but_sandboxes()
        moved = self.engine.state_dir + "-moved"
        os.rename(self.engine.state_dir, moved)
        self.engine.state_dir = moved
        other = Engine().start("--warm", "0")
        other.end()
        other.remove()
        self.assertTrue(is_alive(pid))
        self.engine.start()
        self.assertEqual([box["pid"] for box in self.engine.sandboxes()], [pid])
        self.engine.end()
        self.expect_host_as_before()

    def test_a_runtime_that_nobody_can_reach_ends_with_everything(self):
        pid = self.make_one()
        runtime = self.engine.runtime_pid()
        self.engine.end(signal.SIGKILL)
        shutil.rmtree(self.engine.state_dir)
        wait_until(lambda: not is_alive(runtime), what="the end of the runtime")
        wait_until(lambda: not is_alive(pid), what="the end of the sandbox")
        self.expect_host_as_before()

    def test_demo(self):
        self.engine.end()
        self.engine.start("--demo")
        said = wait_until(lambda: "hearth run" in self.engine.said() and self.engine.said(), what="the demonstration")
        self.assertIn("42", said)
        self.assertEqual(self.engine.sandboxes(), [])


class Starts(unittest.TestCase):
    """A start that fails leaves nothing. One that is killed leaves nothing that the next engine does not take away, even if
    its folder is gone by then."""

    words = ("--warm", "2", "--no-e2b", "--metrics-port", "0", "--kube-port", "0")

    @classmethod
    def setUpClass(cls):
        need_root()

    def setUp(self):
        self.before = host_state()

    def expect_failure(self, program=HEARTH, prepare=lambda folder: None):
        folder = tempfile.mkdtemp(prefix="hearth-e2e-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        prepare(pathlib.Path(folder))
        result = subprocess.run([program, "up", "--state-dir", folder, *self.words], capture_output=True, text=True, timeout=START_SECONDS)
        self.assertEqual(result.returncode, 1, result.stdout)
        expect_host_as_before(self.before)
        return result.stderr

    def test_one_without_its_guest_fails(self):
        programs = pathlib.Path(tempfile.mkdtemp(prefix="hearth-e2e-bin-"))
        self.addCleanup(shutil.rmtree, programs)
        for name in ("hearth", "hearth-runtime"):
            shutil.copy(pathlib.Path(HEARTH).with_name(name), programs)
        self.assertIn("hearth-guest", self.expect_failure(str(programs / "hearth")))

    def test_one_that_cannot_listen_fails(self):
        def prepare(folder):
            (folder / "engine.lock").touch()  # an engine was here before
            (folder / "runtime.sock/taken").mkdir(parents=True)
        self.assertIn("runtime.sock", self.expect_failure(prepare=prepare))

    # What tells how far a start has come.
    signs = {
        "its folder": lambda folder: glob.glob(f"{folder}/runtime"),
        "its folder in memory": lambda folder: in_memory(folder),
        "its lock there": lambda folder: in_memory(folder, "/lock"),
        "its note there": lambda folder: in_memory(folder, "/home"),
        "its cgroup": lambda folder: [path for place in ("", "/*") for path in glob.glob(f"/sys/fs/cgroup{place}/hearth/{tag_of(folder)}")],
        "its sandboxes": lambda folder: in_memory(folder, "/sandboxes"),
        "the image of the host": lambda folder: os.listdir(f"{folder}/runtime/images"),
        "its socket": lambda folder: glob.glob(f"{folder}/runtime.sock"),
    }

    def begin(self, sign):
        """A start that has come so far."""
        engine = Engine()
        self.addCleanup(shutil.rmtree, engine.state_dir, ignore_errors=True)
        engine.process = subprocess.Popen([HEARTH, "up", "--state-dir", engine.state_dir, *self.words],
                                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(engine.process.kill)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and engine.process.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                if sign(engine.state_dir):
                    return engine
        self.fail("it never came so far")

    def kill(self, sign, *, runtime):
        engine = self.begin(sign)
        pid = engine.process.pid
        # At once: looking for it takes longer than what is to be hit.
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if runtime else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        engine.process.kill()
        engine.process.wait()
        # The next one would get its number, and with it whatever is called by that.
        with contextlib.suppress(FileNotFoundError):
            self.addCleanup(os.close, os.open(f"{engine.state_dir}/runtime", os.O_RDONLY))
        shutil.rmtree(engine.state_dir, ignore_errors=True)
        wait_until(lambda: not engine.runtime_pid(), START_SECONDS, "the end of the runtime")
        shutil.rmtree(engine.state_dir, ignore_errors=True)

    def sweep(self):
        other = Engine().start("--warm", "0")
        self.addCleanup(other.remove)
        other.end()
        expect_host_as_before(self.before)

    def test_one_that_is_killed_at_any_moment(self):
        for name, sign in self.signs.items():
            with self.subTest(sign=name):
                self.kill(sign, runtime=True)
        began = time.monotonic()
        self.kill(self.signs["its socket"], runtime=True)
        takes = time.monotonic() - began
        for part in range(1, 12):
            with self.subTest(part=part):
                begun = time.monotonic()
                self.kill(lambda _: time.monotonic() > begun + takes * part / 11, runtime=True)
        self.sweep()

    def test_one_whose_engine_alone_is_killed_and_whose_folder_goes(self):
        for name, sign in self.signs.items():
            with self.subTest(sign=name):
                self.kill(sign, runtime=False)
        self.sweep()

    def test_a_runtime_that_nobody_waits_for_leaves_nothing(self):
        """Its engine was killed before it was ready."""
        with tempfile.TemporaryDirectory(prefix="hearth-e2e-") as folder:
            read, write = os.pipe()
            runtime = subprocess.Popen([pathlib.Path(HEARTH).with_name("hearth-runtime"), "--state-dir", folder, "--owner", "0",
                                        "--warm", "2", "--ready-fd", str(write)], pass_fds=[write], stderr=subprocess.DEVNULL)
            os.close(read)
            os.close(write)
            self.assertEqual(runtime.wait(START_SECONDS), 1)
            expect_host_as_before(self.before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
