#!/usr/bin/env python3
"""Runs the kernel tests in a small virtual machine: a world of cgroup v2 alone, and another kernel.

    test_vm.py [--build FOLDER] [--filter PATTERN] [PROGRAM...]

PROGRAM: test programs of FOLDER/tests instead of all that need a kernel; --filter is GoogleTest's.
The processor is emulated in software unless HEARTH_VM_ACCEL names another accelerator of QEMU (kvm).
Status 0: all passed; 1: not all; 77: skipped, because what it takes cannot be had here.
What was said is kept in FOLDER/test-vm/: tests.log, and console.log of the kernel.
"""
import argparse
import fcntl
import os
import pathlib
import re
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time

from initramfs import InitialRamDisk
from machine import HERE, Machine, Unavailable, get_machine, require_programs
from results import Reader, Score

# Emulated, all of it takes minutes. No test is silent for as long as the second says, even so.
SECONDS_FOR_ALL = 1800
SECONDS_OF_SILENCE = 180

SKIPPED = 77
OUR_PROGRAMS = ["hearth-runtime", "hearth-guest", "hearth-unpack", "escape-payload"]
TEST_PROGRAMS = re.compile(r"^((?!cmake_)\w+_kernel_test|sandbox_test|escape_test)$")
# The machine's own: a second C library would have to fit its loader.
LIBRARIES_OF_THE_MACHINE = re.compile(r"^(lib(c|m|dl|rt|pthread|resolv)\.so|ld-linux)")


def targets_in(build: pathlib.Path) -> set[str]:
    listed = subprocess.run(["ninja", "-C", str(build), "-t", "targets", "all"], check=True, text=True, capture_output=True)
    return {line.partition(":")[0] for line in listed.stdout.splitlines()}


def build_programs(build: pathlib.Path, wanted: list[str]) -> list[str]:
    """Builds our programs and the test programs, and says which the latter are."""
    known = targets_in(build)
    tests = wanted or sorted(target for target in known if TEST_PROGRAMS.match(target))
    targets = [target for target in OUR_PROGRAMS if target in known] + tests
    if missing := set(targets) - known:
        sys.exit(f"test-vm: no such test program: {' '.join(sorted(missing))}")
    if subprocess.run(["ninja", "-C", str(build), *targets]).returncode != 0:
        sys.exit("test-vm: it does not build")
    return tests


def libraries_of(program: pathlib.Path) -> dict[str, pathlib.Path]:
    listed = subprocess.run(["ldd", str(program)], text=True, capture_output=True).stdout
    found = dict(re.findall(r"^\s+(\S+) => (/\S+)", listed, re.MULTILINE))
    return {name: pathlib.Path(path) for name, path in found.items() if not LIBRARIES_OF_THE_MACHINE.match(name)}


def stripped(program: pathlib.Path) -> bytes:
    with tempfile.NamedTemporaryFile() as copy:
        subprocess.run(["llvm-strip-19", "-o", copy.name, str(program)], check=True)
        return pathlib.Path(copy.name).read_bytes()


def make_ram_disk(machine: Machine, build: pathlib.Path, tests: list[str], texts: dict[str, str]) -> bytes:
    disk = InitialRamDisk()
    disk.copy("bin/busybox", machine.busybox)
    disk.copy("virtio_blk.ko", machine.disk_module)
    disk.copy("init", HERE / "first_init.sh")
    disk.copy("payload/init", HERE / "init.sh")
    libraries: dict[str, pathlib.Path] = {}
    for name in OUR_PROGRAMS:
        if (build / "bin" / name).exists():
            disk.add_file(f"payload/bin/{name}", stripped(build / "bin" / name))
    for name in tests:
        libraries |= libraries_of(build / "tests" / name)
        disk.add_file(f"payload/tests/{name}", stripped(build / "tests" / name))
    for name, path in libraries.items():
        disk.copy(f"payload/lib/{name}", path)
    for name, text in texts.items():
        disk.add_file(f"payload/{name}", text.encode() + b"\n", 0o644)
    return disk.pack()


