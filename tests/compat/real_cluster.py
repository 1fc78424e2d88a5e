"""A real kube-apiserver on a real etcd, on loopback, in a folder that goes with it.

There is no kubelet and no scheduler: whoever needs a pod to run says so in its status. Where
HEARTH_KUBE_CONTROLLER_MANAGER names one, garbage is collected.
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from api_server import HEARTH, wait_until
from kubectl import kubectl_of_machine

TOKEN = "real-cluster-admin"


def programs():
    """kube-apiserver and etcd, as the environment names them."""
    names = ("HEARTH_KUBE_APISERVER", "HEARTH_ETCD")
    missing = [name for name in names if not os.access(os.environ.get(name, ""), os.X_OK)]
    if missing:
        why = f"NOT TESTED against a real cluster: {' and '.join(missing)} must name the programs"
        print(why, file=sys.stderr)
        raise unittest.SkipTest(why)
    return [os.environ[name] for name in names]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Cluster:
    address = "127.0.0.1"

    def __init__(self):
        self.apiserver, self.etcd = programs()
        if not pathlib.Path(HEARTH).exists():
            raise unittest.SkipTest(f"needs {HEARTH}: build first")
        self.kubectl_program = kubectl_of_machine()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hearth-cluster-"))
        self.processes = []
        self.port = free_port()
        self.etcd_port = free_port()
        self.kubeconfig = str(self.folder / "kubeconfig")
        try:
            self.start_all()
        except BaseException:
            self.end()
            raise

    def start_all(self):
        key = self.folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        self.store = self.start_store()
        self.api = self.start_api()
        wait_until(lambda: (self.folder / "pki/apiserver.crt").exists(), 60, "the server's certificate")
        self.write_kubeconfig()
        wait_until(self.is_ready, 90, "kube-apiserver")
        self.start_controllers()

    def start_controllers(self):
        if manager := os.environ.get("HEARTH_KUBE_CONTROLLER_MANAGER"):
            self.start_manager(manager, "--controllers=garbage-collector-controller,namespace-controller,endpointslice-controller")

    def start_manager(self, program, *words):
        self.manager = self.start("kube-controller-manager", [program, f"--kubeconfig={self.kubeconfig}", "--leader-elect=false",
                                                              "--secure-port=0", *words])

    def start_store(self):
        return self.start("etcd", [self.etcd, "--data-dir", self.folder / "etcd", "--unsafe-no-fsync",
                                   "--listen-client-urls", f"http://127.0.0.1:{self.etcd_port}",
                                   "--advertise-client-urls", f"http://127.0.0.1:{self.etcd_port}",
                                   "--listen-peer-urls", f"http://127.0.0.1:{free_port()}"])

    def start_api(self):
        return self.start("kube-apiserver", [
            self.apiserver, f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", f"--bind-address={self.address}",
            f"--advertise-address={self.address}", f"--secure-port={self.port}", f"--cert-dir={self.folder / 'pki'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}", "--authorization-mode=RBAC",
            f"--service-account-key-file={self.folder / 'accounts.key'}",
            f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
            *self.more_of_api()])

    def more_of_api(self):
        # Nobody makes accounts.
        return ["--disable-admission-plugins=ServiceAccount"]

    def start(self, name, command):
        log = open(self.folder / f"{name}.log", "a")
        process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL)
        log.close()
        self.processes.append(process)
        return process

    def write_kubeconfig(self):
        self.write_kubeconfig_of(self.kubeconfig, TOKEN, "default")

    def write_kubeconfig_of(self, path, token, namespace):
        pathlib.Path(path).write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": {"server": f"https://{self.address}:{self.port}",
                                                      "certificate-authority": "pki/apiserver.crt"}}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin", "namespace": namespace}}]}))

    def is_ready(self):
        with contextlib.suppress(subprocess.SubprocessError):
            return "ok" == self.kubectl("get", "--raw", "/readyz", check=False).stdout
        return False

    def restart_api(self, away=0):
        """As an upgrade would: it is away for a moment."""
        self.kill(self.api)
        time.sleep(away)
        self.api = self.start_api()
        wait_until(self.is_ready, 90, "kube-apiserver again")

    def restart_manager(self):
        self.kill(self.manager)
        self.start_controllers()

    def restart_store(self, away=0):
        self.kill(self.store)
        time.sleep(away)
        self.store = self.start_store()
        wait_until(self.is_ready, 90, "kube-apiserver, with etcd again")

    def kubectl(self, *words, given=None, check=True):
        done = subprocess.run([self.kubectl_program, "--kubeconfig", self.kubeconfig, *words], input=given,
                              capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done

    def apply_crds(self, *words):
        crds = subprocess.run([HEARTH, "crds", *words], capture_output=True, text=True, check=True).stdout
        self.kubectl("apply", "-f", "-", given=crds)
        # kubectl stumbles over one that has no status yet.
        established = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=20s"]
        wait_until(lambda: self.kubectl(*established, check=False).returncode == 0, 60, "our kinds")

    def get(self, *words):
        """The object or list; nothing where there is none."""
        done = self.kubectl("get", *words, "-o", "json", check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def run_pod(self, name):
        """What a kubelet would say."""
        status = {"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}],
                             "conditions": [{"type": "Ready", "status": "True"}]}}
        self.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))

    def kill(self, process):
        process.kill()
        process.wait(30)
        self.processes.remove(process)

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


class Controller:
    """`hearth controller` on a cluster."""

    def __init__(self, cluster, name, *words, kubeconfig=None):
        self.metrics_port, self.health_port = free_port(), free_port()
        self.log = cluster.folder / f"controller-{name}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [HEARTH, "controller", "--kubeconfig", kubeconfig or cluster.kubeconfig, "--zap-encoder=console",
                 f"--metrics-bind-address=127.0.0.1:{self.metrics_port}",
                 f"--health-probe-bind-address=127.0.0.1:{self.health_port}", *words],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        cluster.processes.append(self.process)
        self.cluster = cluster

    def said(self):
        return self.log.read_text()

    def fetch(self, port, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def health(self, path="/readyz"):
        return self.fetch(self.health_port, path)

    def metrics(self):
        return self.fetch(self.metrics_port, "/metrics")

    def wait_until_it_acts(self):
        wait_until(lambda: "controllers started" in self.said() or self.process.poll() is not None, 60, "controllers")
        if self.process.poll() is not None:
            raise AssertionError(f"hearth controller ended: {self.said()}")

    def end(self):
        """As Kubernetes ends a pod; returns the exit code and how long it took."""
        began = time.monotonic()
        self.process.terminate()
        code = self.process.wait(30)
        self.cluster.processes.remove(self.process)
        return code, time.monotonic() - began
