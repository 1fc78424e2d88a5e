"""`hearth controller` on a real kube-apiserver: our CRDs applied by kubectl, our client, caches, lease and controllers.

Needs HEARTH_KUBE_APISERVER and HEARTH_ETCD (programs; CONTRIBUTING.md says where from); HEARTH_KUBE_CONTROLLER_MANAGER
adds what only garbage collection shows.
"""
import os
import unittest

from api_server import wait_until
from real_cluster import Cluster, Controller

SANDBOX = """
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: NAME}
spec:
  service: true
  podTemplate:
    spec:
      containers: [{name: main, image: "example.test/app:1", ports: [{containerPort: 80}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
POOL = """
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: template}
spec:
  podTemplate:
    spec:
      containers: [{name: main, image: "example.test/app:1"}]
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: pool}
spec: {replicas: 2, sandboxTemplateRef: {name: template}}
"""
CLAIM = """
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: NAME}
spec: {warmPoolRef: {name: pool}}
"""
LEASE = "a3317529.agent-sandbox.x-k8s.io"


def is_ready(thing):
    conditions = (thing or {}).get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


class RealCluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.end)
        cls.cluster.apply_crds()
        cls.controller = Controller(cls.cluster, "first")
        cls.controller.wait_until_it_acts()

    def apply(self, text):
        self.cluster.kubectl("apply", "-f", "-", given=text)

    def get(self, *words):
        return self.cluster.get(*words)

    def holder(self):
        return self.get("lease", LEASE)["spec"].get("holderIdentity", "")

    def wait_for(self, *words, seconds=30):
        return wait_until(lambda: self.get(*words), seconds, f"{words}")

    def test_a_sandbox_becomes_ready_with_its_pod(self):
        self.apply(SANDBOX.replace("NAME", "alone"))
        pod = self.wait_for("pod", "alone")
        self.assertEqual(pod["metadata"]["ownerReferences"][0]["kind"], "Sandbox")
        self.assertFalse(is_ready(self.get("sandbox", "alone")))
        self.cluster.run_pod("alone")
        sandbox = wait_until(lambda: (s := self.get("sandbox", "alone")) and is_ready(s) and s, 30, "a ready Sandbox")
        self.assertEqual(sandbox["status"]["podIPs"], ["10.1.2.3"])
        self.assertEqual(sandbox["status"]["serviceFQDN"], "alone.default.svc.cluster.local")
        self.assertEqual(self.get("service", "alone")["spec"]["clusterIP"], "None")
        self.assertTrue(self.get("pvc", "data-alone"))

    def test_a_claim_gets_a_warm_sandbox_and_the_pool_another(self):
        self.apply(POOL)
        members = wait_until(lambda: self.pods(2), 30, "two warm pods")
        for member in members:
            self.cluster.run_pod(member)
        wait_until(lambda: self.get("sandboxwarmpool", "pool")["status"].get("readyReplicas") == 2, 30, "a full pool")
        self.assertTrue(self.get("networkpolicy", "template-network-policy"))
        self.apply(CLAIM.replace("NAME", "mine"))
        claim = wait_until(lambda: (c := self.get("sandboxclaim", "mine")) and is_ready(c) and c, 30, "a ready claim")
        name = claim["status"]["sandbox"]["name"]
        self.assertIn(name, members)
        self.assertEqual(self.get("sandbox", name)["metadata"]["ownerReferences"][0]["kind"], "SandboxClaim")
        wait_until(lambda: self.pods(3), 30, "another warm pod")
        wait_until(lambda: "SandboxAdopted" in self.cluster.kubectl("get", "events.events.k8s.io").stdout, 30, "the event")

    def pods(self, count):
        names = [pod["metadata"]["name"] for pod in self.get("pods")["items"]]
        found = [name for name in names if name.startswith("pool-")]
        return found if len(found) == count else None

    def test_numbers_and_health_are_served(self):
        self.assertEqual(self.controller.health("/healthz"), "ok")
        self.assertEqual(self.controller.health("/readyz"), "ok")
        numbers = self.controller.metrics()
        for name in ("controller_runtime_reconcile_total{controller=\"sandbox\",result=\"success\"}",
                     "workqueue_depth{controller=\"sandboxclaim\"", "agent_sandbox_build_info",
                     f"leader_election_master_status{{name=\"{LEASE}\"}} 1"):
            self.assertIn(name, numbers)

    def test_zz_who_ends_leaves_the_lease_to_another(self):
        first = self.holder()
        self.assertTrue(first)
        second = Controller(self.cluster, "second")
        wait_until(lambda: second.health() == "ok", 30, "the second")
        self.assertNotIn("controllers started", second.said())
        code, took = self.controller.end()
        self.assertEqual(code, 0)
        self.assertLess(took, 10)
        second.wait_until_it_acts()
        self.assertNotIn(self.holder(), ("", first))
        self.apply(SANDBOX.replace("NAME", "successor"))
        self.wait_for("pod", "successor")
        if os.environ.get("HEARTH_KUBE_CONTROLLER_MANAGER"):
            self.cluster.kubectl("delete", "sandbox", "successor")
            # Nobody ends a pod here: what garbage collection began with shows.
            wait_until(lambda: not self.get("service", "successor"), 90, "the end of its Service")
        self.assertEqual(second.end()[0], 0)
        self.assertEqual(self.holder(), "")

    def test_zzz_the_server_may_go_and_come_back(self):
        # Without a lease: a slow machine may take longer to bring the server back than a lease lasts.
        alone = Controller(self.cluster, "alone", "--leader-elect=false")
        alone.wait_until_it_acts()
        self.cluster.restart_api()
        self.apply(SANDBOX.replace("NAME", "after"))
        self.wait_for("pod", "after", seconds=60)
        self.assertEqual(alone.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
