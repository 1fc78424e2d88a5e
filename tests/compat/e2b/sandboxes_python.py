"""What a user of E2B's Python SDK does with sandboxes, and what comes back. Run by engine_test.py, on two generations."""
import datetime
import importlib.metadata
import inspect
import os
import threading
import time
import unittest
import urllib.error
import urllib.request

from e2b import (ALL_TRAFFIC, AuthenticationException, CommandExitException, NotFoundException, PtySize, RateLimitException, Sandbox,
                 SandboxException, SandboxQuery, SandboxState, TimeoutException)

NEW = tuple(map(int, importlib.metadata.version("e2b").split(".")[:2])) >= (2, 51)
MIB = 1 << 20
RUN = f"{os.getpid()}"  # tells apart what runs of this file made


def eventually(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def fetch(url, data=None, headers=None):
    """The status and the body."""
    request = urllib.request.Request(url, data, headers or {}, method="POST" if data is not None else "GET")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def all_of(paginator):
    found = []
    while paginator.has_next:
        found += paginator.next_items()
    return found


class Case(unittest.TestCase):
    def create(self, *words, **options):
        box = Sandbox.create(*words, **{"timeout": 120, **options})
        self.addCleanup(box.kill)
        return box


class Shared(unittest.TestCase):
    """Those that one sandbox is enough for."""

    @classmethod
    def setUpClass(cls):
        cls.box = Sandbox.create(timeout=300, metadata={"run": RUN, "odd": "a=b&c d/é"}, envs={"GLOBAL": "yes"})
        cls.addClassCleanup(cls.box.kill)


class Commands(Shared):
    def test_output_end_and_environment(self):
        done = self.box.commands.run("echo $GLOBAL $OWN; pwd; whoami; echo err >&2", envs={"OWN": "own"}, cwd="/tmp", user="root")
        self.assertEqual((done.stdout, done.stderr, done.exit_code), ("yes own\n/tmp\nroot\n", "err\n", 0))
        self.assertEqual(self.box.commands.run("whoami; pwd").stdout, "user\n/home/user\n")

    def test_a_failure_is_raised(self):
        with self.assertRaises(CommandExitException) as caught:
            self.box.commands.run("echo why >&2; exit 3")
        self.assertEqual((caught.exception.exit_code, caught.exception.stderr), (3, "why\n"))

    def test_output_arrives_as_it_is_written(self):
        pieces = []

        def heard(text):
            pieces.append(text)
            self.box.files.write("/tmp/heard", "")

        self.box.commands.run("echo 1; until test -e /tmp/heard; do sleep 0.02; done; echo 2", on_stdout=heard)
        self.assertEqual("".join(pieces), "1\n2\n")

    def test_background_input_and_kill(self):
        handle = self.box.commands.run("cat", background=True, stdin=True)
        self.assertIn(handle.pid, [each.pid for each in self.box.commands.list()])
        self.box.commands.send_stdin(handle.pid, "hello\n")
        self.assertEqual(next(stdout for stdout, _, _ in handle if stdout), "hello\n")
        self.assertTrue(handle.kill())
        self.assertFalse(self.box.commands.kill(handle.pid))

    def test_somebody_else_attaches(self):
        handle = self.box.commands.run("while ! test -e /tmp/go; do sleep 0.02; done; echo late; exit 7", background=True)
        handle.disconnect()
        again = Sandbox.connect(self.box.sandbox_id).commands.connect(handle.pid)
        self.box.files.write("/tmp/go", "")
        with self.assertRaises(CommandExitException) as caught:
            again.wait()
        self.assertEqual((caught.exception.exit_code, caught.exception.stdout), (7, "late\n"))

    def test_a_deadline(self):
        with self.assertRaises(TimeoutException):
            self.box.commands.run("sleep 61", timeout=0.5)
        eventually(lambda: self.box.commands.run("pgrep -fc '^sleep 61' || true").stdout == "0\n")

    def test_sudo(self):
        run = self.box.commands.run
        self.assertEqual(run("sudo id -u").stdout, "0\n")
        self.assertEqual(run("echo kept | sudo tee /etc/made-by-sudo; stat -c %U /etc/made-by-sudo").stdout, "kept\nroot\n")
        self.assertEqual(run("cd /tmp && sudo -u nobody sh -c 'pwd; id -un'").stdout, "/tmp\nnobody\n")
        with self.assertRaises(CommandExitException) as caught:
            run("sudo sh -c 'echo why >&2; exit 7'")
        self.assertEqual((caught.exception.exit_code, caught.exception.stderr), (7, "why\n"))
        handle = run("sudo sleep 4713", background=True)
        eventually(lambda: run("pgrep -fc '^sleep 4713' || true").stdout == "1\n")
        self.assertTrue(handle.kill())
        eventually(lambda: run("pgrep -fc '^sleep 4713' || true").stdout == "0\n")
        with self.assertRaises(TimeoutException):
            run("sudo sleep 4714", timeout=0.5)
        eventually(lambda: run("pgrep -fc '^sleep 4714' || true").stdout == "0\n")

    def test_sudo_on_a_terminal(self):
        output = bytearray()
        steps = [(b"$ ", b"sudo -i\n"), (b"# ", b"stty size; echo I am $(id -un)\n"), (b"I am root", b"exit 5\n"), (b"$ ", b"exit $?\n")]
        handle = self.box.pty.create(PtySize(rows=24, cols=80), timeout=60)
        self.box.pty.resize(handle.pid, PtySize(rows=33, cols=99))

        def heard(data, seen=bytearray()):
            output.extend(data)
            seen.extend(data)
            if steps and steps[0][0] in seen:
                seen.clear()
                self.box.pty.send_stdin(handle.pid, steps.pop(0)[1])

        with self.assertRaises(CommandExitException) as caught:
            handle.wait(on_pty=heard)
        self.assertEqual(caught.exception.exit_code, 5, output)
        self.assertIn(b"33 99\r\nI am root\r\n", output)

    def test_terminal(self):
        output = bytearray()
        handle = self.box.pty.create(PtySize(rows=24, cols=80), timeout=60, envs={"OWN": "mine"})
        self.box.pty.resize(handle.pid, PtySize(rows=33, cols=99))
        self.box.pty.send_stdin(handle.pid, b"stty size; echo $OWN; exit 5\n")
        with self.assertRaises(CommandExitException) as caught:
            handle.wait(on_pty=output.extend)
        self.assertEqual(caught.exception.exit_code, 5)
        self.assertIn(b"33 99\r\nmine", output)
        other = self.box.pty.create(PtySize(rows=24, cols=80), timeout=60)
        self.assertTrue(self.box.pty.kill(other.pid))


class Files(Shared):
    def test_text_bytes_streams_several(self):
        files = self.box.files
        files.write("deep/er/a.txt", "héllo")
        self.assertEqual(files.read("/home/user/deep/er/a.txt"), "héllo")
        files.write_files([{"path": "several/1", "data": "one"}, {"path": "several/2", "data": b"\0two"}])
        self.assertEqual(bytes(files.read("several/2", format="bytes")), b"\0two")
        self.assertEqual([each.name for each in files.list("several")], ["1", "2"])
        self.assertEqual(b"".join(files.read("several/1", format="stream")), b"one")

    def test_a_large_one(self):
        blob = os.urandom(MIB) * 100
        self.box.files.write("/home/user/large", blob)
        self.assertEqual(self.box.files.get_info("/home/user/large").size, len(blob))
        self.assertTrue(self.box.files.read("/home/user/large", format="bytes") == blob)
        self.box.files.remove("/home/user/large")

    def test_folders_and_what_is_not_there(self):
        files = self.box.files
        self.assertTrue(files.make_dir("folder/in"))
        self.assertFalse(files.make_dir("folder/in"))
        self.assertEqual(files.rename("folder/in", "folder/out").path, "/home/user/folder/out")
        self.assertTrue(files.exists("folder/out"))
        self.assertEqual(files.get_info("folder/out").owner, "user")
        files.remove("folder")
        self.assertFalse(files.exists("folder"))
        with self.assertRaises(NotFoundException):
            files.read("folder/out")

    def test_watching(self):
        self.box.files.make_dir("watched/sub")
        handle = self.box.files.watch_dir("watched", recursive=True)
        self.box.files.write("watched/sub/w", "x")
        self.assertEqual([(e.name, e.type.value) for e in handle.get_new_events()],
                         [("sub/w", "create"), ("sub/w", "chmod"), ("sub/w", "write")])
        handle.stop()

    def test_links_that_are_signed(self):
        self.box.files.write("signed file", "content")
        self.assertEqual(fetch(self.box.download_url("signed file")), (200, b"content"))
        self.assertEqual(fetch(self.box.download_url("signed file", use_signature_expiration=60)), (200, b"content"))
        # Only the signature says whose link it is: one that nobody made is refused without a sandbox.
        for wrong in (("signature=v1_", "signature=v1_A"), ("signed+file", "other"), ("signed%20file", "other")):
            link = self.box.download_url("signed file").replace(*wrong)
            if link != self.box.download_url("signed file"):
                self.assertEqual(fetch(link)[0], 401)
                via = {"E2b-Sandbox-Id": self.box.sandbox_id, "E2b-Sandbox-Port": "49983"}
                self.assertEqual(fetch(link, headers=via)[0], 401)
        short = self.box.download_url("signed file", use_signature_expiration=1)
        time.sleep(2.1)
        self.assertEqual(fetch(short)[0], 401)
        form = b"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"up\"\r\n\r\nuploaded\r\n--x--\r\n"
        status, _ = fetch(self.box.upload_url("up"), form, {"Content-Type": "multipart/form-data; boundary=x"})
        self.assertEqual((status, self.box.files.read("up")), (200, "uploaded"))

    def test_git(self):
        git = self.box.git
        git.init("repo", initial_branch="main")
        git.configure_user("A", "a@example.com", scope="local", path="repo")
        self.box.files.write("repo/f", "x")
        self.assertTrue(git.status("repo").has_untracked)
        git.add("repo")
        git.commit("repo", "first")
        git.create_branch("repo", "side")
        self.assertEqual(sorted(git.branches("repo").branches), ["main", "side"])
        self.assertTrue(git.status("repo").is_clean)


class Control(Case):
    def test_information_and_timeout(self):
        box = self.create(metadata={"run": RUN, "kind": "info"}, timeout=60)
        info = box.get_info()
        self.assertEqual((info.sandbox_id, info.state, info.metadata), (box.sandbox_id, SandboxState.RUNNING, {"run": RUN, "kind": "info"}))
        self.assertEqual(info.name, "base")
        self.assertAlmostEqual((info.end_at - info.started_at).total_seconds(), 60, delta=3)
        box.set_timeout(600)
        self.assertGreater((box.get_info().end_at - info.end_at).total_seconds(), 500)
        Sandbox.connect(box.sandbox_id, timeout=30)  # only ever extends
        self.assertGreater((box.get_info().end_at - info.end_at).total_seconds(), 500)
        self.assertTrue(box.is_running())
        self.assertTrue(box.kill())
        self.assertFalse(box.is_running())
        self.assertFalse(box.kill())
        with self.assertRaises(NotFoundException):
            box.get_info()
        with self.assertRaises(NotFoundException):
            Sandbox.connect(box.sandbox_id)

    def test_its_time_ends(self):
        box = self.create(timeout=60)
        handle = box.commands.run("sleep 60", background=True)
        box.set_timeout(1)
        with self.assertRaises(TimeoutException):
            handle.wait()
        eventually(lambda: not box.is_running())

    def test_list_pages_and_filters(self):
        odd = {"run": RUN, "list": "a=b&c d/é%"}
        begin = datetime.datetime.now(datetime.timezone.utc)
        boxes = [self.create(metadata={**odd, "n": str(n)}).sandbox_id for n in range(3)]
        found = all_of(Sandbox.list(query=SandboxQuery(metadata=odd), limit=2))
        self.assertEqual([each.sandbox_id for each in found], boxes[::-1])
        self.assertEqual([e.sandbox_id for e in all_of(Sandbox.list(query=SandboxQuery(metadata={**odd, "n": "1"})))], [boxes[1]])
        Sandbox.pause(boxes[0])
        paused = all_of(Sandbox.list(query=SandboxQuery(metadata=odd, state=[SandboxState.PAUSED])))
        self.assertEqual([each.sandbox_id for each in paused], boxes[:1])
        running = all_of(Sandbox.list(query=SandboxQuery(metadata=odd, state=[SandboxState.RUNNING])))
        self.assertEqual([each.sandbox_id for each in running], boxes[:0:-1])
        if NEW:
            found = all_of(Sandbox.list(query=SandboxQuery(metadata=odd, started_after=begin, template="base"), order="asc", limit=1))
            self.assertEqual([each.sandbox_id for each in found], boxes)

    @unittest.skipUnless("idempotency_key" in inspect.signature(Sandbox.create).parameters, "needs a newer SDK")
    def test_a_create_that_is_repeated(self):
        key = f"key-{RUN}"
        box = self.create(idempotency_key=key)
        self.assertEqual(self.create(idempotency_key=key).sandbox_id, box.sandbox_id)
        with self.assertRaises(SandboxException):
            self.create(idempotency_key=key, metadata={"another": "request"})

    def test_its_network_is_shown_as_it_was_given(self):
        box = self.create(network={"allow_out": ["1.1.1.1", "8.8.8.0/24"], "deny_out": [ALL_TRAFFIC]})
        network = box.get_info().network
        self.assertEqual((network["allow_out"], network["deny_out"]), (["1.1.1.1", "8.8.8.0/24"], [ALL_TRAFFIC]))

    def test_a_sandbox_without_a_token(self):
        box = self.create(secure=False)
        self.assertEqual(box.commands.run("echo hi").stdout, "hi\n")
        if not NEW:  # newer clients have no such sandboxes
            box.files.write("f", "open")
            self.assertNotIn("signature", box.download_url("f"))

    def test_what_is_refused(self):
        with self.assertRaises(AuthenticationException):
            Sandbox.create(api_key="e2b_" + "0" * 40)
        with self.assertRaises(SandboxException) as caught:
            Sandbox.create("no-such-template")
        self.assertIn("404", str(caught.exception))
        self.assertIn("no-such-template", str(caught.exception))
        with self.assertRaises(SandboxException):
            Sandbox.create(timeout=10_000_000)
        for call in (Sandbox.get_info, Sandbox.connect, Sandbox.pause):
            with self.assertRaises(NotFoundException):
                call("i" + "0" * 20)
        self.assertFalse(Sandbox.kill("i" + "0" * 20))

    def test_a_team_that_has_enough(self):
        few = {"api_key": os.environ["FEW_KEY"]}
        box = Sandbox.create(timeout=60, **few)
        with self.assertRaises(RateLimitException):
            Sandbox.create(timeout=60, **few)
        with self.assertRaises(NotFoundException):
            Sandbox.get_info(box.sandbox_id)  # of another team
        self.assertFalse(Sandbox.kill(box.sandbox_id))
        self.assertEqual(all_of(Sandbox.list(query=SandboxQuery(metadata={"run": RUN}), **few)), [])
        self.assertTrue(box.kill())

    def test_killed_while_a_command_runs(self):
        box = self.create()
        handle = box.commands.run("sleep 60", background=True)
        threading.Timer(0.3, box.kill).start()
        with self.assertRaises(TimeoutException):
            handle.wait()

    def test_metrics(self):
        box = self.create()
        metric = eventually(lambda: box.get_metrics(), 30)[0]
        self.assertGreater(metric.mem_total, 0)
        self.assertGreaterEqual(metric.mem_total, metric.mem_used)
        self.assertGreater(metric.cpu_count, 0)
        long_ago = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
        self.assertEqual(box.get_metrics(start=long_ago, end=long_ago + datetime.timedelta(days=1)), [])

    def test_a_server_inside(self):
        box = self.create()
        box.commands.run("mkdir www && echo page > www/index.html && cd www && exec python3 -m http.server 8000", background=True)
        via = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "8000"}
        eventually(lambda: fetch(os.environ["E2B_SANDBOX_URL"] + "/", headers=via) == (200, b"page\n"))
        status, body = fetch(os.environ["E2B_SANDBOX_URL"] + "/", headers={**via, "E2b-Sandbox-Port": "8001"})
        self.assertEqual(status, 502)
        self.assertIn(b"port is not open", body)


