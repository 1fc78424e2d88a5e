#!/usr/bin/env python3
"""clang-tidy over every source file but tests, on all cores: check_tidy.py BUILD_FOLDER [FILE...]

Most of its time goes into headers, so the files of a room are included into one and looked at together. Files that
cannot live together (two helpers of the same name, each in its file's unnamed namespace) are looked at apart.
A file that passed is not looked at again until it, a header of ours, or the list of checks changes.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

MOST_TOGETHER = 20  # so that a large room keeps more than one core busy

build = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path.cwd()
passed = build / "tidy"
passed.mkdir(exist_ok=True)
rooms = ("src", "cmd", "bench")


def arguments_of(entry):
    """The compiler's arguments that matter here: no output, no input, no precompiled header."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if "clang" in word) + 1:]
    kept, skip = [], 0
    for i, word in enumerate(words):
        if skip:
            skip -= 1
        elif word == "-o":
            skip = 1
        elif word == "-Xclang" and words[i + 1] in ("-include-pch", "-include"):
            skip = 3
        elif word not in ("-c", "-Winvalid-pch", "-fpch-instantiate-templates", entry["file"]):
            kept.append(word)
    return tuple(kept)


def wanted_entries():
    named = {str(root / name) for name in sys.argv[2:]}
    for entry in json.loads((build / "compile_commands.json").read_text()):
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
    """Files of one folder that are compiled alike, the largest groups first."""
    alike = {}
    for entry in entries:
        alike.setdefault((os.path.dirname(entry["file"]), arguments_of(entry)), set()).add(entry["file"])
    groups = []
    for (_, arguments), files in alike.items():
        parts = -(-len(files) // MOST_TOGETHER)
        groups += [(sorted(files)[i::parts], arguments) for i in range(parts)]
    return sorted(groups, key=lambda group: -len(group[0]))


def tidy(files, arguments):
    together = files[0]
    if len(files) > 1:
        name = hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]
        together = passed / f"together_{name}.cc"
        together.write_text("".join(f'#include "{file}"\n' for file in files))
    command = ["clang-tidy-19", "--quiet", "--config-file=.clang-tidy", str(together), "--", *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stdout + result.stderr if result.returncode else ""


def check(files, arguments):
    """The complaints about these files, one text for each group that it took."""
    complaint = tidy(files, arguments)
    if not complaint:
        for file in files:
            stamps[file].touch()
        return []
    if len(files) == 1 or "clang-diagnostic-" not in complaint:
        return [complaint]
    # What the compiler itself says may be only about their being together.
    strangers = set(re.findall(r"^(.+?):\d+:\d+: .*\[clang-diagnostic-", complaint, re.MULTILINE)) & set(files)
    if not strangers or len(strangers) == len(files):
        strangers = set(files[len(files) // 2:])
    return check(sorted(set(files) - strangers), arguments) + check(sorted(strangers), arguments)


entries = list(wanted_entries())
stamps = stamps_of(entries)
groups = groups_of(entry for entry in entries if not stamps[entry["file"]].exists())
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    complaints = sum(pool.map(lambda group: check(*group), groups), [])
print("\n".join(complaints) or f"{len(stamps)} files")
sys.exit(bool(complaints))
