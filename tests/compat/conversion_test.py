"""v1alpha1 on a real kube-apiserver, which asks the webhook of `hearth controller` for it: with the account, the rights and the
arguments of deploy/, and the CRDs that `hearth crds --conversion-service` prints.

Needs HEARTH_KUBE_APISERVER and HEARTH_ETCD (programs; CONTRIBUTING.md says where from).
"""
import base64
import json
import subprocess
import unittest

from api_server import HEARTH, wait_until
from deploy_test import DEPLOY, documents
from real_cluster import Cluster, Controller, free_port

SYSTEM, SERVICE, SECRET = "hearth-system", "hearth-webhook", "agent-sandbox-webhook-certs"
CRDS = ("sandboxes.agents.x-k8s.io", "sandboxclaims.extensions.agents.x-k8s.io",
        "sandboxtemplates.extensions.agents.x-k8s.io", "sandboxwarmpools.extensions.agents.x-k8s.io")
OLD, NEW = "sandboxes.v1alpha1.agents.x-k8s.io", "sandboxes.v1beta1.agents.x-k8s.io"
# As the README of agent-sandbox has it.
SANDBOX = """
apiVersion: agents.x-k8s.io/v1alpha1
kind: Sandbox
metadata: {name: NAME, labels: {from: example}}
spec:
  podTemplate:
    spec:
      containers: [{name: my-container, image: "example.test/app:1"}]
"""
TEMPLATE = """
apiVersion: extensions.agents.x-k8s.io/v1alpha1
kind: SandboxTemplate
metadata: {name: template}
spec: {podTemplate: {spec: {containers: [{name: main, image: "example.test/app:1"}]}}}
"""
EXTENSIONS = TEMPLATE + """---
apiVersion: extensions.agents.x-k8s.io/v1alpha1
kind: SandboxWarmPool
metadata: {name: pool}
spec: {replicas: 0, sandboxTemplateRef: {name: template}}
---
apiVersion: extensions.agents.x-k8s.io/v1alpha1
kind: SandboxClaim
metadata: {name: claim}
spec: {sandboxTemplateRef: {name: template}, warmpool: pool}
"""


