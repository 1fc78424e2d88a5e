#!/usr/bin/env python3
"""Runs libFuzzer programs on their kept corpora: run_fuzzers.py FOLDER SECONDS [NAME]

New inputs go to a scratch corpus below FOLDER; copy the interesting ones to fuzz/NAME yourself.
"""
import pathlib
import subprocess
import sys

folder, seconds, names = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
targets = sorted(f for f in folder.iterdir() if f.is_file() and f.name.endswith("_fuzz") and (not names or f.name in names))
if not targets:
    sys.exit(f"no fuzz target {' '.join(names)}; there are: {' '.join(sorted(f.name for f in folder.iterdir() if f.is_file()))}")
failed = []
for target in targets:
    scratch = folder / "corpus" / target.name
    scratch.mkdir(parents=True, exist_ok=True)
    command = [str(target), f"-max_total_time={seconds}", "-timeout=5", "-rss_limit_mb=2048",
               f"-artifact_prefix={scratch}/crash-", str(scratch), f"fuzz/{target.name}"]
    print(f"== {target.name} for {seconds} s", flush=True)
    if subprocess.run(command).returncode:
        failed.append(target.name)
print(f"{len(targets) - len(failed)} passed, {len(failed)} failed" + (f": {' '.join(failed)}" if failed else ""))
sys.exit(bool(failed))
