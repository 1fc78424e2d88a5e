"""`hearth apiserver` on a state folder of its own, for clients of Kubernetes. Needs no root."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ.get("HEARTH_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"))
HEARTH = str(BIN / "hearth")
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
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            ready = re.search(r"^ready kube=(\S+)", self.said(), re.M)
            if ready:
                return ready[1]
            time.sleep(0.02)
        self.end()
        raise AssertionError("hearth apiserver did not become ready")

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_until(condition, seconds=30, what="it"):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {seconds} s")
