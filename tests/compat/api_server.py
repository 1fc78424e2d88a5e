"""`hearth apiserver` on a state folder of its own, for clients of Kubernetes. Needs no root."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from hearth import HEARTH, wait_until  # noqa: E402

TOKEN = "compat-admin-token"


class ApiServer:
    def __init__(self):
        if not pathlib.Path(HEARTH).exists():
            raise unittest.SkipTest(f"needs {HEARTH}: build first")
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hearth-compat-", dir=memory))
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            [HEARTH, "apiserver", "--state-dir", str(self.folder / "state"), "--kube-port", "0", "--token", TOKEN],
            stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.url = self.wait_for_url()
        self.kubeconfig = str(self.folder / "state" / "admin.kubeconfig")
        self.ca = str(self.folder / "state" / "engine" / "pki" / "ca.crt")

    def said(self):
        return (self.folder / "log").read_text()

    def wait_for_url(self):
        def ready():
            return re.search(r"^ready kube=(\S+)", self.said(), re.M)
        try:
            wait_until(lambda: ready() or self.process.poll() is not None, what="ready")
            return ready()[1]
        except (AssertionError, TypeError):
            said = self.said()
            self.end()
            raise AssertionError(f"hearth apiserver did not become ready: {said}") from None

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
