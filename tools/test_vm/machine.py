"""The machine that tests run in: a Debian on a disk image, its kernel and one kernel module.

Made once, in a cache folder, by mmdebstrap; needs a Debian mirror then and nothing later. What it is
made of is the recipe below: change it, and the next run makes a new one.
"""
import hashlib
import json
import lzma
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent

RECIPE = {
    "suite": "bookworm",
    # Idmapped tmpfs needs 6.3, and Debian 12 came with 6.1; its security archive has this one too.
    "kernel": "linux-image-6.12-cloud-amd64",
    "mirrors": [
        "deb http://deb.debian.org/debian bookworm main",
        "deb http://deb.debian.org/debian-security bookworm-security main",
    ],
    # What tests call, in sandboxes (the image 'host' is this machine's /usr) and outside.
    "packages": ["busybox-static", "iproute2", "kmod", "nftables", "procps", "python3-minimal", "util-linux"],
    "adder": hashlib.sha256((HERE / "add_kernel.sh").read_bytes()).hexdigest(),
}


class Unavailable(Exception):
    """What it takes to make a machine cannot be had here."""


class Machine:
    def __init__(self, folder: pathlib.Path):
        self.disk = folder / "root.ext2"
        self.kernel = folder / "vmlinuz"
        self.busybox = folder / "busybox"
        self.disk_module = folder / "virtio_blk.ko"
        self.recipe = folder / "recipe.json"

    def is_current(self) -> bool:
        return self.recipe.exists() and json.loads(self.recipe.read_text()) == RECIPE


def require_programs() -> None:
    for program in ("qemu-system-x86_64", "mmdebstrap", "genext2fs"):
        if not shutil.which(program):
            raise Unavailable(f"needs {program} (tools/deps.txt names the package)")


def get_machine(folder: pathlib.Path) -> Machine:
    machine = Machine(folder)
    if not machine.is_current():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"test-vm: making the machine in {folder}, which takes a minute or two, once", flush=True)
        make_machine(machine, folder)
    return machine


def make_machine(machine: Machine, folder: pathlib.Path) -> None:
    module = folder / "virtio_blk.ko.xz"
    command = [
        "mmdebstrap", "--quiet", "--variant=minbase", "--format=ext2",
        f"--include={','.join(RECIPE['packages'])}",
        f"--customize-hook='{HERE}/add_kernel.sh' \"$1\" {RECIPE['kernel']}",
        f"--customize-hook=download /vmlinuz '{machine.kernel}'",
        f"--customize-hook=download /virtio_blk.ko.xz '{module}'",
        f"--customize-hook=download /usr/bin/busybox '{machine.busybox}'",
        RECIPE["suite"], str(machine.disk), *RECIPE["mirrors"],
    ]
    log = folder / "mmdebstrap.log"
    with log.open("w") as output:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output).returncode
    if status != 0:
        print(log.read_text()[-4000:])
        raise Unavailable(f"mmdebstrap could not make the machine (all it said: {log})")
    # Busybox would not unpack it, and the kernel only with an option that not every one is built with.
    machine.disk_module.write_bytes(lzma.decompress(module.read_bytes()))
    machine.recipe.write_text(json.dumps(RECIPE))
