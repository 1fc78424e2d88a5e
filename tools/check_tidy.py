#!/usr/bin/env python3
"""clang-tidy over every source file but tests, on all cores: check_tidy.py BUILD_FOLDER [FILE...]

Most of its time goes into headers, so files are included into one and looked at together. Files that cannot live
together (two helpers of the same name, each in its file's unnamed namespace) are looked at apart; the compiler, which
is much quicker, says which those are before clang-tidy begins.
A file that passed is not looked at again until it, a header of ours, or the list of checks changes.
It gives way to whatever else wants the processor: tests that look at the clock run beside it.
"""
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

import compile_commands

MOST_TOGETHER = 40  # a group's memory stays below two gigabytes, and no core waits long for the other's last group

build = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path.cwd()
passed = build / "tidy"
passed.mkdir(exist_ok=True)
rooms = ("src", "cmd", "bench")


def wanted_entries():
    named = {str(root / name) for name in sys.argv[2:]}
    for entry in compile_commands.entries(build):
        file = entry["file"]
        if not any(file.startswith(f"{root}/{room}/") for room in rooms) or not file.endswith(".cc"):
            continue
        if file in named or not (named or file.endswith(("_test.cc", "_fuzz.cc"))):
            yield entry


def stamps_of(entries):
    """Where it is written down, for each file, that it passed."""
    common = hashlib.sha256(pathlib.Path(".clang-tidy").read_bytes())
    for header in sorted(h for room in rooms for h in pathlib.Path(room).rglob("*.h")):
        common.update(header.read_bytes())
    stamps = {}
    for entry in entries:
        digest = common.copy()
        digest.update(pathlib.Path(entry["file"]).read_bytes())
        stamps[entry["file"]] = passed / digest.hexdigest()
    return stamps


def groups_of(entries):
    """Files that are compiled alike, neighbours together, the largest groups first."""
    alike = {}
    for entry in entries:
        alike.setdefault(compile_commands.arguments_of(entry), set()).add(entry["file"])
    groups = []
    for arguments, files in alike.items():
        files, parts = sorted(files), -(-len(files) // MOST_TOGETHER)
        groups += [(files[i * len(files) // parts:(i + 1) * len(files) // parts], arguments) for i in range(parts)]
    return sorted(groups, key=lambda group: -len(group[0]))


def joined(files):
    """One file that includes them all."""
    if len(files) == 1:
        return files[0]
    name = hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]
    together = passed / f"together_{name}.cc"
    together.write_text("".join(f'#include "{file}"\n' for file in files))
    return str(together)


def strangers_among(files, arguments):
    """Those that the compiler does not want beside the others. Its warnings are the build's business."""
    command = ["clang++-19", "-fsyntax-only", "-w", "-ferror-limit=0", *arguments, joined(files)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode == 0:
        return set()
    named = set(re.findall(r"^(.+?):\d+:\d+: (?:fatal )?error: ", result.stderr, re.MULTILINE)) & set(files)
    return named if named and len(named) < len(files) else set(files[len(files) // 2:])


def friends(files, arguments):
    """The same files in groups that can live together; a file alone is a group, whatever it is like."""
    found = []
    while files:
        together, strangers = files, []
        while len(together) > 1 and (named := strangers_among(together, arguments)):
            strangers += sorted(named)
            together = [file for file in together if file not in named]
        found.append(together)
        files = strangers
    return found


def tidy(files, arguments):
    # What is a mistake for the build (a warning about shadows, say) may come only of their being together.
    command = ["clang-tidy-19", "--quiet", "--config-file=.clang-tidy", joined(files), "--", *arguments, "-Wno-error"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        return [result.stdout + result.stderr]
    for file in files:
        stamps[file].touch()
    return []


def check(files, arguments):
    """The complaints about these files."""
    return sum((tidy(group, arguments) for group in friends(files, arguments)), [])


os.nice(10)
entries = list(wanted_entries())
stamps = stamps_of(entries)
groups = groups_of(entry for entry in entries if not stamps[entry["file"]].exists())
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    complaints = sum(pool.map(lambda group: check(*group), groups), [])
print("\n".join(complaints) or f"{len(stamps)} files")
sys.exit(bool(complaints))
