"""E2B's Python SDK where programs are careless: odd names, wrong words, and sandboxes that are gone. Run by engine_test.py, on two
generations."""
import importlib.metadata
import inspect
import io
import unittest
import urllib.request

from e2b import (AuthenticationException, InvalidArgumentException, NotFoundException, PtySize, Sandbox, SandboxException, SandboxNetworkOpts,
                 TimeoutException)

NEW = tuple(map(int, importlib.metadata.version("e2b").split(".")[:2])) >= (2, 51)
ODD_NAMES = ("sp ace", "é\N{GRINNING FACE}", "a'b\"c", "new\nline", "-dash", "%2F", "a+b&c=d?e#f", "back\\slash", "*", "x" * 255, ";", "...")
NOBODY = 4_000_000  # a pid that no process has


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = Sandbox.create(timeout=300)
        cls.addClassCleanup(cls.box.kill)

    def refused(self, kind, what, call, *words, **options):
        with self.assertRaises(kind) as caught:
            call(*words, **options)
        self.assertIn(what, str(caught.exception))


class Commands(Shared):
    def test_what_cannot_be_run(self):
        run = self.box.commands.run
        self.refused(AuthenticationException, "invalid username: 'nosuch'", run, "id", user="nosuch")
        self.refused(InvalidArgumentException, "cwd '/nope' does not exist", run, "id", cwd="/nope")
        self.refused(InvalidArgumentException, "is not a directory", run, "id", cwd="/etc/passwd")
        self.refused(InvalidArgumentException, "~root", run, "id", cwd="~root")
        self.refused(InvalidArgumentException, "zero byte", run, "echo a\0b")
        self.refused(InvalidArgumentException, "Argument list too long", run, "echo " + "x" * 200_000)
        self.refused(InvalidArgumentException, "NAME=value", run, "id", envs={"": "x"})

    def test_what_is_odd_and_right(self):
        run = self.box.commands.run
        self.assertEqual(run("").exit_code, 0)
        self.assertEqual(run("cat; echo end").stdout, "end\n")  # no input is an empty one
        self.assertEqual(run("pwd", cwd="..").stdout, "/home\n")  # of home
        self.assertEqual(run("printf '\\xff\\xfe'").stdout, "\ufffd\ufffd")
        self.assertEqual(run("sleep 0.1; echo $'A B' \"$E\"", envs={"E": "é \"'$"}, timeout=0).stdout, "A B é \"'$\n")
        self.assertEqual(len(run("head -c 5000000 /dev/zero | tr '\\0' x; head -c 100000 /dev/zero | tr '\\0' y >&2").stdout), 5_000_000)

    def test_those_that_are_not_there(self):
        commands = self.box.commands
        self.refused(NotFoundException, f"process with pid {NOBODY} not found", commands.connect, NOBODY)
        self.refused(NotFoundException, f"process with pid {NOBODY} not found", commands.send_stdin, NOBODY, "x")
        self.assertFalse(commands.kill(NOBODY))
        self.assertFalse(commands.kill(1))  # the sandbox's own first process is no command

    def test_input_of_the_wrong_kind(self):
        plain = self.box.commands.run("sleep 600", background=True)
        self.addCleanup(plain.kill)
        self.refused(SandboxException, "stdin not enabled or closed", self.box.commands.send_stdin, plain.pid, "x")
        self.refused(SandboxException, "no terminal", self.box.pty.send_stdin, plain.pid, b"x")
        self.refused(SandboxException, "no terminal", self.box.pty.resize, plain.pid, PtySize(rows=1, cols=1))
        terminal = self.box.pty.create(PtySize(rows=24, cols=80), cwd="/tmp", user="root")
        self.addCleanup(terminal.kill)
        self.refused(SandboxException, "terminal", self.box.commands.send_stdin, terminal.pid, "x")
        self.refused(AuthenticationException, "nosuch", self.box.pty.create, PtySize(rows=1, cols=1), user="nosuch")
        self.refused(InvalidArgumentException, "/nope", self.box.pty.create, PtySize(rows=1, cols=1), cwd="/nope")

    def test_input_as_a_stream(self):
        if not hasattr(self.box.commands, "stream_input"):
            self.skipTest("needs a newer SDK")
        handle = self.box.commands.run("cat", background=True, stdin=True)
        self.box.commands.send_stdin(handle.pid, b"\x00\xff\n")
        self.box.commands.stream_input(handle.pid, (piece for piece in ("a", b"b", "", "é\n")))
        self.box.commands.stream_input(handle.pid, [])
        self.box.commands.close_stdin(handle.pid)
        self.assertEqual(handle.wait().stdout, "\x00\ufffd\nabé\n")
        self.refused(NotFoundException, "not found", self.box.commands.stream_input, NOBODY, ["x"])


