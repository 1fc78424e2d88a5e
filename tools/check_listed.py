#!/usr/bin/env python3
"""Every test of Python is one that ctest runs: check_listed.py BUILD_FOLDER

Those of C++ are found by their names; those of Python stand in a list, where one can be forgotten.
"""
import pathlib
import sys

build = pathlib.Path(sys.argv[1])
listed = "".join((build / folder / "CTestTestfile.cmake").read_text() for folder in (".", "tests"))
scripts = sorted(script for folder in ("tests", "tools") for script in pathlib.Path(folder).resolve().rglob("*_test.py"))
forgotten = [script for script in scripts if f'"{script}"' not in listed]
for script in forgotten:
    print(f"'{script}' is run by no test: no CMakeLists.txt names it")
print(f"{len(scripts)} scripts, {len(forgotten)} forgotten")
sys.exit(bool(forgotten))
