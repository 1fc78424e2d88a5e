"""Pods and Sandboxes that the node does not take: who is told, in which words, and that they come in when they can."""
import unittest
import uuid

from cluster import ClusterTest, condition_of, is_ready, pod_template, pool, sandbox, template
from hearth import wait_until

UNPLACED = "0/1 nodes are available: 1 {}."
MUCH_CPU = {"container": {"resources": {"requests": {"cpu": "1000"}}}}


class PlacementTest(ClusterTest):
    engine_options = ("--warm", "16", "--node-name", "here")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not cls.cluster.engine:
            raise unittest.SkipTest("needs a node that the test may taint")

    def change_node(self, **spec):
        """Its spec; None takes a field away. Returns when whoever places pods has heard of it, which a pod is sent to find out."""
        self.ask("PATCH", "/api/v1/nodes/here", {"spec": spec}, "application/merge-patch+json")
        wanted = "False" if any(spec.values()) else "True"

        def is_known():
            name = f"canary-{uuid.uuid4().hex[:8]}"
            self.create_pod(name)
            pod = self.wait("Pod", name, lambda it: condition_of(it, "PodScheduled"), "judged")
            self.delete("Pod", name)
            return condition_of(pod, "PodScheduled")["status"] == wanted
        wait_until(is_known, what=f"the node to be {spec}")

    def create_pod(self, name, **spec):
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **pod_template(**spec)})

    def expect_unplaced(self, name, why):
        """What people see of a pod that has no place: its condition, an event, kubectl."""
        pod = self.wait("Pod", name, lambda it: condition_of(it, "PodScheduled"), "judged")
        self.assertNotIn("nodeName", pod["spec"])
        self.assertEqual(pod["status"]["phase"], "Pending")
        self.expect_condition(pod, "PodScheduled", "False", "Unschedulable", UNPLACED.format(why))

        def events():
            return [it for it in self.list("Event") if it["regarding"]["name"] == name and it["regarding"]["kind"] == "Pod"]
        wait_until(events, what=f"an event about {name}")
        [event] = events()
        self.assertEqual((event["type"], event["reason"], event["note"]), ("Warning", "FailedScheduling", UNPLACED.format(why)))
        self.assertRegex(self.kubectl("get", "pod", name), r"\n" + name + r" +0/1 +Pending +0 ")

    def wait_running(self, name):
        self.wait("Pod", name, lambda it: it["status"].get("phase") == "Running" and it["spec"].get("nodeName") == "here", "running")

    def test_what_pods_ask_for(self):
        self.create_pod("much", **MUCH_CPU)
        self.create_pod("large", container={"resources": {"limits": {"memory": "900Ti"}}})
        self.create_pod("elsewhere", nodeSelector={"disk": "nvme"})
        terms = [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["linux"]}]}]
        self.create_pod("unlike", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
        self.expect_unplaced("much", "Insufficient cpu")
        self.expect_unplaced("large", "Insufficient memory")
        for name in ("elsewhere", "unlike"):
            self.expect_unplaced(name, "node(s) didn't match Pod's node affinity/selector")
        # The node becomes what one of them asked for.
        self.ask("PATCH", "/api/v1/nodes/here", {"metadata": {"labels": {"disk": "nvme"}}}, "application/merge-patch+json")
        self.wait_running("elsewhere")

    def test_a_node_that_is_closed(self):
        self.change_node(unschedulable=True)
        self.addCleanup(self.change_node, unschedulable=None)
        self.create_pod("late")
        self.create(sandbox("late-box"))
        self.expect_unplaced("late", "node(s) were unschedulable")
        self.expect_unplaced("late-box", "node(s) were unschedulable")
        self.change_node(unschedulable=None)
        self.wait_running("late")
        self.wait_ready("Sandbox", "late-box")

    def test_taints(self):
        taint = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
        self.change_node(taints=[taint])
        self.addCleanup(self.change_node, taints=None)
        self.create_pod("plain")
        self.create_pod("fit", tolerations=[{"key": "gpu", "operator": "Exists"}])
        self.expect_unplaced("plain", "node(s) had untolerated taint {gpu: a100}")
        self.wait_running("fit")
        self.change_node(taints=None)
        self.wait_running("plain")

    def test_a_pod_that_waits_for_its_gates_or_another_scheduler(self):
        self.create(sandbox("gated", pod=pod_template(schedulingGates=[{"name": "example.com/wait"}])),
                    sandbox("theirs", pod=pod_template(schedulerName="theirs")), sandbox("ours"))
        self.wait_ready("Sandbox", "ours")
        for name in ("gated", "theirs"):
            self.assertNotIn("nodeName", self.wait("Pod", name, lambda it: True)["spec"])
        self.patch("Pod", "gated", {"spec": {"schedulingGates": None}})
        self.wait_ready("Sandbox", "gated")

    def test_a_sandbox_tells_why_its_pod_has_no_place(self):
        self.create(sandbox("giant", pod=pod_template(**MUCH_CPU)))
        self.expect_unplaced("giant", "Insufficient cpu")
        box = self.wait("Sandbox", "giant", lambda it: (condition_of(it, "PodScheduled") or {}).get("status") == "False", "unplaced")
        self.expect_condition(box, "PodScheduled", "False", "Unschedulable", UNPLACED.format("Insufficient cpu"))
        self.expect_condition(box, "Ready", "False", "DependenciesNotReady", "Pod exists with phase: Pending")
        self.assertNotIn("nodeName", box["status"])
        self.assertNotIn("podIPs", box["status"])

    def test_what_is_there_is_given_once(self):
        # Half of the node and a bit, each: the second waits for the end of the first.
        cpus = int(self.ask("GET", "/api/v1/nodes/here")["status"]["allocatable"]["cpu"])
        half = pod_template(container={"resources": {"requests": {"cpu": f"{cpus * 500 + 1}m"}}})
        self.create(template("halves", pod=half), pool("halves", "halves", 2))
        self.wait("SandboxWarmPool", "halves", lambda it: it.get("status", {}).get("readyReplicas") == 1, "half full")

        def members():
            return self.list("Sandbox", "agents.x-k8s.io/warm-pool-sandbox")
        wait_until(lambda: len(members()) == 2 and any(not is_ready(it) for it in members()), what="one that waits")
        waiting = next(it["metadata"]["name"] for it in members() if not is_ready(it))
        self.expect_unplaced(waiting, "Insufficient cpu")
        self.wait("SandboxWarmPool", "halves", lambda it: (it["status"].get("replicas"), it["status"].get("readyReplicas")) == (2, 1))
        ready = next(it["metadata"]["name"] for it in members() if is_ready(it))
        self.patch("SandboxWarmPool", "halves", {"spec": {"replicas": 1}})
        self.wait_gone("Sandbox", waiting)  # who is not ready goes first
        self.assertTrue(is_ready(self.get("Sandbox", ready)))
        self.create_pod("next", container={"resources": {"requests": {"cpu": f"{cpus * 500 + 1}m"}}})
        self.expect_unplaced("next", "Insufficient cpu")
        self.delete("SandboxWarmPool", "halves")
        self.wait_running("next")


if __name__ == "__main__":
    unittest.main()
