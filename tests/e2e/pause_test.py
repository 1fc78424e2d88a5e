"""Pausing with memory, through annotations: what runs stands still and goes on, whatever happens meanwhile."""
import os
import signal
import time
import unittest

from cluster import SECONDS, ClusterTest, condition_of, in_seconds, is_ready, pod_template, sandbox, uid_of
from hearth import wait_until

PAUSE = "hearth.dev/pause"
# What it knows is in its memory and nowhere else.
COUNTS = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"


class PauseTest(ClusterTest):
    def annotate(self, kind, name, value):
        self.patch(kind, name, {"metadata": {"annotations": {PAUSE: value}}})

    def pause(self, name):
        self.annotate("Sandbox", name, "memory")
        return self.wait("Sandbox", name, lambda box: (condition_of(box, "hearth.dev/Paused") or {}).get("status") == "True")

    def resume(self, name):
        self.annotate("Sandbox", name, None)
        return self.wait_ready("Sandbox", name)

    def count(self, pod):
        lines = self.log_of(pod).split()
        return int(lines[-1]) if lines else 0

    def wait_count(self, pod, least):
        wait_until(lambda: self.count(pod) >= least, SECONDS, f"{pod} to count to {least}")

    def wait_still(self, pod):
        """What it has counted to, once a second passed without more of it: what it wrote last may be on its way still."""
        def is_still():
            before = self.count(pod)
            time.sleep(1)
            return self.count(pod) == before
        wait_until(is_still, SECONDS, f"{pod} to stand still")
        return self.count(pod)

    def make(self, name, **container):
        self.need_our_node("pausing")
        self.create(sandbox(name, pod=pod_template(COUNTS, container=container)))
        self.addCleanup(self.delete, "Sandbox", name)
        self.wait_ready("Sandbox", name)
        self.wait_count(name, 3)
        return self.get("Pod", name)

    def restarts(self, pod):
        return self.get("Pod", pod)["status"]["containerStatuses"][0]["restartCount"]

    def test_a_counter_stands_still_and_goes_on(self):
        before = self.make("counter")
        box = self.pause("counter")
        self.expect_condition(box, "Ready", "False", "SandboxPaused", "Sandbox is paused")
        pod = self.get("Pod", "counter")
        for kind in ("Ready", "ContainersReady"):
            self.assertEqual(condition_of(pod, kind)["reason"], "Paused")
        last = self.wait_still("counter")
        self.resume("counter")
        self.wait_count("counter", last + 5)
        # One after the other, from one process: nothing was lost and nothing began anew.
        numbers = [int(line) for line in self.log_of("counter").split()]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        after = self.get("Pod", "counter")
        self.assertEqual(uid_of(after), uid_of(before))
        self.assertEqual(after["status"]["containerStatuses"][0]["containerID"],
                         before["status"]["containerStatuses"][0]["containerID"])
        self.assertEqual(condition_of(after, "hearth.dev/Paused")["status"], "False")
        self.assertIsNone(condition_of(self.get("Sandbox", "counter"), "hearth.dev/Paused"))

    def test_commands_hear_that_it_is_paused(self):
        self.make("asked")
        self.pause("asked")
        begin = time.monotonic()
        result = self.cluster.kubectl("-n", self.namespace, "exec", "asked", "--", "true")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("is paused", result.stderr)
        result = self.cluster.kubectl("-n", self.namespace, "attach", "asked")
        self.assertIn("is paused", result.stderr)
        self.assertIn("1\n2\n", self.cluster.kubectl("-n", self.namespace, "logs", "asked").stdout)
        self.assertLess(time.monotonic() - begin, SECONDS)
        self.resume("asked")
        self.assertEqual(self.run_in("asked", "echo here"), "here\n")

    def test_probes_do_not_count_it(self):
        probe = {"exec": {"command": ["true"]}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 2}
        self.make("probed", livenessProbe=probe, readinessProbe=probe)
        for _ in range(2):
            self.pause("probed")
            time.sleep(2.5)
            self.resume("probed")
        time.sleep(1.5)
        self.assertTrue(is_ready(self.get("Pod", "probed")))
        self.assertEqual(self.restarts("probed"), 0)

    def test_the_engine_is_killed_meanwhile(self):
        before = self.make("kept")
        self.pause("kept")
        stood = self.wait_still("kept")
        for victim in ("engine", "both"):
            runtime = self.cluster.engine.runtime_pid()
            self.cluster.engine.process.kill()
            self.cluster.engine.process.wait(SECONDS)
            if victim == "both":
                try:
                    os.kill(runtime, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.cluster.api.close()
            self.cluster.start()
            box = self.get("Sandbox", "kept")
            self.assertEqual(condition_of(box, "hearth.dev/Paused")["status"], "True")
            self.assertEqual(self.count("kept"), stood)
        self.resume("kept")
        self.wait_count("kept", stood + 3)
        self.assertEqual(self.restarts("kept"), 0)
        self.assertEqual(uid_of(self.get("Pod", "kept")), uid_of(before))

    def test_its_end(self):
        self.make("deleted")
        self.pause("deleted")
        self.delete("Sandbox", "deleted")
        self.wait_gone("Pod", "deleted")

    def test_its_time_goes_on(self):
        self.make("timed")
        self.pause("timed")
        self.patch("Sandbox", "timed", {"spec": {"shutdownTime": in_seconds(2)}})
        self.wait_gone("Pod", "timed")
        self.wait_unready("Sandbox", "timed", "SandboxExpired")

    def test_a_pod_of_its_own(self):
        self.need_our_node("pausing")
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"}, **pod_template(COUNTS)})
        self.addCleanup(self.delete, "Pod", "alone")
        self.wait_ready("Pod", "alone")
        self.wait_count("alone", 2)
        self.kubectl("annotate", "pod", "alone", f"{PAUSE}=memory")
        self.kubectl("wait", "--for=condition=hearth.dev/Paused", "pod/alone", "--timeout=60s")
        self.kubectl("annotate", "pod", "alone", f"{PAUSE}-")
        self.kubectl("wait", "--for=condition=Ready", "pod/alone", "--timeout=60s")
        self.assertEqual(self.restarts("alone"), 0)

    def test_egress_that_makes_no_sense_starts_nothing(self):
        self.need_our_node("egress")
        self.create({"apiVersion": "v1", "kind": "Pod", **pod_template(),
                     "metadata": {"name": "closed", "annotations": {"hearth.dev/egress": '{"deny":["everything"]}'}}})
        self.addCleanup(self.delete, "Pod", "closed")

        def reason(pod):
            return pod["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {})
        pod = self.wait("Pod", "closed", lambda pod: reason(pod).get("reason") == "CreateContainerConfigError")
        self.assertIn("'everything'", reason(pod)["message"])


if __name__ == "__main__":
    unittest.main()
