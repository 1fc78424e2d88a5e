"""The cluster that end-to-end tests talk to, by HTTP and kubectl alone: an engine of their own, or yours.

HEARTH_E2E_KUBECONFIG names a cluster with the agent-sandbox kinds and controllers; then no engine is started, and what
needs our node is skipped. HEARTH_E2E_IMAGE is what containers are made of there: it must have sh and sleep.
"""
import base64
import contextlib
import datetime
import http.client
import json
import os
import pathlib
import queue
import shutil
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import uuid

from hearth import Engine, expect_host_as_before, host_state, need_root, wait_until

KUBECONFIG = os.environ.get("HEARTH_E2E_KUBECONFIG")
IMAGE = os.environ.get("HEARTH_E2E_IMAGE", "python:3.12-slim" if KUBECONFIG else "host")
SECONDS = 180 if KUBECONFIG else 60  # for what takes a moment, on a machine that is busy; containers of others take longer
STAYS = "exec sleep 100000"

CORE, AGENTS, EXTENSIONS = "/api/v1", "/apis/agents.x-k8s.io/v1beta1", "/apis/extensions.agents.x-k8s.io/v1beta1"
KINDS = {"Namespace": (CORE, "namespaces"), "Pod": (CORE, "pods"), "Service": (CORE, "services"),
         "PersistentVolumeClaim": (CORE, "persistentvolumeclaims"), "Secret": (CORE, "secrets"),
         "Event": ("/apis/events.k8s.io/v1", "events"), "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
         "Sandbox": (AGENTS, "sandboxes"), "SandboxClaim": (EXTENSIONS, "sandboxclaims"),
         "SandboxTemplate": (EXTENSIONS, "sandboxtemplates"), "SandboxWarmPool": (EXTENSIONS, "sandboxwarmpools")}


