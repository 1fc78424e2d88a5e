"""What goes wrong around the API server, and what may not go wrong with it."""
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import kube
from hearth import HEARTH, wait_until
from kube import CONFIG_MAPS, ApiServer, config_map, revision_of

ROUNDS = 8
WRITERS = 8
IDLE_WATCHES = 2000
SECONDS_TO_END = 40  # of which two are for requests under way; the rest is for slow machines


class Base(unittest.TestCase):
    def setUp(self):
        if not pathlib.Path(HEARTH).exists():
            self.skipTest(f"needs {HEARTH}: build first")
        self.folder = tempfile.mkdtemp(prefix="hearth-faults-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def serve(self, **options):
        server = ApiServer(f"{self.folder}/state", **options)
        self.addCleanup(server.kill)
        return server.start()


class Writer(threading.Thread):
    """Creates and changes objects until the server is gone; remembers what was acknowledged."""

    def __init__(self, server, name):
        super().__init__()
        self.server = server
        self.name = name
        self.created = {}  # name -> newest acknowledged revision
        self.failures = []

    def run(self):
        try:
            client = self.server.client(timeout=10)
            count = 0
            while True:
                name = f"{self.name}-{count}"
                status, made = client.ask("POST", CONFIG_MAPS, config_map(name, "new"))
                if status != 201:
                    self.failures.append(made)
                    return
                self.created[name] = revision_of(made)
                status, changed = client.ask("PUT", f"{CONFIG_MAPS}/{name}", config_map(name, "changed"))
                if status != 200:
                    self.failures.append(changed)
                    return
                self.created[name] = revision_of(changed)
                count += 1
        except (OSError, EOFError, ValueError, kube.http.client.HTTPException):
            pass  # killed, as planned


class Watcher(threading.Thread):
    """Notes every event of ConfigMaps after a revision, until the server is gone."""

    def __init__(self, server, after):
        super().__init__()
        self.server = server
        self.after = after
        self.events = []  # (revision, type, name)
        self.failure = None

    def run(self):
        try:
            lines = self.server.client(timeout=60).watch(f"{CONFIG_MAPS}?watch=true&resourceVersion={self.after}")
            while line := lines.readline():
                if not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.failure = event
                    return
                self.events.append((revision_of(event["object"]), event["type"], event["object"]["metadata"]["name"]))
        except (OSError, EOFError, ValueError, kube.http.client.HTTPException):
            pass


class KillTest(Base):
    def test_what_was_acknowledged_survives_kill_9_and_watches_go_on(self):
        acknowledged = {}  # name -> newest acknowledged revision
        events = []
        highest = 0
        server = ApiServer(f"{self.folder}/state")
        self.addCleanup(server.kill)
        after = None
        for each in range(ROUNDS):
            server.start()
            status, listed = server.client().ask("GET", CONFIG_MAPS)
            self.assertEqual(status, 200)
            self.assertGreaterEqual(revision_of(listed), highest, "revisions went back")
            there = {item["metadata"]["name"]: revision_of(item) for item in listed["items"]}
            for name, revision in acknowledged.items():
                self.assertIn(name, there, f"round {each}: an acknowledged object is gone")
                self.assertGreaterEqual(there[name], revision, f"round {each}: {name} went back")
            after = events[-1][0] if events else after or revision_of(listed)
            watcher = Watcher(server, after)
            writers = [Writer(server, f"w{each}-{i}") for i in range(WRITERS)]
            for thread in (watcher, *writers):
                thread.start()
            wait_until(lambda: sum(len(writer.created) for writer in writers) > WRITERS, what="some writes")
            time.sleep(0.05 + 0.1 * (each % 4))
            server.kill()
            for thread in (watcher, *writers):
                thread.join(60)
                self.assertFalse(thread.is_alive())
            self.assertIsNone(watcher.failure)
            events += watcher.events
            for writer in writers:
                self.assertEqual(writer.failures, [])
                acknowledged.update(writer.created)
                highest = max([highest, *writer.created.values()])
        self.assertGreater(len(acknowledged), ROUNDS * WRITERS, "the writers hardly wrote")

        # Once more, to the end of history: no gap, nothing twice.
        server.start()
        status, listed = server.client().ask("GET", CONFIG_MAPS)
        watcher = Watcher(server, events[-1][0] if events else after)
        watcher.start()
        last = max((revision_of(item) for item in listed["items"]), default=0)
        wait_until(lambda: watcher.failure or (events + watcher.events or [(0,)])[-1][0] >= last, what="the last event")
        server.kill()
        watcher.join(20)
        self.assertIsNone(watcher.failure)
        events += watcher.events
        revisions = [revision for revision, _, _ in events]
        self.assertEqual(revisions, sorted(set(revisions)), "events came twice or out of order")
        seen = {name: revision for revision, _, name in events}
        for item in listed["items"]:
            name = item["metadata"]["name"]
            if name.startswith("w"):
                self.assertEqual(seen.get(name), revision_of(item), f"the watch missed a change of {name}")


class WatchTest(Base):
    def test_idle_watches_cost_little_and_hear_of_a_write(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < IDLE_WATCHES + 500:
            self.skipTest(f"needs {IDLE_WATCHES + 500} descriptors, may have {hard}")
        # The server begins with few, as from a shell, and must ask for more itself.
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            server = self.serve()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        path = self.watch_path(server)
        before = server.resident_kib()
        watches = []
        for _ in range(IDLE_WATCHES):
            client = server.client()
            self.addCleanup(client.close)
            watches.append(client.watch(path))
        each = (server.resident_kib() - before) / IDLE_WATCHES
        print(f"\n{IDLE_WATCHES} idle watches: {each:.1f} KiB each")
        self.assertLess(each, 128)

        begin, used = time.monotonic(), server.processor_seconds()
        time.sleep(2)
        share = (server.processor_seconds() - used) / (time.monotonic() - begin)
        print(f"{share:.1%} of a processor while nothing happens")
        self.assertLess(share, 0.05)

        server.client().ask("POST", CONFIG_MAPS, config_map("news"))
        for watch in watches:
            self.assertIn(b'"name":"news"', watch.readline())

        code, seconds = server.terminate(2 * SECONDS_TO_END)
        self.assertEqual(code, 0)
        self.assertLess(seconds, SECONDS_TO_END)

    def watch_path(self, server):
        """Of what happens from now on. A server that has just begun still makes a ConfigMap of its own."""
        client = server.client()
        wait_until(lambda: client.ask("GET", f"{CONFIG_MAPS}/kube-root-ca.crt")[0] == 200, 30, "the server's own ConfigMap")
        _, listed = client.ask("GET", CONFIG_MAPS)
        client.close()
        return f"{CONFIG_MAPS}?watch=true&resourceVersion={revision_of(listed)}"

    def test_a_watcher_that_stops_reading_does_not_slow_the_others(self):
        server = self.serve()
        path = self.watch_path(server)
        deaf = server.client()
        deaf.connection.connect()
        deaf.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.watch(path)  # and never reads a line
        watcher = Watcher(server, path.rsplit("=", 1)[1])
        watcher.start()
        writer = server.client()
        text = "x" * 100_000
        slowest = 0
        for i in range(200):  # 20 MB: more than sockets hold
            begin = time.monotonic()
            status, _ = writer.ask("POST", CONFIG_MAPS, config_map(f"large-{i}", text))
            self.assertEqual(status, 201)
            slowest = max(slowest, time.monotonic() - begin)
        wait_until(lambda: len(watcher.events) == 200, 60, "all events")
        self.assertLess(slowest, 25)
        deaf.close()
        server.kill()
        watcher.join(20)


class EndTest(Base):
    def test_sigterm_under_load_ends_within_seconds(self):
        server = self.serve()
        _, listed = server.client().ask("GET", CONFIG_MAPS)
        watcher = Watcher(server, revision_of(listed))
        writers = [Writer(server, f"w{i}") for i in range(WRITERS)]
        for thread in (watcher, *writers):
            thread.start()
        wait_until(lambda: all(len(writer.created) > 3 for writer in writers), what="some writes")

        code, seconds = server.terminate(2 * SECONDS_TO_END)

        self.assertEqual(code, 0)
        self.assertLess(seconds, SECONDS_TO_END)
        for thread in (watcher, *writers):
            thread.join(20)
        server = self.serve()
        _, listed = server.client().ask("GET", CONFIG_MAPS)
        there = {item["metadata"]["name"]: revision_of(item) for item in listed["items"]}
        for writer in writers:
            for name, revision in writer.created.items():
                self.assertGreaterEqual(there.get(name, 0), revision)


class FullDiskTest(Base):
    TEXT = "x" * 200_000

    def fill(self, server):
        """Writes until the disk is full: how much was kept, and the refusal."""
        client = server.client()
        for i in range(2000):
            status, answer = client.ask("POST", CONFIG_MAPS, config_map(f"full-{i}", self.TEXT))
            if status != 201:
                return i, status, answer
        self.fail("the disk was never full")

    def check_refusal(self, status, answer):
        self.assertEqual(answer["kind"], "Status")
        self.assertEqual(status, 500)
        self.assertIn("no space is left for objects", answer["message"])

    def test_a_file_that_may_not_grow_is_told_and_reads_go_on(self):
        server = self.serve(file_size_limit=20 << 20)
        kept, status, answer = self.fill(server)
        self.assertGreater(kept, 10)
        self.check_refusal(status, answer)
        client = server.client()
        status, listed = client.ask("GET", CONFIG_MAPS)
        self.assertEqual(status, 200)
        names = {item["metadata"]["name"] for item in listed["items"]}
        self.assertLessEqual({f"full-{i}" for i in range(kept)}, names)
        self.assertNotIn(f"full-{kept}", names)

        # The limit is lifted: the same server goes on.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        status, answer = client.ask("POST", CONFIG_MAPS, config_map(f"full-{kept}", self.TEXT))
        self.assertEqual(status, 201, answer)
        server.kill()
        status, _ = self.serve().client().ask("GET", f"{CONFIG_MAPS}/full-{kept}")
        self.assertEqual(status, 200)

    def test_a_full_disk_is_told_and_room_helps(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: a small disk is mounted")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=50m", "tmpfs", self.folder], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("needs a tmpfs of its own")
        self.addCleanup(subprocess.run, ["umount", "-l", self.folder])
        ballasts = [pathlib.Path(self.folder, name) for name in ("one", "another")]
        # The first is as large as all that is written: a checkpoint that is under way may take room before anybody else.
        for ballast, size in zip(ballasts, (20, 6)):
            ballast.write_bytes(bytes(size << 20))
        server = self.serve()
        kept, status, answer = self.fill(server)
        self.check_refusal(status, answer)

        ballasts[0].unlink()
        wait_until(lambda: server.client().ask("POST", CONFIG_MAPS, config_map(f"full-{kept}", self.TEXT))[0] in (201, 409), what="a write")
        server.kill()
        ballasts[1].unlink()  # a start writes a kubeconfig, and needs room for that
        server = self.serve()
        _, listed = server.client().ask("GET", CONFIG_MAPS)
        names = {item["metadata"]["name"] for item in listed["items"]}
        self.assertLessEqual({f"full-{i}" for i in range(kept + 1)}, names)
        server.kill()


if __name__ == "__main__":
    # What it mounts is its own: tests that look at the machine's mounts run beside it.
    if os.geteuid() == 0 and "HEARTH_OWN_MOUNTS" not in os.environ and shutil.which("unshare"):
        os.environ["HEARTH_OWN_MOUNTS"] = "yes"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    unittest.main(warnings="ignore")
