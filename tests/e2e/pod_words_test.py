"""What people read about a pod that does not do as it should: the words and numbers of a kubelet, through kubectl."""
import json
import time
import unittest

import pods_test
from hearth import wait_until
from pods_test import container, is_ready, pod


def why_waiting(pod):
    return next((it["state"].get("waiting", {}).get("reason") for it in pod["status"].get("containerStatuses", [])), None)


class WordsTest(pods_test.PodsTest):
    def events(self, name):
        text = self.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json")
        return [(it["type"], it["reason"], it["message"]) for it in json.loads(text)["items"]]

    def wait_event(self, name, kind, reason, message):
        wait_until(lambda: (kind, reason, message) in self.events(name), 30, f"{reason} '{message}': {self.events(name)}")

    def test_a_pod_that_is_well_has_no_complaints(self):
        waits = ["sh", "-c", "until test -e /tmp/go; do sleep 0.05; done"]
        self.create(pod("well", "exec sleep 1000", initContainers=[{"name": "first", "image": "host", "command": waits}]))
        self.wait_for("well", lambda pod: pod["status"].get("containerStatuses") and not is_ready(pod))
        wait_until(lambda: self.kubectl("exec", "well", "-c", "first", "--", "sh", "-c", "touch /tmp/go; echo gone", check=False) == "gone\n")
        for condition in self.wait_ready("well")["status"]["conditions"]:
            self.assertEqual((condition["status"], condition.get("reason"), condition.get("message")), ("True", None, None), condition)
        self.wait_event("well", "Normal", "Scheduled", "Successfully assigned default/well to here")

    def test_one_that_ends_again_and_again(self):
        self.create(pod("loop", "exit 3"))
        made = self.wait_for("loop", lambda pod: why_waiting(pod) == "CrashLoopBackOff")
        who = f"loop_default({made['metadata']['uid']})"
        self.assertRegex(container(made)["state"]["waiting"]["message"], r"^back-off \d+s restarting failed container=c0 pod=loop_default")
        self.wait_event("loop", "Warning", "BackOff", f"Back-off restarting failed container c0 in pod {who}")

    def test_an_image_that_is_nowhere(self):
        name = "localhost:1/nothing:1"
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nowhere"}, "spec": {"containers": [{"name": "c", "image": name}]}})
        self.wait_for("nowhere", lambda pod: why_waiting(pod) == "ImagePullBackOff", 60)
        for kind, reason, message in (("Normal", "Pulling", f'Pulling image "{name}"'),
                                      ("Warning", "Failed", f'Failed to pull image "{name}": connect to localhost:1: Connection refused'),
                                      ("Warning", "Failed", "Error: ErrImagePull"),
                                      ("Normal", "BackOff", f'Back-off pulling image "{name}"'),
                                      ("Warning", "Failed", "Error: ImagePullBackOff")):
            self.wait_event("nowhere", kind, reason, message)

    def test_a_volume_that_is_not_there_is_waited_for(self):
        waits = pod("waits", "cat /v/word; exec sleep 1000", volumes=[{"name": "v", "configMap": {"name": "late"}}])
        waits["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
        self.create(waits)
        self.wait_event("waits", "Warning", "FailedMount", 'MountVolume.SetUp failed for volume "v" : configmap "late" not found')
        self.wait_for("waits", lambda pod: pod["status"].get("containerStatuses") and
                      container(pod)["state"] == {"waiting": {"reason": "ContainerCreating"}})
        self.kubectl("create", "configmap", "late", "--from-literal=word=here")
        self.wait_ready("waits", 60)
        wait_until(lambda: self.kubectl("logs", "waits") == "here", what="its word")
        self.kubectl("delete", "configmap", "late")

    def test_a_probe_that_grants_less_time(self):
        stubborn = pod("stubborn", "trap '' TERM; while :; do sleep 0.1; done", terminationGracePeriodSeconds=1000)
        stubborn["spec"]["containers"][0]["startupProbe"] = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1,
                                                             "terminationGracePeriodSeconds": 1}
        begin = time.monotonic()
        self.create(stubborn)
        made = self.wait_for("stubborn", lambda pod: pod["status"].get("containerStatuses") and container(pod)["restartCount"] == 1)
        self.assertEqual(container(made)["lastState"]["terminated"]["exitCode"], 137)
        self.assertGreater(time.monotonic() - begin, 1)
        self.wait_event("stubborn", "Normal", "Killing", "Container c0 failed startup probe, will be restarted")

    def test_who_may_not_be_root(self):
        self.create(pod("root", "exec sleep 1000", securityContext={"runAsNonRoot": True}))
        made = self.wait_for("root", lambda pod: why_waiting(pod) == "CreateContainerConfigError")
        why = f'container has runAsNonRoot and image will run as root (pod: "root_default({made["metadata"]["uid"]})", container: c0)'
        self.assertEqual(container(made)["state"]["waiting"]["message"], why)
        self.wait_event("root", "Warning", "Failed", f"Error: {why}")

    def test_time_is_up(self):
        slowly = "trap 'sleep 1; exit 0' TERM; while :; do sleep 0.1; done"
        self.create(pod("brief", slowly, activeDeadlineSeconds=1, terminationGracePeriodSeconds=30))
        over = self.wait_phase("brief", "Failed")
        self.assertEqual(container(over)["state"]["terminated"]["exitCode"], 0, "it has not failed before it is over")
        self.assertEqual(over["status"]["reason"], "DeadlineExceeded")
        self.wait_event("brief", "Normal", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")

    def test_the_node_has_versions(self):
        info = json.loads(self.kubectl("get", "node", "here", "-o", "json"))["status"]["nodeInfo"]
        self.assertRegex(info["kubeletVersion"], r"^v1\.\d+\.\d+")
        self.assertRegex(info["containerRuntimeVersion"], r"^hearth://\d")


if __name__ == "__main__":
    unittest.main(verbosity=2)
