"""A `hearth apiserver` on a folder of its own, and plain HTTP to it."""
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from hearth import HEARTH, wait_until  # noqa: E402

TOKEN = "exchanges-admin"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
# Where the test's own server speaks TLS: whose certificate that is, is another test's concern.
TRUSTING = ssl._create_unverified_context()


class Server:
    def __init__(self):
        if not pathlib.Path(HEARTH).exists():
            raise unittest.SkipTest(f"needs {HEARTH}: build first")
        shared = "/dev/shm"
        self.folder = tempfile.TemporaryDirectory(prefix="hearth-kube-", dir=shared if os.path.isdir(shared) else None)
        self.state_dir = os.path.join(self.folder.name, "state")
        self.start()

    def start(self):
        self.output = open(os.path.join(self.folder.name, "output"), "w+")
        self.process = subprocess.Popen([HEARTH, "apiserver", "--state-dir", self.state_dir, "--kube-port", "0",
                                         "--token", TOKEN], stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        wait_until(lambda: self.said_port() or self.process.poll() is not None, what="ready")
        self.port = self.said_port()
        if not self.port:
            raise AssertionError(f"hearth apiserver ended: {self.said()}")

    def said(self):
        with open(self.output.name) as text:
            return text.read()

    def said_port(self):
        found = re.search(r"^ready kube=https://127\.0\.0\.1:(\d+) ", self.said(), re.M)
        return int(found[1]) if found else None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.output.close()

    def remove(self):
        self.stop()
        self.folder.cleanup()

    def connect(self, timeout=60):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=TRUSTING, timeout=timeout)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.bytes = response.read()

    @property
    def text(self):
        return self.bytes.decode()

    @property
    def json(self):
        return json.loads(self.bytes)

    @property
    def events(self):
        """What a watch told, as (type, object)."""
        return [(event["type"], event["object"]) for event in map(json.loads, self.text.splitlines())]


def send(server, method, path, body=None, type=None, token=TOKEN, accept=None, agent="tester/1.0", headers=(),
         timeout=60):
    connection = server.connect(timeout)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        connection.putheader("User-Agent", agent)
        if token:
            connection.putheader("Authorization", f"Bearer {token}")
        if accept:
            connection.putheader("Accept", accept)
        for name, value in headers:
            connection.putheader(name, value)
        if body is not None:
            data = body if isinstance(body, bytes) else (
                body if isinstance(body, str) else json.dumps(body)).encode()
            connection.putheader("Content-Type", type or "application/json")
            connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
        else:
            connection.endheaders()
        return Answer(connection.getresponse())
    finally:
        connection.close()


def sandbox(name=None, image="x", **metadata):
    meta = dict(metadata, **({"name": name} if name else {}))
    return {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": meta,
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": image}]}}}}


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": dict(metadata, name=name), "data": data or {}}


class ServedCase(unittest.TestCase):
    """One server for all classes of a file; a namespace for each."""
    server = None

    @classmethod
    def setUpClass(cls):
        if not ServedCase.server:
            ServedCase.server = Server()
            unittest.addModuleCleanup(ServedCase.server.remove)
        cls.ns = "t-" + cls.__name__.lower()
        made = send(cls.server, "POST", "/api/v1/namespaces",
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cls.ns}})
        assert made.status == 201, made.text
        cls.core = f"/api/v1/namespaces/{cls.ns}"
        cls.config_maps = f"{cls.core}/configmaps"
        cls.pods = f"{cls.core}/pods"
        cls.sandboxes = f"/apis/agents.x-k8s.io/v1beta1/namespaces/{cls.ns}/sandboxes"
        cls.pools = f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{cls.ns}/sandboxwarmpools"

    def ask(self, method, path, body=None, **options):
        return send(self.server, method, path, body, **options)

    def make(self, path, body, **options):
        answer = self.ask("POST", path, body, **options)
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json

    def got(self, answer, status=200):
        self.assertEqual(answer.status, status, answer.text)
        return answer.json

    def refused(self, answer, code, reason, message, causes=None, **details):
        """The Status with exactly this to say; `causes`: (reason, message, field) each."""
        status = answer.json
        self.assertEqual((answer.status, status.get("reason", ""), status.get("message")), (code, reason, message))
        self.assertEqual((status["kind"], status["apiVersion"], status["metadata"], status["status"], status["code"]),
                         ("Status", "v1", {}, "Failure", code))
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        said = status.get("details", {})
        if causes is not None:
            self.assertEqual([(one.get("reason"), one.get("message"), one.get("field"))
                              for one in said.get("causes", [])], causes)
        for name, value in details.items():
            self.assertEqual(said.get(name), value, status)

    def invalid(self, answer, options, field, reason, message):
        """What is wrong with the options of a request: they are an object of meta.k8s.io."""
        self.refused(answer, 422, "Invalid", f'{options}.meta.k8s.io "" is invalid: {field}: {message}',
                     [(reason, message, field)], group="meta.k8s.io", kind=options)

    def plain_not_found(self, answer):
        self.assertEqual((answer.status, answer.text), (404, "404 page not found\n"))
        self.assertEqual(answer.headers["Content-Type"], "text/plain; charset=utf-8")
