#!/usr/bin/env python3
"""Every test of Python is one that ctest runs: check_listed.py BUILD_FOLDER

Those of C++ are found by their names; those of Python stand in a list, where one can be forgotten.
"""
import pathlib
import sys

listed = (pathlib.Path(sys.argv[1]) / "tests/CTestTestfile.cmake").read_text()
scripts = sorted(pathlib.Path("tests").resolve().rglob("*_test.py"))
forgotten = [script for script in scripts if f'"{script}"' not in listed]
for script in forgotten:
    print(f"'{script}' is run by no test: tests/CMakeLists.txt does not name it")
print(f"{len(scripts)} scripts, {len(forgotten)} forgotten")
sys.exit(bool(forgotten))
