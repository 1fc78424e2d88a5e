#!/usr/bin/env python3
"""Every header compiles alone, and twice in one file: check_headers.py BUILD_FOLDER

Nearly all of a header's time goes into headers of others. Those that it includes anyway, itself or through others of
ours, may as well come precompiled: that forgives no missing #include. So headers that include the same dear ones
share a start that is precompiled, of exactly these.
A header that passed is not looked at again until it, a header that it includes, or the compiler's flags change.
It gives way to whatever else wants the processor: tests that look at the clock run beside it.
"""
import collections
import concurrent.futures
import functools
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import compile_commands

# A quarter of a second and more, each, wherever it is included. To be here saves time and decides nothing else.
DEAR = frozenset(("string", "functional", "mutex", "chrono", "memory", "thread", "filesystem", "fmt/format.h",
                  "boost/json/value.hpp", "boost/asio/awaitable.hpp", "gtest/gtest.h"))
WORTH_A_START = 3  # headers: to precompile for fewer takes longer than it saves

build = pathlib.Path(sys.argv[1]).resolve()
source = pathlib.Path.cwd() / "src"
passed = build / "headers"
passed.mkdir(exist_ok=True)


@functools.cache
def included(header):
    """What it includes, itself and through others: headers of ours, headers of others."""
    text = (source / header).read_text()
    ours, others = {header}, set(re.findall(r"^#include <(.+?)>", text, re.MULTILINE))
    for name in re.findall(r'^#include "(.+?)"', text, re.MULTILINE):
        more_of_ours, more_of_others = included(name)
        ours |= more_of_ours
        others |= more_of_others
    return ours, others


def stamp_of(header):
    """Where it is written down that it passed."""
    digest = hashlib.sha256("\n".join((header, *arguments)).encode())
    for each in sorted(included(header)[0]):
        digest.update((source / each).read_bytes())
    return passed / digest.hexdigest()


def dear_of(header):
    return DEAR & included(header)[1]


def compile_text(text, *more):
    command = ["clang++-19", *arguments, "-fsyntax-only", *more, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=build)


def precompile(dear):
    """The path of a start with these headers."""
    start = pathlib.Path(starts, hashlib.sha256(" ".join(sorted(dear)).encode()).hexdigest())
    text = "".join(f"#include <{name}>\n" for name in sorted(dear))
    command = ["clang++-19", *arguments, "-x", "c++-header", "-", "-o", str(start)]
    subprocess.run(command, input=text, text=True, check=True)
    return start


def complaint_about(header):
    """None if all is well."""
    fitting = [dear for dear in precompiled if dear <= dear_of(header)]
    start = ("-include-pch", str(precompiled[max(fitting, key=len)])) if fitting else ()
    result = compile_text(f'#include "{header}"\n' * 2, "-x", "c++", *start)
    if result.returncode == 0:
        stamp_of(header).touch()
        return None
    return f"{header} does not compile alone:\n{result.stderr}"


os.nice(10)
arguments = next(compile_commands.arguments_of(entry) for entry in compile_commands.entries(build)
                 if entry["file"].startswith(f"{source}/") and not entry["file"].endswith(("_test.cc", "_fuzz.cc")))
headers = sorted(str(path.relative_to(source)) for path in source.rglob("*.h"))
waiting = [header for header in headers if not stamp_of(header).exists()]
with tempfile.TemporaryDirectory() as starts, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    shared = collections.Counter(map(dear_of, waiting))
    worth = [dear for dear, count in shared.items() if dear and count >= WORTH_A_START]
    precompiled = dict(zip(worth, pool.map(precompile, worth)))
    complaints = [complaint for complaint in pool.map(complaint_about, waiting) if complaint]
print("\n".join(complaints) or f"{len(headers)} headers")
sys.exit(bool(complaints))
