"""A machine that runs short of memory: it says so, sends pods away in order, and takes none that asked for nothing."""
import json
import signal
import unittest

import pods_test
from hearth import wait_until
from pods_test import container, pod

TAINT = "node.kubernetes.io/memory-pressure"


def asking(memory, made):
    made["spec"]["containers"][0]["resources"] = {"requests": {"memory": memory}}
    return made


def evicted_at(pod):
    return next((it["lastTransitionTime"] for it in pod["status"]["conditions"] if it["type"] == "DisruptionTarget"), None)


class EvictionTest(pods_test.PodsTest):
    def tearDown(self):
        self.kubectl("delete", "sandboxes", "--all")
        super().tearDown()

    def restart(self, *options):
        self.engine.end(signal.SIGINT)
        self.engine.start("--warm", "4", "--node-name", "here", *options)

    def node(self):
        return json.loads(self.kubectl("get", "node", "here", "-o", "json"))

    def has_pressure(self, node):
        return next(it["status"] for it in node["status"]["conditions"] if it["type"] == "MemoryPressure") == "True"

    def test_a_shortage_comes_and_goes(self):
        hog = "exec python3 -c 'import time; x = bytearray(64 << 20); time.sleep(1000)'"
        self.create(asking("512Mi", pod("modest", "exec sleep 1000")), asking("1Mi", pod("greedy", hog)))
        box = asking("600Mi", pod("box", "exec sleep 1000"))
        self.create({"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "box"},
                     "spec": {"podTemplate": {"spec": box["spec"]}}})
        self.wait_ready("modest")
        self.wait_ready("box")
        self.wait_ready("greedy")
        wait_until(lambda: sum(box["usage"]["memory_bytes"] for box in self.engine.sandboxes()) > 60 << 20, 30, "the memory to be used")
        self.assertFalse(self.has_pressure(self.node()))
        self.assertNotIn("taints", self.node()["spec"])

        # There is never more left than there is.
        self.restart("--eviction-hard", "memory.available<100%")
        greedy, modest = self.wait_phase("greedy", "Failed"), self.wait_phase("modest", "Failed")
        self.assertLess(evicted_at(greedy), evicted_at(modest))
        self.assertEqual(greedy["status"]["reason"], "Evicted")
        self.assertRegex(greedy["status"]["message"],
                         r"^The node was low on resource: memory\. Threshold quantity: \w+, available: \w+\. "
                         r"Container c0 was using \d+Ki, request is 1Mi, has larger consumption of memory\. $")
        self.kubectl("wait", "--for=condition=Finished", "sandbox/box", "--timeout=100s")
        self.assertNotIn("Container", modest["status"]["message"])
        self.wait_for("greedy", lambda pod: "terminated" in container(pod)["state"])
        wait_until(lambda: not self.engine.sandboxes(), 30, "the end of what they used")

        def events():
            found = self.kubectl("get", "events", "--field-selector", "involvedObject.name=greedy,reason=Evicted", "-o", "json")
            return [it["type"] for it in json.loads(found)["items"]]
        wait_until(events, what="the event")
        self.assertEqual(events(), ["Warning"])
        self.assertIn("Evicted", self.kubectl("describe", "pod", "greedy"))

        self.assertTrue(self.has_pressure(self.node()))
        self.assertEqual([it["key"] for it in self.node()["spec"]["taints"]], [TAINT])
        self.create(pod("late", "exec sleep 1000"))
        waiting = self.wait_for("late", lambda pod: pod["status"].get("conditions"))
        [placed] = waiting["status"]["conditions"]
        self.assertEqual((placed["type"], placed["status"]), ("PodScheduled", "False"))
        self.assertIn(TAINT, placed["message"])

        self.restart()
        wait_until(lambda: not self.has_pressure(self.node()), 30, "the end of the shortage")
        self.wait_ready("late")
        self.assertNotIn("taints", self.node()["spec"])
        self.assertEqual(self.get("greedy")["status"]["reason"], "Evicted", "it stays for who reads it")

    def test_what_makes_no_sense_is_told_at_the_start(self):
        told = self.engine.hearth("up", "--eviction-hard", "memory.available<much")
        self.assertEqual((told.returncode, told.stderr), (2, "hearth: up: --eviction-hard: 'memory.available<much' names neither an "
                                                             "amount such as 100Mi nor a part such as 5%\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
