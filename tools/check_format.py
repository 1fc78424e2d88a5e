#!/usr/bin/env python3
"""Every C++ file is laid out as clang-format-19 would: check_format.py [--fix]."""
import pathlib
import subprocess
import sys

files = [str(file) for folder in ("src", "cmd", "tests", "bench", "fuzz")
         for file in sorted(pathlib.Path(folder).rglob("*")) if file.suffix in (".cc", ".h")]
mode = ["-i"] if "--fix" in sys.argv[1:] else ["--dry-run", "--Werror"]
result = subprocess.run(["clang-format-19", *mode, *files])
if result.returncode:
    print("formatting differs; ./dev fmt mends it")
else:
    print(f"{len(files)} files")
sys.exit(result.returncode)
