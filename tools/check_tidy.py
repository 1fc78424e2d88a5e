#!/usr/bin/env python3
"""clang-tidy over every source file but tests, on all cores: check_tidy.py BUILD_FOLDER [FILE...]

A file that passed is not looked at again until it, a header of ours, or the list of checks changes.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

build = pathlib.Path(sys.argv[1])
root = pathlib.Path.cwd()
passed = build / "tidy"
passed.mkdir(exist_ok=True)
rooms = ("src", "cmd", "bench")

common = hashlib.sha256(pathlib.Path(".clang-tidy").read_bytes())
for header in sorted(h for room in rooms for h in pathlib.Path(room).rglob("*.h")):
    common.update(header.read_bytes())

wanted = {str(root / name) for name in sys.argv[2:]}
files = sorted({entry["file"] for entry in json.loads((build / "compile_commands.json").read_text())})
files = [f for f in files if any(f.startswith(f"{root}/{room}/") for room in rooms)]
files = [f for f in files if f in wanted or not (wanted or f.endswith("_test.cc") or f.endswith("_fuzz.cc"))]


def check(file):
    digest = common.copy()
    digest.update(pathlib.Path(file).read_bytes())
    stamp = passed / digest.hexdigest()
    if stamp.exists():
        return ""
    result = subprocess.run(["clang-tidy-19", "--quiet", "-p", str(build), file], capture_output=True, text=True)
    if result.returncode:
        return result.stdout + result.stderr
    stamp.touch()
    return ""


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    complaints = [text for text in pool.map(check, files) if text]
print("\n".join(complaints) or f"{len(files)} files")
sys.exit(bool(complaints))
