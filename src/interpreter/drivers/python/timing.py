"""How long code takes: %time, %timeit and %prun."""
import sys

core = core  # given by the driver

ENOUGH = 0.2  # seconds that one run ought to take


def duration(seconds):
    import math
    if seconds >= 60:
        whole = int(seconds)
        parts = ((whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
        return " ".join("%d%s" % part for part in parts if part[0])
    step = 3 if seconds <= 0 else min(3, max(0, -int(math.floor(math.log10(seconds)) // 3)))
    return "%.3g %s" % (seconds * 1000 ** step, ("s", "ms", "\u03bcs", "ns")[step])


def timed(run_it):
    import os
    import time
    wall, before = time.perf_counter(), os.times()
    own = time.process_time()
    try:
        return run_it()
    finally:
        wall = time.perf_counter() - wall
        total, system = time.process_time() - own, os.times().system - before.system
        sys.stdout.flush()
        print("CPU times: user %s, sys: %s, total: %s\nWall time: %s" % (
            duration(max(0, total - system)), duration(system), duration(total), duration(wall)))


class TimeitResult:
    def __init__(self, loops, repeat, all_runs):
        self.loops, self.repeat, self.all_runs = loops, repeat, all_runs
        self.timings = [took / loops for took in all_runs]
        self.best, self.worst = min(self.timings), max(self.timings)
        self.average = sum(self.timings) / len(self.timings)
        self.stdev = (sum((took - self.average) ** 2 for took in self.timings) / len(self.timings)) ** 0.5

    def __str__(self):
        runs = len(self.timings)
        return "%s \u00b1 %s per loop (mean \u00b1 std. dev. of %d run%s, %s loop%s each)" % (
            duration(self.average), duration(self.stdev), runs, "" if runs == 1 else "s",
            format(self.loops, ","), "" if self.loops == 1 else "s")

    def _repr_pretty_(self, printer, cycle):
        printer.text("<TimeitResult : %s>" % self)


def options_of(line):
    """Flags of one letter, with a number for n and r, and what comes after them."""
    flags = {}
    rest = line.strip()
    while rest.startswith("-") and len(rest) > 1 and rest[1].isalpha():
        word, _, rest = rest.partition(" ")
        rest = rest.lstrip()
        value = word[2:]
        if word[1] in "nrp" and not value:
            value, _, rest = rest.partition(" ")
            rest = rest.lstrip()
        flags[word[1]] = value
    return flags, rest


def timeit(line, cell=None):
    import timeit as timing
    flags, code = options_of(line)
    setup = "pass"
    if cell is not None:
        code, setup = core.part("transform").transform(cell), code or "pass"
    timer = timing.Timer(code or "pass", setup, globals=core.namespace)
    loops = int(flags.get("n") or 0)
    if not loops:
        loops = 1
        while timer.timeit(loops) < ENOUGH and loops < 10 ** 9:
            loops *= 10
    result = TimeitResult(loops, 0, timer.repeat(int(flags.get("r") or 7), loops))
    if "q" not in flags:
        print(result)
    return result if "o" in flags else None


def prun(line, cell=None):
    import cProfile
    import pstats
    _, code = options_of(line)
    profile = cProfile.Profile()
    try:
        profile.runcall(core.part("magics").run_python, code if cell is None else code + "\n" + cell)
    finally:
        pstats.Stats(profile, stream=sys.stdout).strip_dirs().sort_stats("time").print_stats(30)