class Conversion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.end)
        cls.cluster.kubectl("apply", "-f", str(DEPLOY / "controller.yaml"))
        cls.port = free_port()
        cls.point_at_this_machine()
        token = cls.cluster.kubectl("create", "token", "hearth-controller", "-n", SYSTEM).stdout.strip()
        cls.account = str(cls.cluster.folder / "account.kubeconfig")
        cls.cluster.write_kubeconfig_of(cls.account, token, SYSTEM)
        cls.controller = cls.start("first", cls.port)
        cls.controller.wait_until_it_acts()
        cls.wait_until_it_converts()

    @classmethod
    def point_at_this_machine(cls):
        """Nobody leads from the Service's address to its pods here: the server connects where the Service says."""
        cls.cluster.kubectl("delete", "service", SERVICE, "-n", SYSTEM)
        cls.cluster.kubectl("create", "service", "externalname", SERVICE, "-n", SYSTEM, "--external-name=localhost")
        cls.cluster.apply_crds("--conversion-service", f"{SYSTEM}/{SERVICE}")
        port = {"spec": {"conversion": {"webhook": {"clientConfig": {"service": {"port": cls.port}}}}}}
        for crd in CRDS:
            cls.cluster.kubectl("patch", "crd", crd, "--type=merge", "-p", json.dumps(port))

    @classmethod
    def start(cls, name, port, *words):
        return Controller(cls.cluster, name, "--extensions", "--enable-webhook", f"--webhook-service-name={SERVICE}",
                          f"--webhook-port={port}", *words, kubeconfig=cls.account)

    @classmethod
    def wait_until_it_converts(cls):
        """The server takes a moment to notice that the CRDs have changed."""
        text = SANDBOX.replace("NAME", "probe")
        wait_until(lambda: cls.cluster.kubectl("apply", "-f", "-", given=text, check=False).returncode == 0, 60, "a conversion")

    def tearDown(self):
        self.assertNotIn("forbidden", self.controller.said())

    def kubectl(self, *words, **kwargs):
        return self.cluster.kubectl(*words, **kwargs)

    def get(self, *words):
        return self.cluster.get(*words)

    def make(self, name):
        self.kubectl("apply", "-f", "-", given=SANDBOX.replace("NAME", name))

    def test_the_example_is_taken_and_read_in_both_versions(self):
        self.make("example")
        new = self.get(NEW, "example")
        self.assertEqual(new["spec"]["operatingMode"], "Running")
        self.assertNotIn("replicas", new["spec"])
        old = self.get(OLD, "example")
        self.assertEqual(old["apiVersion"], "agents.x-k8s.io/v1alpha1")
        self.assertNotIn("operatingMode", old["spec"])
        self.assertEqual(old["spec"]["podTemplate"], new["spec"]["podTemplate"])
        for each in ("name", "namespace", "uid", "labels", "creationTimestamp", "generation"):
            self.assertEqual(old["metadata"][each], new["metadata"][each])
        # The controllers, too, work on it.
        pod = wait_until(lambda: self.get("pod", "example"), 30, "its pod")
        self.assertEqual(pod["metadata"]["ownerReferences"][0]["kind"], "Sandbox")
        self.cluster.run_pod("example")
        wait_until(lambda: self.conditions("example").get("Ready") == "True", 30, "a ready Sandbox")

    def conditions(self, name):
        found = self.get(OLD, name).get("status", {}).get("conditions", [])
        return {each["type"]: each["status"] for each in found}

    def test_replicas_are_a_mode_and_a_mode_is_replicas(self):
        self.make("both")
        self.kubectl("patch", OLD, "both", "--type=merge", "-p", '{"spec": {"replicas": 0}}')
        self.assertEqual(self.get(NEW, "both")["spec"]["operatingMode"], "Suspended")
        self.kubectl("patch", NEW, "both", "--type=merge", "-p", '{"spec": {"operatingMode": "Running"}}')
        self.assertEqual(self.get(OLD, "both")["spec"]["replicas"], 1)
        self.kubectl("scale", OLD, "both", "--replicas=0")
        self.assertEqual(self.get(NEW, "both")["spec"]["operatingMode"], "Suspended")

    def test_applying_again_changes_nothing(self):
        self.make("steady")
        wait_until(lambda: self.conditions("steady"), 30, "a status")
        before = self.get(NEW, "steady")["metadata"]["generation"]
        done = self.kubectl("apply", "-f", "-", given=SANDBOX.replace("NAME", "steady"))
        self.assertIn("unchanged", done.stdout)
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=SANDBOX.replace("NAME", "steady"))
        self.assertEqual(self.get(NEW, "steady")["metadata"]["generation"], before)

    def test_lists_and_watches_speak_the_old_version(self):
        for name in ("list-1", "list-2"):
            self.make(name)
        found = self.get(OLD)["items"]
        self.assertEqual({each["apiVersion"] for each in found}, {"agents.x-k8s.io/v1alpha1"})
        self.assertLessEqual({"list-1", "list-2"}, {each["metadata"]["name"] for each in found})
        self.kubectl("wait", OLD, "list-1", "--for=jsonpath={.metadata.name}=list-1", "--timeout=20s")

    def test_the_other_kinds(self):
        self.kubectl("apply", "-f", "-", given=EXTENSIONS)
        group = "extensions.agents.x-k8s.io"
        self.assertEqual(self.get(f"sandboxclaims.v1beta1.{group}", "claim")["spec"]["warmPoolRef"], {"name": "pool"})
        self.assertEqual(self.get(f"sandboxclaims.v1alpha1.{group}", "claim")["spec"]["warmpool"], "pool")
        for plural, name in (("sandboxtemplates", "template"), ("sandboxwarmpools", "pool")):
            old, new = (self.get(f"{plural}.{version}.{group}", name) for version in ("v1alpha1", "v1beta1"))
            self.assertEqual(old["metadata"]["uid"], new["metadata"]["uid"])

    def test_an_object_that_cannot_be_converted_says_so(self):
        mark = "metadata: {name: odd, annotations: {api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy: Often}}"
        done = self.kubectl("apply", "-f", "-", given=TEMPLATE.replace("metadata: {name: template}", mark), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("SandboxTemplate 'default/odd': invalid VolumeClaimTemplatesPolicy annotation value: \"Often\"", done.stderr)
        self.assertIsNone(self.get("sandboxtemplate", "odd"))

    def test_an_object_with_a_state_that_is_none_keeps_nobody_from_a_list(self):
        self.make("broken")
        self.kubectl("annotate", NEW, "broken", "api.agents.x-k8s.io/v1alpha1-sandbox-state={", "--overwrite")
        self.assertEqual(self.get(OLD, "broken")["spec"]["replicas"], 1)
        self.assertIn("broken", [each["metadata"]["name"] for each in self.get(OLD)["items"]])

    def test_what_it_needs_is_in_its_place(self):
        authority = self.get("secret", SECRET, "-n", SYSTEM)["data"]["ca.crt"]
        for crd in CRDS:
            webhook = self.get("crd", crd)["spec"]["conversion"]["webhook"]
            self.assertEqual(webhook["clientConfig"]["caBundle"], authority)
            self.assertEqual(webhook["conversionReviewVersions"], ["v1"])
        self.assertIn("BEGIN CERTIFICATE", base64.b64decode(authority).decode())

    def test_applying_everything_again_keeps_the_trust(self):
        crds = subprocess.run([HEARTH, "crds", "--conversion-service", f"{SYSTEM}/{SERVICE}"], capture_output=True,
                              text=True, check=True).stdout
        before = self.get("crd", CRDS[0])["spec"]["conversion"]
        self.kubectl("apply", "-f", "-", given=crds)
        self.assertEqual(self.get("crd", CRDS[0])["spec"]["conversion"], before)
        # The Secret in deploy/ is empty, and does not empty this one.
        kept = self.get("secret", SECRET, "-n", SYSTEM)["data"]
        self.kubectl("apply", "-f", "-", given=documents("controller.yaml")[f"Secret/{SECRET}"])
        self.assertEqual(self.get("secret", SECRET, "-n", SYSTEM)["data"], kept)

    def test_a_replica_shares_the_identity_and_an_unasked_one_serves_none(self):
        before = self.get("secret", SECRET, "-n", SYSTEM)
        second = self.start("second", free_port())
        wait_until(lambda: second.health() == "ok", 60, "the second")
        self.assertEqual(second.end()[0], 0)
        self.assertEqual(self.get("secret", SECRET, "-n", SYSTEM), before)
        # The CRDs name another Service than the one that it would look for.
        unasked = Controller(self.cluster, "unasked", kubeconfig=self.account)
        wait_until(lambda: unasked.health() == "ok", 60, "the third")
        self.assertNotIn("converting versions", unasked.said())
        self.assertEqual(unasked.end()[0], 0)
        # And here the one: nobody said that it shall convert.
        asked = Controller(self.cluster, "asked", f"--webhook-service-name={SERVICE}", f"--webhook-port={free_port()}",
                           kubeconfig=self.account)
        wait_until(lambda: asked.health() == "ok", 60, "the fourth")
        self.assertIn("converting versions", asked.said())
        self.assertEqual(asked.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
