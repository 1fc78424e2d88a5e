"""The Kubernetes half of agent-sandbox's Python SDK, unchanged, against `hearth apiserver`.

A few lines of a controller stand in for ours: they bind each claim to a sandbox and say that it is ready.
"""
import threading
import unittest

from client_venv import run_with

SDK = ["k8s-agent-sandbox==1.0.8"]
if __name__ == "__main__":
    run_with(SDK)

from api_server import ApiServer, wait_until  # noqa: E402
from k8s_agent_sandbox import SandboxClient  # noqa: E402
from k8s_agent_sandbox.exceptions import SandboxMetadataError, SandboxNotFoundError, SandboxWarmPoolNotFoundError  # noqa: E402
from k8s_agent_sandbox.k8s_helper import K8sHelper  # noqa: E402
from k8s_agent_sandbox.models import SandboxDirectConnectionConfig  # noqa: E402
from kubernetes import client, config, watch  # noqa: E402

CLAIMS = dict(group="extensions.agents.x-k8s.io", version="v1beta1", namespace="default", plural="sandboxclaims")
SANDBOXES = dict(group="agents.x-k8s.io", version="v1beta1", namespace="default", plural="sandboxes")
POOL = "pool"


def condition(status, reason, message=""):
    return [{"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]


class Controller:
    """Binds claims. One for POOL gets a sandbox, one for another pool is told that there is none."""

    def __init__(self):
        self.api = client.CustomObjectsApi()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.is_set():
            for event in watch.Watch().stream(self.api.list_namespaced_custom_object, **CLAIMS, timeout_seconds=1):
                if event["type"] == "ADDED" and "status" not in event["object"] and not self.ended.is_set():
                    self.bind(event["object"])

    def bind(self, claim):
        name = claim["metadata"]["name"]
        if name.startswith("unbound"):
            return
        if claim["spec"]["warmPoolRef"]["name"] != POOL:
            self.say(CLAIMS, name, {"conditions": condition("False", "WarmPoolNotFound", "no such pool")})
            return
        owner = {"apiVersion": claim["apiVersion"], "kind": claim["kind"], "name": name, "uid": claim["metadata"]["uid"],
                 "controller": True, "blockOwnerDeletion": True}
        box = f"{POOL}-{name}"
        self.api.create_namespaced_custom_object(**SANDBOXES, body={
            "apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox",
            "metadata": {"name": box, "ownerReferences": [owner], "annotations": {"agents.x-k8s.io/pod-name": f"{box}-pod"}},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "example.test/app:1"}]}}}})
        self.say(SANDBOXES, box, {"podIPs": ["10.1.2.3"], "serviceFQDN": f"{box}.default.svc.cluster.local", "nodeName": "n1",
                                  "selector": "agents.x-k8s.io/sandbox-name-hash=0badcafe", "conditions": condition("True", "Ready", "up")})
        self.say(CLAIMS, name, {"sandbox": {"name": box, "podIPs": ["10.1.2.3"]}, "conditions": condition("True", "Ready")})

    def say(self, kind, name, status):
        self.api.patch_namespaced_custom_object_status(**kind, name=name, body={"status": status})

    def end(self):
        self.ended.set()
        self.thread.join(10)


class Sdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ApiServer()
        cls.addClassCleanup(cls.server.end)
        # What $KUBECONFIG said when the client was imported.
        config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION = cls.server.kubeconfig
        config.load_kube_config()
        cls.controller = Controller()
        cls.addClassCleanup(cls.controller.end)
        cls.helper = K8sHelper()
        cls.client = SandboxClient(connection_config=SandboxDirectConnectionConfig(api_url="http://127.0.0.1:9"))

    def test_life_of_a_sandbox(self):
        box = self.client.create_sandbox(POOL, labels={"team": "a"}, shutdown_after_seconds=600, sandbox_ready_timeout=60,
                                         pod_labels={"x": "y"}, env={"A": "1"})
        claim = self.helper.get_sandbox_claim(box.claim_name, "default")
        self.assertEqual(claim["metadata"]["labels"]["team"], "a")
        self.assertEqual(claim["spec"]["lifecycle"]["shutdownPolicy"], "Delete")
        self.assertEqual(claim["spec"]["additionalPodMetadata"]["labels"], {"x": "y"})
        self.assertEqual(box.get_pod_name(), f"{POOL}-{box.claim_name}-pod")
        self.assertEqual(box.get_pod_ip(), "10.1.2.3")
        self.assertEqual(box.get_sandbox_name_hash(), "0badcafe")
        self.assertEqual(box.status(), ("SandboxReady", "up"))
        self.assertIn(box.claim_name, self.client.list_all_sandboxes(label_selector="team=a"))
        self.assertNotIn(box.claim_name, self.client.list_all_sandboxes(label_selector="team=b"))
        again = self.client.get_sandbox(box.claim_name)
        self.assertEqual(again.sandbox_id, box.sandbox_id)
        name = box.claim_name
        box.terminate()
        self.assertIsNone(self.helper.get_sandbox_claim(name, "default"))
        wait_until(lambda: self.helper.get_sandbox(f"{POOL}-{name}", "default") is None, what="garbage collection")
        self.helper.delete_sandbox_claim(name, "default")  # again: no error

    def test_named_claims_are_adopted(self):
        first = self.client.create_sandbox(POOL, claim_name="mine", sandbox_ready_timeout=60)
        second = self.client.create_sandbox(POOL, claim_name="mine", adopt_existing=True, sandbox_ready_timeout=60)
        self.assertEqual(first.sandbox_id, second.sandbox_id)
        with self.assertRaises(client.ApiException) as caught:
            self.helper.delete_sandbox_claim("mine", "default", expected_uid="11111111-2222-3333-4444-555555555555")
        self.assertEqual(caught.exception.status, 409)
        uid = self.helper.get_sandbox_claim("mine", "default")["metadata"]["uid"]
        self.helper.delete_sandbox_claim("mine", "default", expected_uid=uid)
        with self.assertRaises(SandboxNotFoundError):
            self.client.get_sandbox("mine", resolve_timeout=1)

    def test_no_such_pool(self):
        with self.assertRaises(SandboxWarmPoolNotFoundError):
            self.client.create_sandbox("other", sandbox_ready_timeout=60)

    def test_waits_end(self):
        made = self.helper.create_sandbox_claim("unbound-1", POOL, "default")
        with self.assertRaises(TimeoutError):
            self.helper.wait_for_claim_ready("unbound-1", "default", 1, made["metadata"]["resourceVersion"])
        threading.Timer(3, self.helper.delete_sandbox_claim, ["unbound-1", "default"]).start()
        with self.assertRaises(SandboxMetadataError):
            self.helper.resolve_sandbox_name("unbound-1", "default", 60)

    def test_patches(self):
        self.helper.create_sandbox_claim("unbound-2", POOL, "default")
        patched = self.helper.patch_sandbox_claim("unbound-2", "default", {"spec": {"lifecycle": {"shutdownTime": "2030-01-01T00:00:00Z"}}})
        self.assertEqual((patched["spec"]["lifecycle"]["shutdownTime"], patched["metadata"]["generation"]), ("2030-01-01T00:00:00Z", 2))
        with self.assertRaises(client.ApiException) as caught:
            self.helper.patch_sandbox_claim("unbound-2", "default", {"spec": {"lifecycle": {"shutdownPolicy": "Nope"}}})
        self.assertEqual(caught.exception.status, 422)

    def test_a_sandbox_alone(self):
        self.controller.api.create_namespaced_custom_object(**SANDBOXES, body={
            "apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "alone"},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "example.test/app:1"}]}}}})
        ready = {"podIPs": ["10.9.9.9"], "conditions": condition("True", "Ready")}
        threading.Timer(0.3, self.controller.say, [SANDBOXES, "alone", ready]).start()
        self.assertEqual(self.helper.wait_for_sandbox_ready("alone", "default", 60), "10.9.9.9")


if __name__ == "__main__":
    unittest.main()
