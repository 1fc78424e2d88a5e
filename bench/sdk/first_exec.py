"""Sandbox.create of E2B's Python SDK until the first byte of a command's output. Each line of input says how many at once,
and is answered with as many microseconds; 0 ends the sandboxes that were made."""
import asyncio
import os
import sys
import time

from e2b import AsyncSandbox

made = []


async def first_output():
    begin = time.perf_counter()
    box = await AsyncSandbox.create(os.environ["BENCH_TEMPLATE"], timeout=300)
    made.append(box)
    moments = []
    await box.commands.run("true", on_stdout=lambda text: moments.append(time.perf_counter()))
    return (moments[0] - begin) * 1e6


async def main():
    for line in sys.stdin:
        count = int(line)
        if count == 0:
            await asyncio.gather(*(box.kill() for box in made))
            made.clear()
            print(0, flush=True)
        else:
            print(*await asyncio.gather(*(first_output() for _ in range(count))), flush=True)


asyncio.run(main())
