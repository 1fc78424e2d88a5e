#!/usr/bin/env python3
"""Runs ctest, and once more, alone, what failed: run_tests.py BUILD_FOLDER ctest [ARGUMENT...]

A test that fails and then passes alone is unsteady: that is said, loudly, and is no failure. One that fails twice is,
and so are more than a few at once. What a failing test wrote at first stays in BUILD_FOLDER/Testing/failed/NAME.log.
The last lines name each of them with what it complained about, for whoever sees nothing else.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

MOST_TO_REPEAT = 5  # of more than these not all have been unlucky
LINES_OF_A_COMPLAINT = 3
WIDEST_LINE = 200


def run(command):
    """The exit code of a ctest, and what it calls the failure of each test: {name: Failed, Timeout, SEGFAULT, ...}"""
    said = bytearray()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as ctest:
        while piece := os.read(ctest.stdout.fileno(), 1 << 16):
            said += piece
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    _, *summary = said.decode(errors="replace").split("\nThe following tests FAILED:\n")
    return ctest.returncode, dict(re.findall(r"^\s+\d+ - (\S+) \(([^)]*)\)", summary[-1], re.M)) if summary else {}


def outputs(log):
    """What each test of the last ctest wrote: {name: text}"""
    parts = re.split(r"^\d+/\d+ Testing: (\S+)\n", log.read_text(errors="replace"), flags=re.M)[1:]
    found = {}
    for name, text in zip(parts[::2], parts[1::2]):
        _, _, text = text.partition("Output:\n----------------------------------------------------------\n")
        found[name] = text.rpartition("<end of output>")[0]
    return found


def complaint(text):
    """The first assertion that failed, in a few lines; else the last words."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if re.search(r": Failure$", line):  # GoogleTest
            return lines[at:at + LINES_OF_A_COMPLAINT]
        if re.match(r"(FAIL|ERROR): ", line):  # Python: whose, where, what
            where = ""
            for each in lines[at + 1:]:
                if re.match(r' +File "', each):
                    where = each.strip()
                elif where and re.match(r"[A-Za-z_][\w.]*(: |$)", each):  # the exception's name
                    return [line, where, each]
    return lines[-LINES_OF_A_COMPLAINT:]


def tell(heading, text):
    print(heading)
    for line in complaint(text) or ["it wrote nothing"]:
        print("    " + line[:WIDEST_LINE])


def main(folder, command):
    logs, kept = folder / "Testing/Temporary", folder / "Testing/failed"
    (logs / "LastTestsFailed.log").unlink(missing_ok=True)  # else those of an earlier day would be repeated
    shutil.rmtree(kept, ignore_errors=True)
    code, failed = run(command)
    if not failed:
        return code

    first = {name: text for name, text in outputs(logs / "LastTest.log").items() if name in failed}
    kept.mkdir()
    places = {name: kept / (name.replace("/", "_") + ".log") for name in failed}
    for name, place in places.items():
        place.write_text(first.get(name, ""))

    again = failed
    if len(failed) <= MOST_TO_REPEAT:
        print(f"\nonce more, alone: {' '.join(failed)}", flush=True)
        code, again = run([*command, "--rerun-failed", "--output-on-failure", "-j", "1"])
    print()
    if len(again) > MOST_TO_REPEAT:
        print(f"{len(again)} failed, too many to have been unlucky: {' '.join(again)}")
    for name in failed:
        if name not in again:
            tell(f"unsteady: {name} failed once and passed alone; its first output is in {places[name]}", first.get(name, ""))
    for name in list(again)[:MOST_TO_REPEAT]:
        tell(f"failed: {name} ({failed[name]}); all that it wrote is in {places[name]}", first.get(name, ""))
    return code


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