class Files(Shared):
    def test_odd_names(self):
        files = self.box.files
        for name in ODD_NAMES:
            with self.subTest(name=name):
                self.assertEqual(files.write(f"odd/{name}", name).name, name)
                self.assertEqual(files.read(f"odd/{name}"), name)
                with urllib.request.urlopen(self.box.download_url(f"odd/{name}"), timeout=60) as answer:
                    self.assertEqual(answer.read().decode(), name)
        self.assertEqual({entry.name for entry in files.list("odd")}, set(ODD_NAMES))
        self.refused(InvalidArgumentException, "too long", files.write, "x" * 256, "")

    def test_what_is_no_file(self):
        files = self.box.files
        self.box.commands.run("ln -s loop loop; ln -s nowhere dangling; mkfifo fifo")
        self.refused(InvalidArgumentException, "is a directory", files.read, "/tmp")
        self.refused(InvalidArgumentException, "is a directory", files.write, "/tmp", "x")
        self.refused(InvalidArgumentException, "regular file", files.read, "fifo")
        self.refused(InvalidArgumentException, "below a file", files.write, "/etc/passwd/x", "x")
        self.refused(InvalidArgumentException, "no name", files.write, "", "x")
        self.refused(InvalidArgumentException, "not a directory", files.list, "/etc/passwd")
        self.refused(SandboxException, "too many links", files.list, "loop")
        self.refused(NotFoundException, "does not exist", files.read, "dangling")
        self.assertTrue(files.exists("dangling"))
        self.refused(NotFoundException, "not found", files.watch_dir, "/nope")
        self.refused(InvalidArgumentException, "not a directory", files.watch_dir, "/etc/passwd")
        self.refused(AuthenticationException, "nosuch", files.write, "f", "x", user="nosuch")
        self.refused(AuthenticationException, "nosuch", files.get_info, "/tmp", user="nosuch")
        self.assertIn("Linux", files.read("/proc/version"))  # of no size, and not empty

    def test_nothing_and_streams(self):
        files = self.box.files
        files.write("empty", "")
        self.assertEqual((files.read("empty"), bytes(files.read("empty", format="bytes"))), ("", b""))
        self.assertEqual(b"".join(files.read("empty", format="stream")), b"")
        self.assertEqual(files.write_files([]), [])
        files.write("stream", io.BytesIO(b"x" * 3_000_000))
        self.assertEqual(files.get_info("stream").size, 3_000_000)
        twice = [{"path": "dup", "data": "1"}, {"path": "dup", "data": "2"}]
        self.refused(InvalidArgumentException, "two files of one upload", files.write_files, twice)


