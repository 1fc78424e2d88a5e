"""E2B's asynchronous Python SDK: many at once. Run by engine_test.py."""
import asyncio
import unittest

from e2b import AsyncSandbox, CommandExitException, NotFoundException, PtySize, SandboxState, TimeoutException


class Async(unittest.IsolatedAsyncioTestCase):
    async def create(self, **options):
        box = await AsyncSandbox.create(**{"timeout": 120, **options})
        self.addAsyncCleanup(self.end, box)
        return box

    async def end(self, box):
        await box.kill()

    async def test_many_at_once(self):
        boxes = await asyncio.gather(*(self.create(envs={"N": str(n)}) for n in range(6)))
        self.assertEqual(len({box.sandbox_id for box in boxes}), 6)
        done = await asyncio.gather(*(box.commands.run("echo $N") for box in boxes for _ in range(5)))
        self.assertEqual([each.stdout for each in done], [f"{n}\n" for n in range(6) for _ in range(5)])

    async def test_commands(self):
        box = await self.create()
        pieces = []
        await box.commands.run("echo 1; sleep 0.2; echo 2", on_stdout=pieces.append)
        self.assertEqual("".join(pieces), "1\n2\n")
        with self.assertRaises(CommandExitException):
            await box.commands.run("exit 3")
        with self.assertRaises(TimeoutException):
            await box.commands.run("sleep 60", timeout=0.5)
        handle = await box.commands.run("cat; echo end", background=True, stdin=True)
        await box.commands.send_stdin(handle.pid, "hello\n")
        await box.commands.close_stdin(handle.pid)
        self.assertEqual((await handle.wait()).stdout, "hello\nend\n")

    async def test_terminal(self):
        box = await self.create()
        output = bytearray()
        handle = await box.pty.create(PtySize(rows=24, cols=80), on_data=output.extend)
        await box.pty.resize(handle.pid, PtySize(rows=33, cols=99))
        await box.pty.send_stdin(handle.pid, b"stty size; exit\n")
        await handle.wait()
        self.assertIn(b"33 99", output)

    async def test_files_and_watching(self):
        box = await self.create()
        events = []
        await box.files.make_dir("watched")
        handle = await box.files.watch_dir("watched", on_event=events.append, recursive=True)
        await box.files.write("watched/w", "x")
        async with asyncio.timeout(60):
            while len(events) < 3:
                await asyncio.sleep(0.02)
        await handle.stop()
        self.assertEqual([event.type.value for event in events], ["create", "chmod", "write"])
        self.assertEqual(await box.files.read("watched/w"), "x")
        with self.assertRaises(NotFoundException):
            await box.files.read("nothing")

    async def test_pause_and_connect(self):
        box = await self.create()
        handle = await box.commands.run("while ! test -e go; do sleep 0.05; done; echo still", background=True)
        await box.pause()
        self.assertEqual((await box.get_info()).state, SandboxState.PAUSED)
        again = await AsyncSandbox.connect(box.sandbox_id, timeout=60)
        attached = await again.commands.connect(handle.pid)
        await again.files.write("go", "")
        self.assertEqual((await attached.wait()).stdout, "still\n")

    async def test_input_as_a_stream(self):
        box = await self.create()
        handle = await box.commands.run("cat", background=True, stdin=True)
        async with box.commands.stream_input(handle.pid) as stream:
            await stream.send("1\n")
            await stream.send(b"2\n")
        await handle.close_stdin()
        self.assertEqual((await handle.wait()).stdout, "1\n2\n")

    async def test_a_caller_that_leaves(self):
        """The command goes on without him."""
        box = await self.create()
        caller = asyncio.create_task(box.commands.run("sleep 600"))
        async with asyncio.timeout(60):
            while not (running := await box.commands.list()):
                await asyncio.sleep(0.02)
        caller.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await caller
        self.assertEqual([each.pid for each in await box.commands.list()], [running[0].pid])
        self.assertTrue(await box.commands.kill(running[0].pid))

    async def test_paused_while_a_folder_is_watched(self):
        box = await self.create()
        ended = asyncio.Event()
        ends = []

        def heard_the_end(error):
            ends.append(error)
            ended.set()

        await box.files.watch_dir("/tmp", on_event=lambda event: None, on_exit=heard_the_end, timeout=0)
        await box.pause()
        async with asyncio.timeout(60):
            await ended.wait()
        self.assertIsInstance(ends[0], TimeoutException)

    async def test_killed_while_a_command_runs(self):
        box = await self.create()
        handle = await box.commands.run("sleep 60", background=True)
        await box.kill()
        with self.assertRaises(TimeoutException):
            await handle.wait()


if __name__ == "__main__":
    unittest.main()
