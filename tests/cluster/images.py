"""The images that the cluster runs, as archives: no registry is asked for any."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from hearth import BIN, HEARTH  # noqa: E402
from registry import Image, need, tar_of  # noqa: E402

VERSION = re.search(r"\d+\.\d+\.\d+", (pathlib.Path(__file__).resolve().parents[2] / "VERSION").read_text())[0]
CONTROLLER, GUEST = f"registry.example/hearth-controller:{VERSION}", f"registry.example/hearth-guest:{VERSION}"
PAUSE, SHELL = "registry.example/pause:1", "registry.example/shell:1"
NOBODY = "65532:65532"


def write_all(folder):
    """{name: archive}"""
    images = {PAUSE: Image([shell_layer()], {"Entrypoint": ["/bin/sleep", "2147483647"]}),
              SHELL: Image([shell_layer()], {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]}),
              GUEST: Image([tar_of({"hearth-guest": (BIN / "hearth-guest").read_bytes()})],
                           {"Entrypoint": ["/hearth-guest"], "User": NOBODY}),
              CONTROLLER: Image([program_layer(HEARTH)],
                                {"Entrypoint": ["/usr/local/bin/hearth"], "Cmd": ["controller"], "User": NOBODY})}
    return {name: write_archive(folder / f"image-{i}", name, image) for i, (name, image) in enumerate(images.items())}


def shell_layer():
    """A static busybox under all of its names."""
    need("busybox")
    busybox = shutil.which("busybox")
    names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = {f"bin/{name}": "busybox" for name in names if name != "busybox"}
    users = b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"
    return tar_of({"bin/busybox": pathlib.Path(busybox).read_bytes(), **links, "root/.keep": b"", "tmp/.keep": b"",
                   "home/user/.keep": b"", "etc/passwd": users})


def program_layer(program):
    """It, and the libraries that this machine runs it with."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", said)
    files = {library[1:]: pathlib.Path(library).read_bytes() for library in libraries}
    return tar_of({**files, "usr/local/bin/hearth": pathlib.Path(program).read_bytes(), "tmp/.keep": b""})


def write_archive(folder, name, image):
    image.write_layout(folder, name)
    index = json.loads((folder / "index.json").read_text())
    index["manifests"][0]["annotations"] = {"io.containerd.image.name": name}
    (folder / "index.json").write_text(json.dumps(index))
    archive = folder.with_suffix(".tar")
    with tarfile.open(archive, "w") as tar:
        tar.add(folder, arcname="")
    shutil.rmtree(folder)
    return archive
