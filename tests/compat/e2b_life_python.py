"""Sandboxes of an engine as a user of the Python SDKs has them: their lives from create to kill. Run by e2b_test.py."""
import asyncio
import datetime
import os
import time
import unittest
import urllib.request

from e2b import AsyncSandbox, NotFoundException, Sandbox, SandboxQuery, SandboxState


def eventually(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def listed(**query):
    pages, found = Sandbox.list(**query), []
    while pages.has_next:
        found += pages.next_items()
    return found


class Life(unittest.TestCase):
    def create(self, **options):
        box = Sandbox.create(**options)
        self.addCleanup(lambda: Sandbox.kill(box.sandbox_id))
        return box

    def test_from_create_to_kill(self):
        box = self.create()
        self.assertRegex(box.sandbox_id, "^i[a-z0-9]{20}$")
        self.assertTrue(box.is_running())
        self.assertEqual(box.commands.run("echo hello").stdout, "hello\n")
        self.assertTrue(box.kill())
        self.assertFalse(box.is_running())
        self.assertFalse(Sandbox.kill(box.sandbox_id))

    def test_metadata_is_told_and_searched(self):
        box = self.create(metadata={"who": "ann & bob", "run": "42/a"})
        info = box.get_info()
        self.assertEqual(info.metadata, {"who": "ann & bob", "run": "42/a"})
        self.assertEqual(info.state, SandboxState.RUNNING)
        found = listed(query=SandboxQuery(metadata={"who": "ann & bob"}))
        self.assertEqual([entry.sandbox_id for entry in found], [box.sandbox_id])
        self.assertEqual(listed(query=SandboxQuery(metadata={"who": "carl"})), [])

    def test_paging(self):
        boxes = {self.create(metadata={"page": "yes"}).sandbox_id for _ in range(3)}
        pages = Sandbox.list(query=SandboxQuery(metadata={"page": "yes"}), limit=2)
        first = pages.next_items()
        self.assertEqual((len(first), pages.has_next), (2, True))
        second = pages.next_items()
        self.assertEqual((len(second), pages.has_next), (1, False))
        self.assertEqual({entry.sandbox_id for entry in first + second}, boxes)

    def test_environment(self):
        box = self.create(envs={"GREETING": "good morning"})
        self.assertEqual(box.commands.run("echo $GREETING").stdout, "good morning\n")
        self.assertEqual(box.commands.run("echo $GREETING", envs={"GREETING": "hi"}).stdout, "hi\n")
        self.assertEqual(box.commands.run("echo $E2B_SANDBOX").stdout, "true\n")

    def test_a_timeout_ends_it(self):
        box = self.create(timeout=300)
        before = box.get_info().end_at
        box.set_timeout(600)
        self.assertGreater(box.get_info().end_at - before, datetime.timedelta(seconds=200))
        box.set_timeout(1)
        eventually(lambda: not box.is_running())
        with self.assertRaises(NotFoundException):
            Sandbox.get_info(box.sandbox_id)

    def test_connecting_again(self):
        box = self.create()
        box.files.write("note", "kept")
        again = Sandbox.connect(box.sandbox_id)
        self.assertEqual(again.files.read("note"), "kept")
        with self.assertRaises(NotFoundException):
            Sandbox.connect("i" + "0" * 20)

    def test_pause_keeps_memory(self):
        box = self.create(envs={"A": "1"})
        counter = box.commands.run("i=0; while true; do echo $((i++)) > /tmp/count; sleep 0.05; done", background=True)
        eventually(lambda: box.files.exists("/tmp/count"))
        box.pause()
        self.assertEqual(Sandbox.get_info(box.sandbox_id).state, SandboxState.PAUSED)
        self.assertFalse(box.is_running())
        self.assertIn(box.sandbox_id, [entry.sandbox_id for entry in listed(query=SandboxQuery(state=[SandboxState.PAUSED]))])
        again = box.connect()
        self.assertTrue(again.is_running())
        self.assertIn(counter.pid, [process.pid for process in again.commands.list()])
        first = int(again.files.read("/tmp/count") or 0)
        eventually(lambda: int(again.files.read("/tmp/count") or 0) > first)
        self.assertEqual(again.commands.run("echo $A").stdout, "1\n")

    def test_signed_urls(self):
        box = self.create()
        box.files.write("/home/user/page", "from inside")
        with urllib.request.urlopen(box.download_url("/home/user/page")) as answer:
            self.assertEqual(answer.read(), b"from inside")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(box.download_url("/home/user/page").replace("signature=v1", "signature=v2"))
        self.assertIn(refused.exception.code, (401, 404, 502))

    def test_streams_end_when_it_is_killed(self):
        box = self.create()
        sleep = box.commands.run("sleep 1000", background=True)
        self.assertTrue(box.kill())
        with self.assertRaises(Exception):
            sleep.wait()

    def test_metrics(self):
        box = self.create()
        metrics = eventually(box.get_metrics, 40)
        self.assertGreater(metrics[-1].mem_total, 0)

    def test_snapshot_and_new_ones_from_it(self):
        if not hasattr(Sandbox, "create_snapshot"):
            self.skipTest("not in this SDK")
        box = self.create()
        box.files.write("note", "kept")
        snapshot = box.create_snapshot()
        box.files.write("note", "changed")
        other = self.create(template=snapshot.snapshot_id)
        self.assertEqual(other.files.read("note"), "kept")
        self.assertTrue(Sandbox.delete_snapshot(snapshot.snapshot_id))

    def test_a_wrong_key(self):
        with self.assertRaises(Exception) as refused:
            Sandbox.create(api_key="e2b_" + "0" * 40)
        self.assertIn("401", str(refused.exception))

    def test_an_unknown_template(self):
        with self.assertRaises(Exception) as refused:
            Sandbox.create("no-such-template")
        self.assertIn("not found", str(refused.exception))


class Async(unittest.TestCase):
    def test_many_at_once(self):
        async def one(number):
            box = await AsyncSandbox.create(metadata={"many": "yes"})
            try:
                return (await box.commands.run(f"echo $(({number} * 2))")).stdout.strip()
            finally:
                await box.kill()

        async def all_of_them():
            return await asyncio.gather(*(one(number) for number in range(20)))

        self.assertEqual(asyncio.run(all_of_them()), [str(number * 2) for number in range(20)])


if __name__ == "__main__":
    assert "E2B_API_URL" in os.environ and "E2B_DEBUG" not in os.environ
    unittest.main()
