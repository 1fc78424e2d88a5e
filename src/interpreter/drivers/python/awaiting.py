"""Cells that await at the top level, or ask for a loop that runs: one event loop for all of them, which goes on while
the kernel waits for the next cell."""
import asyncio
import re

core = core  # given by the driver
loops = []

# What needs a running loop though nobody awaits it. Cells that run a loop themselves must not be in one.
NEEDS_LOOP = re.compile(
    r"\b(create_task|ensure_future|get_running_loop|get_event_loop|current_task|all_tasks|gather|shield|"
    r"run_in_executor|call_later|call_soon|ClientSession)\b")
RUNS_LOOP = re.compile(
    r"\b(asyncio|anyio|trio|uvloop)\s*\.\s*(run|Runner)\b|\brun_(until_complete|forever)\b|(?<![\w.])run\(")


# What cells have declared that needs a loop: who names it needs one too.
names = set()
WORD = re.compile(r"[A-Za-z_]\w*")


def needs_loop(code):
    if RUNS_LOOP.search(code):
        return False
    return bool(NEEDS_LOOP.search(code)) or bool(names) and not names.isdisjoint(WORD.findall(code))


def note_names(tree, text):
    lines = text.splitlines()
    for each in tree.body:
        if type(each).__name__ in ("FunctionDef", "ClassDef"):
            is_one = needs_loop("\n".join(lines[each.lineno:each.end_lineno]) or lines[each.lineno - 1])
            (names.add if is_one else names.discard)(each.name)


def open_loop():
    """The loop of the cells before, unless one of them closed it."""
    if not loops or loops[-1].is_closed():
        loops[:] = [asyncio.new_event_loop()]
    return loops[-1]


def await_all(body, last):
    loop = open_loop()
    asyncio.set_event_loop(loop)

    async def run_both():
        try:
            for code in (body, last):
                value = eval(code, core.namespace) if code else None
                if code and code.co_flags & core.part("compiling").COROUTINE:
                    value = await value
            return value if last else None, None
        except Exception as error:  # raised below: the loop's own lines are nobody's business
            return None, error

    task = loop.create_task(run_both())
    try:
        value, error = loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except BaseException:
                pass
        raise
    if error is not None:
        raise error
    return value


def idle():
    """What cells left to the loop goes on until the guest says something."""
    if not loops:
        return
    loop = open_loop()
    control = core.control.fileno()
    try:
        loop.add_reader(control, loop.stop)
        loop.run_forever()
    except BaseException:
        pass  # a task that wants to exit: it has ended, and the kernel goes on
    finally:
        if not loop.is_closed():
            loop.remove_reader(control)
