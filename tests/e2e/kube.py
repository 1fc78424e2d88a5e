"""A real `hearth apiserver` for tests: how to start it, ask it and watch it."""
import http.client
import json
import os
import re
import resource
import signal
import ssl
import subprocess
import tempfile
import time

from hearth import HEARTH, wait_until

TOKEN = "test-token"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def tls():
    context = ssl._create_unverified_context()
    context.set_ciphers("DEFAULT")
    return context


TLS = tls()


class Client:
    """One connection."""

    def __init__(self, port, timeout=30):
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=TLS, timeout=timeout)

    def ask(self, method, path, body=None):
        """The status and the object."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def watch(self, path):
        """A watch, once its head is here: lines of events."""
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        answer = self.connection.getresponse()
        assert answer.status == 200, answer.read()
        return answer

    def close(self):
        self.connection.close()


class ApiServer:
    """Give it a folder to start on the same objects again."""

    def __init__(self, state_dir, file_size_limit=None):
        self.state_dir = state_dir
        self.file_size_limit = file_size_limit
        self.process = None

    def start(self):
        self.output = tempfile.NamedTemporaryFile("w+", prefix="hearth-kube-")
        self.process = subprocess.Popen(
            [HEARTH, "apiserver", "--state-dir", self.state_dir, "--kube-port", "0", "--token", TOKEN],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, preexec_fn=self._limit)
        wait_until(lambda: self._port() or self.process.poll() is not None, what="ready")
        if self.process.poll() is not None:
            raise AssertionError(f"hearth apiserver ended: {self.said()}")
        self.port = self._port()
        return self

    def _limit(self):
        if self.file_size_limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_size_limit, resource.RLIM_INFINITY))

    def said(self):
        with open(self.output.name) as text:
            return text.read()

    def _port(self):
        found = re.search(r"^ready kube=https://127.0.0.1:(\d+)", self.said(), re.M)
        return int(found[1]) if found else None

    def client(self, timeout=30):
        return Client(self.port, timeout)

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process:
            self.output.close()
        self.process = None

    def terminate(self, seconds=15):
        """The exit code, and how long it took."""
        begin = time.monotonic()
        self.process.terminate()
        code = self.process.wait(seconds)
        self.output.close()
        self.process = None
        return code, time.monotonic() - begin


def config_map(name, value=""):
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"value": value}}


def revision_of(thing):
    return int(thing["metadata"]["resourceVersion"])