class Pausing(Case):
    def test_memory_is_kept(self):
        box = self.create(envs={"GLOBAL": "yes"})
        handle = box.commands.run("x=1; while ! test -e go; do sleep 0.05; done; echo still $x", background=True)
        pid = handle.pid
        self.assertIsNot(box.pause(), False)
        self.assertFalse(box.is_running())
        self.assertEqual(box.get_info().state, SandboxState.PAUSED)
        again = Sandbox.connect(box.sandbox_id, timeout=60)
        self.assertEqual(again.get_info().state, SandboxState.RUNNING)
        attached = again.commands.connect(pid)
        again.files.write("go", "")
        self.assertEqual(attached.wait().stdout, "still 1\n")
        self.assertEqual(again.commands.run("echo $GLOBAL").stdout, "yes\n")

    def test_files_alone(self):
        box = self.create(envs={"GLOBAL": "yes"})
        box.files.write("kept", "kept")
        pid = box.commands.run("sleep 600", background=True).pid
        box.pause(keep_memory=False)
        self.assertEqual(box.get_info().state, SandboxState.PAUSED)
        box.connect(timeout=60)
        self.assertEqual(box.files.read("kept"), "kept")
        self.assertEqual(box.commands.run("echo $GLOBAL").stdout, "yes\n")
        self.assertNotIn(pid, [each.pid for each in box.commands.list()])

    def test_at_its_end_and_awake_on_traffic(self):
        box = self.create(timeout=120, lifecycle={"on_timeout": "pause", "auto_resume": True})
        box.commands.run("sleep 600", background=True)
        box.set_timeout(1)
        eventually(lambda: box.get_info().state == SandboxState.PAUSED)
        self.assertEqual(box.commands.run("pgrep -c sleep").stdout, "1\n")
        self.assertEqual(box.get_info().state, SandboxState.RUNNING)

    def test_at_its_end_and_not_awake(self):
        box = self.create(timeout=120, lifecycle={"on_timeout": "pause"})
        box.set_timeout(1)
        eventually(lambda: box.get_info().state == SandboxState.PAUSED)
        self.assertFalse(box.is_running())
        with self.assertRaises(TimeoutException):
            box.commands.run("true")


    @unittest.skipUnless(NEW, "the SDK of before has no on_resume")
    def test_resumed_as_it_was_or_anew(self):
        box = self.create()
        box.files.write("kept", "kept")
        box.commands.run("sleep 600", background=True)
        count = lambda: box.commands.run("pgrep -c sleep || true").stdout
        box.pause()
        box.connect(on_resume="restore")
        self.assertEqual(count(), "1\n")
        box.pause()
        box.connect(on_resume="reboot")
        self.assertEqual((count(), box.files.read("kept")), ("0\n", "kept"))