def qemu_command(machine: Machine, ram_disk: pathlib.Path, console: pathlib.Path) -> list[str]:
    accelerator = os.environ.get("HEARTH_VM_ACCEL", "tcg,thread=multi")
    return [
        # It dies with us, however we die.
        "setpriv", "--pdeathsig", "KILL", "nice", "-n", "15",
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        # Five levels of page tables cost an emulated processor dearly.
        "-machine", "q35", "-accel", accelerator, "-cpu", "max,la57=off", "-smp", "2", "-m", "3G",
        "-kernel", str(machine.kernel), "-initrd", str(ram_disk),
        "-append", "console=ttyS0 loglevel=5 panic=-1 cgroup_no_v1=all",
        # What is written to the disk is forgotten with the machine.
        "-drive", f"file={machine.disk},format=raw,if=virtio,snapshot=on",
        "-serial", f"file:{console}", "-serial", "stdio",
    ]


def lines_in_time(stream):
    """Lines until the stream ends; raises TimeoutError if one does not come in time."""
    deadline = time.monotonic() + SECONDS_FOR_ALL
    descriptor = stream.fileno()
    rest = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(descriptor, selectors.EVENT_READ)
        while True:
            patience = min(SECONDS_OF_SILENCE, deadline - time.monotonic())
            if patience <= 0 or not waiting.select(patience):
                raise TimeoutError
            got = os.read(descriptor, 65536)
            if not got:
                return
            *lines, rest = (rest + got).split(b"\n")
            yield from (line.decode(errors="replace").rstrip("\r") for line in lines)


def run_machine(command: list[str], reader: Reader, log: pathlib.Path) -> Score:
    with log.open("w") as kept, \
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as machine:
        try:
            for line in lines_in_time(machine.stdout):
                print(line, file=kept, flush=True)
                reader.take(line)
        except TimeoutError:
            reader.give_up(f"nothing for {SECONDS_OF_SILENCE} seconds, or not done within {SECONDS_FOR_ALL}")
        finally:
            machine.kill()
    return reader.score


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"), metavar="FOLDER")
    parser.add_argument("--filter", default="", metavar="PATTERN")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    return parser.parse_args()


def lock(folder: pathlib.Path):
    """One run at a time in a folder: they share its files. Held as long as what is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    held = (folder / "lock").open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"test-vm: another one runs in {folder}")
    return held


def test(arguments: argparse.Namespace) -> int:
    build = arguments.build.resolve()
    folder = build / "test-vm"
    require_programs()
    with lock(folder):
        return test_in(build, folder, arguments)


def test_in(build: pathlib.Path, folder: pathlib.Path, arguments: argparse.Namespace) -> int:
    tests = build_programs(build, arguments.programs)
    machine = get_machine(folder / "machine")

    started = time.monotonic()
    secret = secrets.token_hex(8)
    texts = {"secret": secret}
    if arguments.filter:
        texts["filter"] = arguments.filter
    console = folder / "console.log"
    console.write_text("")
    ram_disk = folder / "initrd"
    ram_disk.write_bytes(make_ram_disk(machine, build, tests, texts))
    reader = Reader(secret, lambda line: print(line, flush=True))
    score = run_machine(qemu_command(machine, ram_disk, console), reader, folder / "tests.log")
    if not score.finished:
        print("test-vm: the kernel's last words:", *console.read_text(errors="replace").splitlines()[-30:], sep="\n    ")
    print(f"{score.text()} in {time.monotonic() - started:.0f} s")
    return 0 if score.is_success() else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        sys.exit(test(parse_arguments()))
    except Unavailable as reason:
        print(f"test-vm: SKIPPED: {reason}")
        sys.exit(SKIPPED)
    except KeyboardInterrupt:
        sys.exit(130)