class Api:
    """HTTPS as a kubeconfig says, for any number of threads, on connections that stay open."""

    def __init__(self, kubeconfig):
        text = subprocess.run(["kubectl", "--kubeconfig", kubeconfig, "config", "view", "--raw", "--minify", "--flatten", "-o", "json"],
                              capture_output=True, text=True, check=True, timeout=60).stdout
        config = json.loads(text)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = urllib.parse.urlsplit(cluster["server"])
        self.tls = make_tls(cluster, user)
        self.token = user.get("token")
        self.idle = queue.LifoQueue()

    def connect(self):
        return http.client.HTTPSConnection(self.url.hostname, self.url.port or 443, context=self.tls, timeout=SECONDS)

    def ask(self, method, path, body=None, kind="application/json"):
        """The status and the object, or text. Again where a kept connection turns out to be gone."""
        headers = {"Content-Type": kind, "Accept": "application/json", **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        content = json.dumps(body) if body is not None else None
        while True:
            connection, is_kept = self.take_connection()
            try:
                connection.request(method, self.url.path + path, content, headers)
                answer = connection.getresponse()
                text = answer.read().decode()
            except (OSError, http.client.HTTPException):
                connection.close()
                if not is_kept:
                    raise
                continue
            self.idle.put(connection)
            return answer.status, json.loads(text) if "json" in answer.getheader("Content-Type", "") else text

    def take_connection(self):
        """One, and whether it was kept: then it may be gone."""
        try:
            return self.idle.get_nowait(), True
        except queue.Empty:
            return self.connect(), False

    def close(self):
        while not self.idle.empty():
            self.idle.get_nowait().close()


def make_tls(cluster, user):
    tls = ssl.create_default_context()
    if "certificate-authority-data" in cluster:
        tls.load_verify_locations(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile("wb") as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"]))
            pair.flush()
            tls.load_cert_chain(pair.name)
    return tls


class Cluster:
    def __init__(self, *engine_options):
        self.options = engine_options
        self.engine = self.api = None
        if not KUBECONFIG:
            need_root()
            self.before = host_state()
            self.engine = Engine()
        self.kubeconfig = KUBECONFIG or f"{self.engine.state_dir}/admin.kubeconfig"

    def start(self):
        """Again, too, after the engine was killed."""
        if self.api:
            self.api.close()
        if self.engine:
            self.engine.start(*self.options)
        self.api = Api(self.kubeconfig)
        return self

    def kill_and_start(self):
        self.engine.process.kill()
        self.engine.process.wait(SECONDS)
        self.start()

    def end(self):
        self.api.close()
        if not self.engine:
            return
        self.engine.remove()
        expect_host_as_before(self.before)

    def kubectl(self, *words, stdin=None, env=None):
        """The finished process."""
        return subprocess.run(["kubectl", "--kubeconfig", self.kubeconfig, *words], input=stdin, capture_output=True, text=True,
                              timeout=180, env=dict(os.environ, **(env or {})))

    def metrics(self):
        """{name and labels as written: value}"""
        url = urllib.parse.urlsplit(self.engine.endpoints()["metrics"])
        with contextlib.closing(http.client.HTTPConnection(url.hostname, url.port, timeout=SECONDS)) as connection:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line and not line.startswith("#")}


class ClusterTest(unittest.TestCase):
    """A namespace per class, on a cluster per file."""

    cluster = None
    engine_options = ("--warm", "16")

    @classmethod
    def setUpClass(cls):
        if not shutil.which("kubectl"):
            raise unittest.SkipTest("needs kubectl")
        if not ClusterTest.cluster:
            cluster = Cluster(*cls.engine_options)
            unittest.addModuleCleanup(cluster.end)
            ClusterTest.cluster = cluster.start()
        cls.namespace = f"e2e-{cls.__name__.lower()}-{uuid.uuid4().hex[:6]}"
        status, said = cls.cluster.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": cls.namespace}})
        assert status == 201, said
        cls.addClassCleanup(cls.delete_namespace)

    @classmethod
    def delete_namespace(cls):
        path = f"/api/v1/namespaces/{cls.namespace}"
        cls.cluster.api.ask("DELETE", path)
        wait_until(lambda: cls.cluster.api.ask("GET", path)[0] == 404, 2 * SECONDS, f"the end of namespace {cls.namespace}")
        if cls.cluster.engine:
            wait_until(lambda: not cls.cluster.engine.sandboxes(), SECONDS, "the end of all sandboxes")

    @property
    def api(self):
        return self.cluster.api

    def need_our_node(self, what):
        if not self.cluster.engine:
            self.skipTest(f"{what} needs Hearth's own node, not the cluster of HEARTH_E2E_KUBECONFIG")

    def path(self, kind, name="", sub=""):
        group, plural = KINDS[kind]
        return f"{group}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")

    def ask(self, method, path, body=None, kind="application/json", expect=(200, 201, 202)):
        status, answer = self.api.ask(method, path, body, kind)
        self.assertIn(status, expect, f"{method} {path}: {answer}")
        return answer

    def create(self, *objects):
        return [self.ask("POST", self.path(thing["kind"]), thing) for thing in objects]

    def get(self, kind, name):
        answer = self.ask("GET", self.path(kind, name), expect=(200, 404))
        return None if answer["kind"] == "Status" else answer

    def list(self, kind, selector=""):
        return self.ask("GET", self.path(kind) + f"?labelSelector={urllib.parse.quote(selector)}")["items"]

    def patch(self, kind, name, change, sub="", expect=(200,)):
        return self.ask("PATCH", self.path(kind, name, sub), change, "application/merge-patch+json", expect)

    def delete(self, kind, name, **options):
        self.ask("DELETE", self.path(kind, name), options or None, expect=(200, 202, 404))

    def kubectl(self, *words, stdin=None):
        """What it wrote to its standard output."""
        result = self.cluster.kubectl("-n", self.namespace, *words, stdin=stdin)
        self.assertEqual(result.returncode, 0, f"kubectl {' '.join(words)}: {result.stderr}")
        return result.stdout

    def log_of(self, pod):
        return self.ask("GET", self.path("Pod", pod, "log"))

    def wait_log(self, pod, text):
        wait_until(lambda: self.log_of(pod) == text, SECONDS, f"{text!r} in the log of {pod}")

    def run_in(self, pod, command):
        return self.kubectl("exec", pod, "--", "sh", "-c", command)

    def wait(self, kind, name, condition, what="", seconds=SECONDS):
        """The object, once it is as it should be."""
        last = None

        def is_met():
            nonlocal last
            last = self.get(kind, name)
            time.sleep(0.03)
            return last is not None and condition(last)
        try:
            wait_until(is_met, seconds)
        except AssertionError:
            seen = {key: value for key, value in (last or {}).items() if key in ("spec", "status")}
            self.fail(f"{kind} {name} is not {what or 'as it should be'} after {seconds} s: {json.dumps(seen, indent=1)}")
        return last

    def wait_ready(self, kind, name):
        return self.wait(kind, name, lambda thing: is_ready(thing) and is_current(thing), "ready")

    def wait_unready(self, kind, name, reason):
        """Its Ready condition, once that is False for the reason."""
        return ready_of(self.wait(kind, name, lambda thing: (ready_of(thing) or {}).get("reason") == reason, reason))

    def wait_gone(self, kind, name, uid=None):
        """With a uid: that one; another of the name may be there."""
        def is_gone():
            found = self.get(kind, name)
            return found is None or (uid is not None and uid_of(found) != uid)
        wait_until(is_gone, SECONDS, f"the end of {kind} {name}")

    def expect_condition(self, thing, kind, status, reason, message):
        """The condition."""
        found = condition_of(thing, kind)
        self.assertIsNotNone(found, f"no condition {kind}: {thing.get('status')}")
        self.assertEqual((found["status"], found["reason"], found["message"]), (status, reason, message))
        return found


