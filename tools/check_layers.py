#!/usr/bin/env python3
"""Holds every #include to the DEPS line of its room, and the DEPS lines to a house without cycles.

    check_layers.py [SOURCE_FOLDER]

A room may include itself and the rooms its DEPS names; its tests and fuzzers also those of
TEST_DEPS. Nobody includes another room's x_internal.h. Beast stays in http/ and net/.
"""
import pathlib
import re
import sys

src = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src")
problems, deps, test_deps = [], {}, {}

for cmake in src.glob("*/CMakeLists.txt"):
    room = cmake.parent.name
    call = re.search(r"hearth_room\((\w+)([^)]*)\)", cmake.read_text())
    if not call or call[1] != room:
        problems.append(f"{cmake}: no hearth_room({room} ...)")
        continue
    lists, current = {"DEPS": set(), "TEST_DEPS": set(), "LIBS": set()}, None
    for word in call[2].split():
        if word in lists:
            current = word
        elif current:
            lists[current].add(word)
    deps[room], test_deps[room] = lists["DEPS"] - {"none"}, lists["TEST_DEPS"]

for room in deps:
    for known in deps[room] | test_deps[room]:
        if known not in deps:
            problems.append(f"src/{room}: DEPS names '{known}', which is no room")


def reaches(start, goal, seen):
    return any(n == goal or (n not in seen and (seen.add(n) or reaches(n, goal, seen)))
               for n in deps.get(start, ()))


problems += [f"src/{room}: depends on itself by way of its DEPS" for room in deps if reaches(room, room, set())]

for file in sorted([*src.rglob("*.h"), *src.rglob("*.cc")]):
    room = file.relative_to(src).parts[0]
    allowed = {room} | deps.get(room, set())
    if re.search(r"_(test|fuzz|bench)\.cc$|_testing(_internal)?\.h$", file.name):
        allowed |= test_deps.get(room, set())
    for number, line in enumerate(file.read_text().splitlines(), 1):
        ours = re.match(r'#include "(\w+)/([\w./]+)"', line)
        if ours and ours[1] not in allowed:
            problems.append(f"{file}:{number}: {room} may not include {ours[1]} (its DEPS: {' '.join(sorted(deps.get(room, ())))})")
        if ours and ours[1] != room and ours[2].endswith("_internal.h"):
            problems.append(f"{file}:{number}: {ours[2]} is private to {ours[1]}")
        if "<boost/beast" in line and room not in ("http", "net"):
            problems.append(f"{file}:{number}: Beast stays behind src/http/ and src/net/")

print("\n".join(problems) or f"{len(deps)} rooms, every include allowed")
sys.exit(bool(problems))