class Copies(Case):
    def test_snapshots_are_templates(self):
        box = self.create()
        box.files.write("kept", "kept")
        snapshot = box.create_snapshot()
        self.addCleanup(Sandbox.delete_snapshot, snapshot.snapshot_id)
        self.assertIn(snapshot.snapshot_id, [each.snapshot_id for each in all_of(box.list_snapshots())])
        copy = self.create(snapshot.snapshot_id)
        self.assertEqual(copy.files.read("kept"), "kept")
        self.assertTrue(Sandbox.delete_snapshot(snapshot.snapshot_id))
        self.assertFalse(Sandbox.delete_snapshot(snapshot.snapshot_id))
        self.assertEqual(box.files.read("kept"), "kept")

    @unittest.skipUnless(NEW, "snapshots of the SDK of before have no names")
    def test_snapshots_have_names_that_move(self):
        box = self.create()
        name = f"named-{RUN}"
        ids = []
        for text in ("first", "second"):
            box.files.write("kept", text)
            snapshot = box.create_snapshot(name=name)
            self.addCleanup(Sandbox.delete_snapshot, snapshot.snapshot_id)
            self.assertEqual(snapshot.names, [f"default/{name}:default"])
            self.assertEqual(self.create(name).files.read("kept"), text)
            ids.append(snapshot.snapshot_id)
        tagged = box.create_snapshot(name=f"{name}:v2")
        self.addCleanup(Sandbox.delete_snapshot, tagged.snapshot_id)
        self.assertEqual(tagged.names, [f"default/{name}:v2"])
        self.assertEqual(self.create(f"{name}:v2").files.read("kept"), "second")
        named = [each.names for each in all_of(box.list_snapshots(name=name))]
        self.assertCountEqual(named, [[f"default/{name}:default"], [f"default/{name}:v2"]])
        self.assertEqual(len(all_of(box.list_snapshots())), 3)  # the first is there, without its name

    def test_forks_go_their_own_way(self):
        box = self.create()
        box.files.write("kept", "kept")
        forks = box.fork(count=2, timeout=60)
        self.assertEqual(len(forks), 2)
        for fork in forks:
            self.addCleanup(fork.kill)
            self.assertEqual(fork.files.read("kept"), "kept")
            fork.files.write("kept", fork.sandbox_id)
        self.assertEqual(len({box.sandbox_id, *(fork.sandbox_id for fork in forks)}), 3)
        self.assertEqual([fork.files.read("kept") for fork in forks], [fork.sandbox_id for fork in forks])
        self.assertEqual(box.files.read("kept"), "kept")