def condition_of(thing, kind):
    return next((c for c in thing.get("status", {}).get("conditions", []) if c["type"] == kind), None)


def ready_of(thing):
    return condition_of(thing, "Ready")


def is_ready(thing):
    return (ready_of(thing) or {}).get("status") == "True"


def is_current(thing):
    return (ready_of(thing) or {}).get("observedGeneration", thing["metadata"]["generation"]) == thing["metadata"]["generation"]


def uid_of(thing):
    return thing["metadata"]["uid"]


def pod_name_of(sandbox):
    return sandbox["metadata"].get("annotations", {}).get("agents.x-k8s.io/pod-name")


def owner_of(thing):
    """The one owner, without what is the same for all."""
    [owner] = thing["metadata"]["ownerReferences"]
    assert owner["controller"] and owner["blockOwnerDeletion"], owner
    return owner["apiVersion"].partition("/")[0], owner["kind"], owner["name"], owner["uid"]


def name_hash(name):
    """32 bit FNV-1a."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 % 2**32
    return f"{value:08x}"


def in_seconds(count):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=count)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_template(command=STAYS, **spec):
    container = {"name": "main", "image": IMAGE, **({"command": ["sh", "-c", command]} if command else {}), **spec.pop("container", {})}
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}}


def sandbox(name, command=STAYS, pod=None, **spec):
    return {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name},
            "spec": {"podTemplate": pod or pod_template(command), **spec}}


def extension(kind, name, **spec):
    return {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def template(name, command=STAYS, pod=None, **spec):
    return extension("SandboxTemplate", name, podTemplate=pod or pod_template(command), **spec)


def pool(name, template_name, replicas, **spec):
    return extension("SandboxWarmPool", name, replicas=replicas, sandboxTemplateRef={"name": template_name}, **spec)


def claim(name, pool_name, **spec):
    return extension("SandboxClaim", name, warmPoolRef={"name": pool_name}, **spec)


def temporary_folder(test):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hearth-e2e-"))
    test.addCleanup(shutil.rmtree, folder)
    return folder
