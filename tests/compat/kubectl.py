"""The kubectls of this machine, and Debian's old one."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from client_venv import FOLDER, fetch


def version_of(program):
    try:
        said = subprocess.run([program, "version", "--client", "-o", "json"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'"minor": "(\d+)', said.stdout)
    return int(found[1]) if found else None


def debian_kubectl():
    """kubectl 1.20, as Debian 12 has it. Unpacked, not installed."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise unittest.SkipTest("needs apt-get and dpkg, for Debian's kubernetes-client")
    folder = fetch("kubernetes-client from Debian", FOLDER / "kubernetes-client", ["apt-get", "download", "kubernetes-client"],
                   ["sh", "-c", "dpkg -x kubernetes-client_*.deb ."])
    return str(folder / "usr/bin/kubectl")


def kubectl_of_machine():
    """Or the one that HEARTH_KUBECTL names."""
    program = os.environ.get("HEARTH_KUBECTL") or shutil.which("kubectl")
    if not program:
        raise unittest.SkipTest("needs a kubectl")
    return program


def siblings_of(program):
    """Some packages bring a kubectl per version of Kubernetes: {minor: program}."""
    folder = pathlib.Path(os.path.realpath(program)).parent
    named = [(re.fullmatch(r"kubectl\.1\.(\d+)", file.name), file) for file in folder.iterdir()]
    return {int(found[1]): str(file) for found, file in named if found}


class Kubectl:
    def __init__(self, program, server):
        self.program, self.server = program, server
        self.minor = version_of(program)
        if self.minor is None:
            raise unittest.SkipTest(f"needs a kubectl that works: {program} does not")
        self.cache = str(server.folder / f"cache-1.{self.minor}")
        self.env = dict(os.environ, KUBECONFIG=server.kubeconfig)

    def words(self, *words):
        return [self.program, "--cache-dir", self.cache, *words]

    def run(self, *words, text=None, timeout=120, **env):
        return subprocess.run(self.words(*words), input=text, capture_output=True, text=True, timeout=timeout,
                              env=dict(self.env, **env))

    def start(self, *words):
        return subprocess.Popen(self.words(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env)
