#!/usr/bin/env python3
"""Every test that docs/promises.md names is there, and so is every file that a document names: check_promises.py"""
import pathlib
import re
import sys

TREES = ("src", "tests", "bench", "fuzz", "tools")
DOCUMENTS = [path for path in (*pathlib.Path(".").glob("*.md"), *pathlib.Path("docs").rglob("*.md"))]
FOLDERS = "|".join((*TREES, "docs", "cmd", "api", "deploy", "cmake"))

sources = "\n".join(path.read_text() for tree in TREES for path in pathlib.Path(tree).rglob("*") if path.suffix in (".cc", ".py"))
tests = {f"{suite}.{name}" for suite, name in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", sources)}
methods = set(re.findall(r"\bdef (test_\w+)\(", sources))


def problems():
    promises = pathlib.Path("docs/promises.md").read_text()
    for name in re.findall(r"`([A-Z]\w+\.\w+)`", promises):
        if name not in tests and name.partition(".")[2] not in methods:
            yield f"docs/promises.md: there is no test '{name}'"
    for document in DOCUMENTS:
        for name in re.findall(rf"(?<![\w/.-])((?:{FOLDERS})/[\w./-]*\w)", document.read_text()):
            # Some name the stem of several.
            if not pathlib.Path(name).exists() and not list(pathlib.Path(name).parent.glob(pathlib.Path(name).name + "*")):
                yield f"{document}: there is no '{name}'"


found = sorted(set(problems()))
print(*found, f"{len(DOCUMENTS)} documents, {len(tests)} tests, {len(found)} wrong", sep="\n")
sys.exit(bool(found))
