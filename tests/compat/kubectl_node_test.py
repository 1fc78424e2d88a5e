"""kubectl, unchanged, with the node of `hearth up`: debug, top, cordon, drain, describe; by every version there is."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from hearth import Engine, need_root, wait_until  # noqa: E402
from kubectls import find_kubectls  # noqa: E402

# Before, kubectl debug spoke to an alpha of the API.
FIRST_WITH_DEBUG = 23
POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"terminationGracePeriodSeconds": 0, "containers": [
    {"name": "main", "image": "host", "command": ["sh", "-c", "while :; do :; done"], "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}},
    {"name": "side", "image": "host", "command": ["sleep", "infinity"]}]}}


def setUpModule():
    global engine, folder
    need_root()
    engine = Engine().start()
    folder = tempfile.mkdtemp(prefix="hearth-kubectl-")


def tearDownModule():
    engine.remove()
    shutil.rmtree(folder, ignore_errors=True)


class WithKubectl:
    program = None
    minor = 0

    def kubectl(self, *words, text=None, code=0):
        done = subprocess.run([self.program, *words], input=text or "", capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, KUBECONFIG=f"{engine.state_dir}/admin.kubeconfig", HOME=folder))
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done.stdout if code == 0 else done.stderr

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def make_pod(self, name):
        def has_account():
            return subprocess.run([self.program, "get", "serviceaccount", "default"], capture_output=True,
                                  env=dict(os.environ, KUBECONFIG=f"{engine.state_dir}/admin.kubeconfig", HOME=folder)).returncode == 0
        wait_until(has_account, 30, "the default service account")
        self.kubectl("create", "-f", "-", text=json.dumps({**POD, "metadata": {"name": name, "labels": {"app": name}}}))
        self.addCleanup(self.kubectl, "delete", "pod", name, "--ignore-not-found", "--force", "--grace-period=0")
        wait_until(lambda: self.get("pod", name)["status"].get("phase") == "Running", 60, f"{name} to run")
        return name

    def test_top(self):
        pod = self.make_pod(f"busy-{self.minor}")

        def rows(*words):
            return [line.split() for line in self.kubectl("top", *words, "--no-headers").splitlines()]
        wait_until(lambda: int(rows("pod", pod)[0][1].removesuffix("m")) > 100, 60, "a pod that is seen to work")
        containers = {row[1]: row[2] for row in rows("pod", "--containers", "-l", f"app={pod}")}
        self.assertEqual(set(containers), {"main", "side"})
        self.assertLess(int(containers["side"].removesuffix("m")), 50)
        node = rows("node")
        self.assertEqual((len(node), len(node[0])), (1, 5))
        self.assertRegex(node[0][2], r"^\d+%$")
        listed = self.kubectl("get", "pods.metrics.k8s.io", pod)
        self.assertEqual(re.split(r"\s+", listed.splitlines()[0])[:4], ["NAME", "CPU", "MEMORY", "WINDOW"])
        self.assertIn('podmetrics.metrics.k8s.io "default/nobody" not found', self.kubectl("get", "pods.metrics.k8s.io", "nobody", code=1))

    def test_drain(self):
        node = self.get("nodes")["items"][0]["metadata"]["name"]
        pod = self.make_pod(f"stays-{self.minor}")
        described = self.kubectl("describe", "node", node)
        self.assertRegex(described, rf"default\s+{pod}\s+50m")
        self.assertRegex(described, r"Allocated resources:(.|\n)*cpu\s+\d+m \(\d+%\)(.|\n)*memory\s+\d+Mi \(\d+%\)")
        self.kubectl("cordon", node)
        self.addCleanup(self.kubectl, "uncordon", node)
        self.assertIn("SchedulingDisabled", self.kubectl("get", "nodes"))
        waiting = f"waits-{self.minor}"
        self.kubectl("create", "-f", "-", text=json.dumps({**POD, "metadata": {"name": waiting}}))
        self.addCleanup(self.kubectl, "delete", "pod", waiting, "--ignore-not-found", "--force", "--grace-period=0")

        def why():
            conditions = self.get("pod", waiting)["status"].get("conditions", [])
            return [one.get("message", "") for one in conditions if one["type"] == "PodScheduled"]
        wait_until(lambda: any("unschedulable" in word for word in why()), 30, "a reason to wait")
        self.kubectl("drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s", "--pod-selector", f"app={pod}")
        self.assertIn("not found", self.kubectl("get", "pod", pod, code=1))
        self.kubectl("uncordon", node)
        wait_until(lambda: self.get("pod", waiting)["status"].get("phase") == "Running", 60, "its turn")


class WithDebug:
    def test_debug(self):
        pod = self.make_pod(f"seen-{self.minor}")
        self.kubectl("debug", pod, "--image=host", "--target=main", "-c", "look", "--", "sh", "-c", "hostname; echo ready; sleep infinity")

        def status():
            return self.get("pod", pod)["status"].get("ephemeralContainerStatuses", [{}])[0]
        wait_until(lambda: "running" in status().get("state", {}), 60, "the ephemeral container")
        wait_until(lambda: self.kubectl("logs", pod, "-c", "look") == f"{pod}\nready\n", 30, "its log")
        self.assertEqual(self.kubectl("exec", pod, "-c", "look", "--", "echo", "inside"), "inside\n")
        now = self.get("pod", pod)
        self.assertEqual(now["spec"]["ephemeralContainers"][0]["targetContainerName"], "main")
        self.assertTrue(all(one["ready"] for one in now["status"]["containerStatuses"]))
        self.assertEqual((status()["ready"], status()["restartCount"]), (False, 0))
        # With its input and an end, as people use it; the exit is told and nothing is started again.
        said = self.kubectl("debug", "-i", pod, "--image=host", "-c", "shell", "--", "sh", text="echo $((6 * 7)); exit\n")
        self.assertIn("42", said + self.kubectl("logs", pod, "-c", "shell"))
        wait_until(lambda: "terminated" in self.get("pod", pod)["status"]["ephemeralContainerStatuses"][1]["state"], 30, "its end")
        wrong = self.kubectl("debug", pod, "--image=host", "--target=nobody", "--", "true", code=1)
        self.assertIn('Not found: "nobody"', wrong)


def load_tests(loader, _tests, _pattern):
    """One class for each of the oldest, the machine's and the newest."""
    found = find_kubectls()
    chosen = {version: found[version] for version in {*list(found)[:1], *list(found)[-1:], *list(found)[len(found) // 2:][:1]}}
    suite = unittest.TestSuite()
    for version, program in sorted(chosen.items()):
        minor = int(version.split(".")[1])
        kinds = (WithKubectl, WithDebug) if minor >= FIRST_WITH_DEBUG else (WithKubectl,)
        case = type(f"Kubectl_{version}", (*kinds, unittest.TestCase), {"program": program, "minor": minor})
        suite.addTests(loader.loadTestsFromTestCase(case))
    return suite


if __name__ == "__main__":
    unittest.main()
