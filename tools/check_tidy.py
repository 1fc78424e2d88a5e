#!/usr/bin/env python3
"""clang-tidy over every source file but tests, on all cores: check_tidy.py BUILD_FOLDER [FILE...]

Most of its time goes into headers, so many files are included into one and looked at together. Two that give the same
name to a thing of their own cannot be, so they are kept apart. Where that was not foreseen the compiler complains,
and those that it complains about are looked at once more, among fewer.
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

# How many files together, in each round. A group's memory stays below two gigabytes; alone, every file compiles.
ROUNDS = (80, 8, 1)

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


def stamps_of(files):
    """Where it is written down, for each file, that it passed."""
    common = hashlib.sha256(pathlib.Path(".clang-tidy").read_bytes())
    for header in sorted(h for room in rooms for h in pathlib.Path(room).rglob("*.h")):
        common.update(header.read_bytes())
    stamps = {}
    for file in files:
        digest = common.copy()
        digest.update(pathlib.Path(file).read_bytes())
        stamps[file] = passed / digest.hexdigest()
    return stamps


def arguments_for(entries):
    """What decides how any of them is read. They are for different programs, but agree about this."""
    words = {word: None for entry in entries for word in compile_commands.arguments_of(entry)}
    return [word for word in words if word.startswith(("-I", "-D", "-isystem", "-std="))]


# What a line at the left margin declares: a type or an alias, else the last word before its parameters or its value.
DECLARED = re.compile(r"(?:struct|class|enum|enum class|using) (\w+)(?: [={:]|;)|\w[^({=;\[]*?(\w+)(?:[({;\[]| =|$)")
DECLARES_NOTHING = ("template", "static_assert", "using", "namespace")


def own_names(file):
    """What this file calls its own, as far as lines show it: (namespace, name)."""
    names, namespace, unnamed = set(), "", False
    for line in pathlib.Path(file).read_text().splitlines():
        if opened := re.match(r"namespace ([\w:]+) \{", line):
            namespace = opened[1]
        elif line in ("namespace {", "}  // namespace"):
            unnamed = line.endswith("{")
        elif unnamed or line.startswith(("constexpr ", "const ", "static ", "int main(")):
            if found := DECLARED.match(re.sub(r"\[\[\w+\]\] |<[^()]*>", "", line)):
                names.add((namespace, found[1] or found[2]))
    return {(namespace, name) for namespace, name in names if name not in DECLARES_NOTHING}


def groups_of(files, most):
    """Neighbours together, namesakes apart."""
    count = min(len(files), max(-(-len(files) // most), os.cpu_count()))
    groups, taken = [[] for _ in range(count)], [set() for _ in range(count)]
    for i, file in enumerate(files):
        names, home = own_names(file), i * count // len(files)
        best = min(range(count), key=lambda group: (len(taken[group] & names), group != home, len(groups[group])))
        groups[best].append(file)
        taken[best] |= names
    return [group for group in groups if group]


def blocks_of(said):
    """Each complaint with its notes."""
    return re.split(r"^(?=\S+:\d+:\d+: (?:warning|error): )", said, flags=re.MULTILINE)[1:]


def strangers_among(files, blocks):
    """Those that the compiler does not want beside the others."""
    strangers = set()
    for block in blocks:
        if "[clang-diagnostic-error]" in block:
            named = re.findall(r"^(\S+?):\d+:\d+: ", block, re.MULTILINE)
            strangers |= {named[0]} & set(files) or set(named) & set(files) or set(files)
    return strangers if len(files) > 1 else set()


def tidy(files):
    """The files to look at again, and the complaints about the others."""
    joined = files[0]
    if len(files) > 1:
        joined = str(passed / f"together_{hashlib.sha256(' '.join(files).encode()).hexdigest()[:16]}.cc")
        pathlib.Path(joined).write_text("".join(f'#include "{file}"\n' for file in files))
    # The compiler's own warnings are the build's business, and some come only of their being together.
    result = subprocess.run(["clang-tidy-19", "--quiet", "--config-file=.clang-tidy", joined, "--", *arguments, "-w",
                             "-ferror-limit=0"], capture_output=True, text=True)
    blocks = blocks_of(result.stdout)
    strangers = strangers_among(files, blocks)
    complaints = [block for block in blocks if block.split(":", 1)[0] not in strangers
                  and (len(files) == 1 or "[clang-diagnostic-error]" not in block)]
    if result.returncode and not strangers and not complaints:
        complaints = [result.stdout + result.stderr]
    if not complaints:
        for file in set(files) - strangers:
            stamps[file].touch()
    return strangers, complaints


os.nice(10)
entries = list(wanted_entries())
arguments = arguments_for(entries)
stamps = stamps_of({entry["file"] for entry in entries})
waiting = sorted(file for file, stamp in stamps.items() if not stamp.exists())
complaints = []
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for most in ROUNDS:
        results = list(pool.map(tidy, groups_of(waiting, most)))
        waiting = sorted(file for strangers, _ in results for file in strangers)
        complaints += [complaint for _, said in results for complaint in said]
print("\n".join(complaints) or f"{len(stamps)} files")
sys.exit(bool(complaints))