class Gone(unittest.TestCase):
    """What callers are told of a sandbox that runs no more."""

    def expect_no_answer_inside(self, box):
        for call in (lambda: box.commands.run("true"), box.commands.list, lambda: box.commands.kill(1), lambda: box.files.read("f"),
                     lambda: box.files.write("f", "x"), lambda: box.files.exists("f"), lambda: box.files.watch_dir("/tmp"),
                     lambda: box.pty.create(PtySize(rows=1, cols=1))):
            with self.assertRaises(TimeoutException):
                call()
        self.assertFalse(box.is_running())

    def test_killed(self):
        box = Sandbox.create(timeout=60)
        box.kill()
        self.expect_no_answer_inside(box)
        for call in (box.get_info, lambda: box.set_timeout(10), box.pause, box.connect, box.fork, box.create_snapshot):
            with self.assertRaises(NotFoundException):
                call()
        self.assertEqual(box.get_metrics(), [])

    def test_paused(self):
        box = Sandbox.create(timeout=60)
        self.addCleanup(box.kill)
        self.assertTrue(box.pause())
        self.assertFalse(box.pause())
        self.expect_no_answer_inside(box)
        with self.assertRaises(NotFoundException):
            box.set_timeout(10)
        for call in (box.fork, box.create_snapshot):
            with self.assertRaises(SandboxException) as caught:
                call()
            self.assertIn("409", str(caught.exception))
        box.connect(timeout=60)
        self.assertEqual(box.commands.run("echo back").stdout, "back\n")


class Wishes(unittest.TestCase):
    def refused(self, words, **options):
        with self.assertRaises(SandboxException) as caught:
            Sandbox.create(**options).kill()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_that_are_wrong(self):
        self.refused(["400", "timeout"], timeout=-1)
        self.refused(["400", "86400"], timeout=86_401)
        self.refused(["400", "template"], template="a b/c:d")
        self.refused(["404", "base:nope"], template="base:nope")
        self.refused(["400", "metadata"], metadata={"a": 1})
        self.refused(["400", "65536"], metadata={"a": "x" * 100_000})
        self.refused(["400", "a=b"], envs={"a=b": "x"})
        self.refused(["400", "1.2.3.4/99"], network={"deny_out": ["1.2.3.4/99"]})
        self.refused(["400", "example.com"], network={"deny_out": ["example.com"]})

    def test_that_nobody_grants_here(self):
        self.refused(["501", "volume"], volume_mounts={"/mnt": "v"})
        self.refused(["501", "egressProxy"], network={"egress_proxy": {"address": "192.0.2.1:1080"}})
        self.refused(["501", "rules"], network={"rules": {"example.com": [{"transform": {"headers": {"A": "b"}}}]}})
        self.refused(["mcp-gateway"], template="base", mcp={"server": {}})  # the image has no such program
        self.refused(["501", "iam"], iam={"tokens": {"a": {"audience": "x", "token_type": "JWT-SVID"}}})
        if "dns_servers" in SandboxNetworkOpts.__annotations__:  # others do not send it
            self.refused(["501", "dnsServers"], network={"dns_servers": ["192.0.2.1"]})

    def test_a_template_by_any_of_its_names(self):
        for name in ("base", "BASE", "default/base", "base:default"):
            box = Sandbox.create(name, timeout=60)
            self.addCleanup(box.kill)
            self.assertEqual(box.get_info().template_id, "base")

    @unittest.skipUnless("mode" in inspect.signature(Sandbox.pause).parameters, "needs a newer SDK")
    def test_what_a_pause_keeps(self):
        box = Sandbox.create(timeout=60)
        self.addCleanup(box.kill)
        box.commands.run("sleep 600", background=True)
        count = lambda: box.commands.run("pgrep -c sleep || true").stdout
        box.pause(mode="full", strict=True)
        box.connect()
        self.assertEqual(count(), "1\n")
        box.pause(mode="filesystem")
        box.connect()
        self.assertEqual(count(), "0\n")
        snapshot = box.create_snapshot(mode="filesystem")
        self.assertTrue(Sandbox.delete_snapshot(snapshot.snapshot_id))

    def test_connecting_for_no_time(self):
        box = Sandbox.create(timeout=60)
        self.addCleanup(box.kill)
        end = box.get_info().end_at
        Sandbox.connect(box.sandbox_id, timeout=1)
        self.assertEqual(box.get_info().end_at, end)
        if NEW:  # the one before takes 0 for its own default
            Sandbox.connect(box.sandbox_id, timeout=0)
            self.assertEqual(box.get_info().end_at, end)


if __name__ == "__main__":
    unittest.main()
