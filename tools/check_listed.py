#!/usr/bin/env python3
"""Every test of Python is one that ctest runs: check_listed.py BUILD_FOLDER

Those of C++ are found by their names; those of Python stand in a list, where one can be forgotten: a script, or a class of a script
whose classes are named one by one.
"""
import ast
import pathlib
import re
import sys


def test_classes(script):
    """Those that are run when nobody names any: with tests of their own, and no other's base."""
    classes = [node for node in ast.parse(script.read_text()).body if isinstance(node, ast.ClassDef)]
    bases = {base.id for each in classes for base in each.bases if isinstance(base, ast.Name)}
    return {each.name for each in classes if each.name not in bases
            and any(isinstance(part, ast.FunctionDef) and part.name.startswith("test") for part in each.body)}


def forgotten_of(script, listed):
    runs = re.findall(re.escape(f'"{script}"') + r"([^)]*)\)", listed)
    if not runs:
        return ["all of it"]
    if any(not words.strip() for words in runs):
        return []
    return sorted(test_classes(script) - set(re.findall(r'"(\w+)"', " ".join(runs))))


build = pathlib.Path(sys.argv[1])
listed = "".join((build / folder / "CTestTestfile.cmake").read_text() for folder in (".", "tests"))
scripts = sorted(script for folder in ("tests", "tools") for script in pathlib.Path(folder).resolve().rglob("*_test.py"))
forgotten = [(script, what) for script in scripts for what in forgotten_of(script, listed)]
for script, what in forgotten:
    print(f"'{script}' is run by no test ({what}): no CMakeLists.txt names it")
print(f"{len(scripts)} scripts, {len(forgotten)} forgotten")
sys.exit(bool(forgotten))