class Network(Case):
    def outside(self, box):
        """How a connection to somewhere else ends. No packet has to come back for a refusal."""
        return box.commands.run("timeout 5 bash -c 'exec 3<>/dev/tcp/192.0.2.1/9' 2>&1; echo $?").stdout

    def test_no_way_out(self):
        box = self.create(allow_internet_access=False)
        self.assertIs(box.get_info().allow_internet_access, False)
        self.assertNotIn("124", self.outside(box))  # refused at once, not swallowed
        box.commands.run("python3 -m http.server 8000 --bind 127.0.0.1", background=True)
        loop = "for i in $(seq 300); do curl -s -o /dev/null http://127.0.0.1:8000 && echo ok && break; sleep 0.1; done"
        self.assertEqual(box.commands.run(loop).stdout, "ok\n")

    @unittest.skipUnless(NEW, "the SDK of before changes no network")
    def test_changed_while_it_runs(self):
        box = self.create()
        refused = lambda: "124" not in self.outside(box)
        before = refused()
        box.update_network({"deny_out": ["192.0.2.0/24"]})
        self.assertTrue(refused())
        self.assertEqual(box.get_info().network.get("deny_out"), ["192.0.2.0/24"])
        box.update_network({})  # what is left out is cleared
        self.assertEqual(refused(), before)
        self.assertFalse((box.get_info().network or {}).get("deny_out"))

    def test_the_traffic_token(self):
        box = self.create(network={"allow_public_traffic": False})
        box.commands.run("python3 -m http.server 8000", background=True)
        via = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "8000"}
        url = os.environ["E2B_SANDBOX_URL"] + "/"
        self.assertEqual(fetch(url, headers=via)[0], 403)
        eventually(lambda: fetch(url, headers={**via, "e2b-traffic-access-token": box.traffic_access_token})[0] == 200)


if __name__ == "__main__":
    unittest.main()
