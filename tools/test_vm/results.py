"""Reads what the machine says on its second serial line while it says it, and keeps the score."""
import dataclasses
import re
import typing

# GoogleTest's own words. Parameterized tests add ", where ..." behind the name of one that failed.
TEST = re.compile(r"^\[ +(RUN|OK|FAILED|SKIPPED) +\] ([\w/]+\.[\w/]+)(?:,.*?)?(?: \((\d+) ms\))?$")
# Output of the tests themselves that is kept to be shown if one fails: a storm must not fill memory.
MOST_KEPT_LINES = 2000


@dataclasses.dataclass
class Score:
    passed: list[str] = dataclasses.field(default_factory=list)
    failed: list[str] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)
    finished: bool = False  # the machine came to its end by itself, with nothing left to do

    def is_success(self) -> bool:
        return self.finished and not self.failed and bool(self.passed)

    def text(self) -> str:
        lines = [f"skipped: {name}" for name in self.skipped] + [f"FAILED: {name}" for name in self.failed]
        if not self.finished:
            lines.append("FAILED: the machine did not come to its end")
        counts = f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"
        return "\n".join([*lines, f"test-vm: {'PASSED' if self.is_success() else 'FAILED'}: {counts}"])


class Reader:
    def __init__(self, secret: str, show: typing.Callable[[str], None]):
        self.score = Score()
        self._secret = secret
        self._show = show
        self._program = ""
        self._running = ""
        self._said: list[str] = []

    def take(self, line: str) -> None:
        if line.startswith(self._secret + " "):
            return self._take_order(line[len(self._secret) + 1:])
        # A test that leaves a line unfinished has the result of the next one written behind it.
        match = TEST.match(line) or TEST.match(line[line.rfind("[  "):])
        if match:
            return self._take_result(match[1], match[2], match[3])
        if len(self._said) < MOST_KEPT_LINES:
            self._said.append(line)

    def give_up(self, why: str) -> None:
        self._show_said()
        self.score.failed.append(f"{self._program}: {self._running or 'no test'} ({why})")

    def _take_order(self, order: str) -> None:
        word, _, rest = order.partition(" ")
        if word == "machine":
            self._show(f"test-vm: {rest}")
        elif word == "begin":
            self._program, self._running, self._said = rest, "", []
            self._show(f"== {rest}")
        elif word == "end":
            self._end_program(int(rest.rpartition(" ")[2]))
        elif word == "finished":
            self.score.finished = rest == "well"

    def _take_result(self, word: str, name: str, milliseconds: str | None) -> None:
        if word == "RUN":
            self._running, self._said = name, []
            return
        # Every program repeats the names of those that failed or were skipped at its end.
        if name != self._running:
            return
        full_name = f"{self._program}: {name}"
        {"OK": self.score.passed, "FAILED": self.score.failed, "SKIPPED": self.score.skipped}[word].append(full_name)
        if word != "OK":
            self._show_said()
        self._show(f"{word:>8} {name} ({milliseconds} ms)")
        self._running, self._said = "", []

    def _end_program(self, status: int) -> None:
        # GoogleTest's status is 1 if a test failed, which we know by then. All else is a crash.
        if self._running:
            self._show_said()
            self.score.failed.append(f"{self._program}: {self._running} (the program ended in it, status {status})")
        elif status != 0 and not any(name.startswith(self._program + ":") for name in self.score.failed):
            self._show_said()
            self.score.failed.append(f"{self._program}: status {status}")

    def _show_said(self) -> None:
        for line in self._said:
            self._show(f"    {line}")
