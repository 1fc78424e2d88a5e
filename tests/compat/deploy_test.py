"""What is in deploy/: a server takes it, and the controller can do its work with the rights that it gives, and with pods
that have a guest.

On a `hearth apiserver`, which has all of these kinds but Deployments; and on a real kube-apiserver, where
HEARTH_KUBE_APISERVER and HEARTH_ETCD name the programs.
"""
import json
import pathlib
import re
import shutil
import subprocess
import unittest

from api_server import HEARTH, ApiServer, wait_until
from kubectl import kubectl_of_machine
from real_cluster import Cluster, Controller, free_port

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
GUEST_IMAGE = "registry.example/hearth-guest:0.1.0"
ACCOUNT = "system:serviceaccount:hearth-system:hearth-controller"
RESTRICTED = """
apiVersion: v1
kind: Namespace
metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}
"""
SANDBOX = """
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: NAME, namespace: strict}
spec:
  service: true
  podTemplate:
    metadata: {annotations: {hearth.dev/surfaces: envd}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: main
        image: example.test/app:1
        command: [sleep, infinity]
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
POOL = """
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: template}
spec: {podTemplate: {spec: {containers: [{name: main, image: "example.test/app:1"}]}}}
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: pool}
spec: {replicas: 1, sandboxTemplateRef: {name: template}}
"""
CLAIM = """
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: mine}
spec: {warmPoolRef: {name: pool}, lifecycle: {shutdownPolicy: Delete}}
"""


def documents(name):
    """The objects in a file, each as text, by "Kind/name"."""
    found = {}
    for text in re.split(r"^---$", (DEPLOY / name).read_text(), flags=re.M):
        kind = re.search(r"^kind: (\w+)$", text, re.M)[1]
        found[f"{kind}/{re.search(r'^  name: (.+)$', text, re.M)[1]}"] = text
    return found


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kubectl = kubectl_of_machine()
        cls.server = ApiServer()
        cls.addClassCleanup(cls.server.end)

    def run_kubectl(self, *words, given=None):
        return subprocess.run([self.kubectl, "--kubeconfig", self.server.kubeconfig, *words], input=given,
                              capture_output=True, text=True, timeout=60)

    def test_a_server_takes_them(self):
        for name in ("controller.yaml", "claims-with-secrets.yaml", "e2b.yaml"):
            for what, text in documents(name).items():
                if what.startswith("Deployment/"):
                    continue
                # What is in a namespace needs it to be there.
                mode = [] if what.startswith("Namespace/") else ["--dry-run=server"]
                done = self.run_kubectl("apply", *mode, "-f", "-", given=text)
                self.assertEqual(done.returncode, 0, f"{what}: {done.stderr}")
                self.assertNotIn("Warning", done.stderr)

    def test_the_versions_are_the_programs(self):
        version = subprocess.run([HEARTH, "version"], capture_output=True, text=True, check=True).stdout
        number = re.search(r"\d+\.\d+\.\d+", version)[0]
        for path in DEPLOY.iterdir():
            for said in re.findall(r"registry\.example/\S+:(\S+)", path.read_text()):
                self.assertEqual(said, number, path.name)

    def test_the_image_has_the_libraries_of_the_program(self):
        if not shutil.which("dpkg") or not shutil.which("readelf"):
            self.skipTest("needs dpkg and readelf")
        needed = re.findall(r"NEEDED.*\[(.+)\]", subprocess.run(["readelf", "-d", HEARTH], capture_output=True, text=True).stdout)
        installed = (DEPLOY / "controller.Containerfile").read_text().split()
        for library in needed:
            owners = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True).stdout
            packages = {line.split(":")[0] for line in owners.splitlines()}
            # Every Debian has these.
            if packages & {"libc6", "libgcc-s1"}:
                continue
            self.assertTrue(packages & set(installed), f"{library}: {packages}")


class RealCluster(unittest.TestCase):
    """One controller, with the account of deploy/, on a real server."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.end)
        cls.cluster.apply_crds()
        # For good: server-side validation and all.
        cls.cluster.kubectl("apply", "-f", str(DEPLOY / "controller.yaml"))
        cls.cluster.kubectl("apply", "-f", "-", given=RESTRICTED)
        token = cls.cluster.kubectl("create", "token", "hearth-controller", "-n", "hearth-system").stdout.strip()
        account = str(cls.cluster.folder / "account.kubeconfig")
        cls.cluster.write_kubeconfig_of(account, token, "hearth-system")
        words = [line.strip()[2:] for line in documents("controller.yaml")["Deployment/hearth-controller"].splitlines()
                 if line.strip().startswith("- --")]
        assert f"--guest-image={GUEST_IMAGE}" in words
        cls.controller = Controller(cls.cluster, "deployed", *words, f"--webhook-port={free_port()}", kubeconfig=account)
        cls.controller.wait_until_it_acts()

    def tearDown(self):
        self.assertNotIn("forbidden", self.controller.said())

    def kubectl(self, *words, **kwargs):
        return self.cluster.kubectl(*words, **kwargs)

    def get(self, *words):
        return self.cluster.get(*words)

    def wait_for(self, *words):
        return wait_until(lambda: self.get(*words), 30, f"{words}")

    def wait_ready(self, *words):
        def is_ready():
            conditions = (self.get(*words) or {}).get("status", {}).get("conditions", [])
            return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
        wait_until(is_ready, 30, f"{words} ready")

    def test_a_pod_with_a_guest_is_as_restricted_as_it_was(self):
        self.kubectl("apply", "-f", "-", given=SANDBOX.replace("NAME", "boxed"))
        pod = self.wait_for("pod", "boxed", "-n", "strict")
        first = pod["spec"]["initContainers"][0]
        self.assertEqual((first["name"], first["image"]), ("hearth-guest", GUEST_IMAGE))
        self.assertEqual(pod["spec"]["containers"][0]["command"],
                         ["/hearth/bin/hearth-guest", "serve", "--surfaces=envd", "--", "sleep", "infinity"])
        # As it would be without the guest.
        self.assertEqual(pod["status"]["qosClass"], "Guaranteed")
        self.assertTrue(self.wait_for("service", "boxed", "-n", "strict"))
        self.assertTrue(self.wait_for("pvc", "data-boxed", "-n", "strict"))

    def test_suspending_needs_no_more_rights(self):
        self.kubectl("apply", "-f", "-", given=SANDBOX.replace("NAME", "paused"))
        self.wait_for("pod", "paused", "-n", "strict")
        mode = {"spec": {"operatingMode": "Suspended", "service": False}}
        self.kubectl("patch", "sandbox", "paused", "-n", "strict", "--type=merge", "-p", json.dumps(mode))
        wait_until(lambda: not self.get("pod", "paused", "-n", "strict"), 30, "the end of the pod")
        wait_until(lambda: not self.get("service", "paused", "-n", "strict"), 30, "the end of the Service")
        wait_until(lambda: "agent_sandbox_suspend_total{" in self.controller.metrics(), 30, "the number")

    def test_pools_and_claims_need_no_more_rights(self):
        self.kubectl("apply", "-f", "-", given=POOL)
        pods = wait_until(lambda: self.get("pods")["items"], 30, "a warm pod")
        # The image's own command is not known.
        self.assertEqual(pods[0]["spec"]["containers"][0]["command"], ["/hearth/bin/hearth-guest", "serve"])
        self.cluster.run_pod(pods[0]["metadata"]["name"])
        wait_until(lambda: self.get("sandboxwarmpool", "pool").get("status", {}).get("readyReplicas") == 1, 30, "a full pool")
        self.assertTrue(self.wait_for("networkpolicy", "template-network-policy"))
        self.kubectl("apply", "-f", "-", given=CLAIM)
        self.wait_ready("sandboxclaim", "mine")
        wait_until(lambda: self.kubectl("get", "events.events.k8s.io", "-o", "name").stdout, 30, "an event")
        past = {"spec": {"lifecycle": {"shutdownTime": "2001-01-01T00:00:00Z"}}}
        self.kubectl("patch", "sandboxclaim", "mine", "--type=merge", "-p", json.dumps(past))
        wait_until(lambda: not self.get("sandboxclaim", "mine"), 30, "the end of the claim")
        template = {"spec": {"networkPolicyManagement": "Unmanaged"}}
        self.kubectl("patch", "sandboxtemplates.extensions.agents.x-k8s.io", "template", "--type=merge", "-p", json.dumps(template))
        wait_until(lambda: not self.get("networkpolicy", "template-network-policy"), 30, "the end of the policy")

    def test_the_account_may_no_more_than_that(self):
        for words in (("get", "secrets"), ("create", "pods", "--subresource=exec"), ("delete", "namespaces"),
                      ("create", "deployments.apps"), ("update", "clusterroles.rbac.authorization.k8s.io"), ("delete", "sandboxtemplates.extensions.agents.x-k8s.io")):
            done = self.kubectl("auth", "can-i", *words, "--as", ACCOUNT, "-n", "default", check=False)
            self.assertEqual(done.stdout.strip(), "no", words)


if __name__ == "__main__":
    unittest.main()
