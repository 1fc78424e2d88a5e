"""Pods on a real engine, through kubectl: how they begin, live, restart and end, and that nothing is left of them."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from hearth import Engine, expect_host_as_before, host_state, is_alive, need_root, wait_until


def pod(name, *commands, **spec):
    """One container for each shell command (None: nothing is run); members of the spec by name."""
    containers = [{"name": f"c{i}", "image": "host", **({"command": ["sh", "-c", command]} if command else {})}
                  for i, command in enumerate(commands)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 2, "containers": containers, **spec}}


class PodsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        if subprocess.run(["which", "kubectl"], capture_output=True).returncode:
            raise unittest.SkipTest("needs kubectl")
        cls.before = host_state()
        cls.engine = Engine().start("--warm", "4", "--node-name", "here")

    @classmethod
    def tearDownClass(cls):
        cls.engine.remove()
        expect_host_as_before(cls.before)

    def tearDown(self):
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
        wait_until(lambda: not self.engine.sandboxes(), 30, "the end of all sandboxes")

    def kubectl(self, *words, stdin=None, check=True):
        config = os.path.join(self.engine.state_dir, "admin.kubeconfig")
        result = subprocess.run(["kubectl", "--kubeconfig", config, *words], input=stdin, capture_output=True, text=True,
                                timeout=120)
        if check:
            self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def create(self, *pods):
        self.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(pods)}))

    def get(self, name):
        text = self.kubectl("get", "pod", name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text else None

    def wait_for(self, name, condition, seconds=60):
        last = {}

        def is_met():
            last["pod"] = self.get(name)
            return last["pod"] is not None and condition(last["pod"])
        try:
            wait_until(is_met, seconds)
        except AssertionError:
            self.fail(f"{name}: {json.dumps(last.get('pod', {}) and last['pod'].get('status'), indent=1)}")
        return last["pod"]

    def wait_phase(self, name, phase, seconds=60):
        return self.wait_for(name, lambda pod: pod["status"].get("phase") == phase, seconds)

    def wait_ready(self, name, seconds=60):
        return self.wait_for(name, is_ready, seconds)


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def container(pod, index=0):
    return pod["status"]["containerStatuses"][index]


class BeginningTest(PodsTest):
    def test_a_pod_runs_and_goes(self):
        self.create(pod("one", "echo hello; exec sleep 1000", terminationGracePeriodSeconds=100))
        seen = self.wait_ready("one")
        self.assertEqual(seen["spec"]["nodeName"], "here")
        status = seen["status"]
        self.assertEqual(status["phase"], "Running")
        self.assertRegex(status["podIP"], r"^\d+\.\d+\.\d+\.\d+$")
        self.assertEqual(status["podIPs"], [{"ip": status["podIP"]}])
        self.assertTrue(container(seen)["containerID"].startswith("hearth://pod-"))
        self.assertEqual(container(seen)["restartCount"], 0)
        self.assertIn("running", container(seen)["state"])
        self.assertEqual({c["type"]: c["status"] for c in status["conditions"]},
                         dict.fromkeys(["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"], "True"))
        self.assertEqual(self.kubectl("exec", "one", "--", "hostname").strip(), "one")
        wait_until(lambda: self.kubectl("logs", "one") == "hello\n", what="its first line")
        started = time.monotonic()
        self.kubectl("delete", "pod", "one")
        self.assertIsNone(self.get("one"))
        self.assertLess(time.monotonic() - started, 60, "SIGTERM is enough")

    def test_the_guest_alone_is_a_service(self):
        self.create(pod("guest", None, terminationGracePeriodSeconds=100))
        seen = self.wait_ready("guest")
        self.assertEqual(self.kubectl("exec", "guest", "--", "echo", "in").strip(), "in")
        started = time.monotonic()
        self.kubectl("delete", "pod", "guest")
        self.assertLess(time.monotonic() - started, 60)
        self.assertEqual(self.engine.sandboxes(), [])
        self.assertEqual(container(seen)["image"], "host")

    def test_containers_share_a_network_and_a_name(self):
        self.create(pod("pair", "exec python3 -m http.server 8000 --bind 127.0.0.1", "exec sleep 1000"))
        self.wait_ready("pair")
        look = ["python3", "-c", "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8000').status)"]
        wait_until(lambda: self.kubectl("exec", "pair", "-c", "c1", "--", *look, check=False).strip() == "200")
        self.assertEqual(self.kubectl("exec", "pair", "-c", "c1", "--", "hostname").strip(), "pair")

    def test_init_containers_come_first_and_sidecars_stay(self):
        init = [{"name": "first", "image": "host", "command": ["sh", "-c", "echo one"]},
                {"name": "side", "image": "host", "command": ["sleep", "1000"], "restartPolicy": "Always"},
                {"name": "second", "image": "host", "command": ["sh", "-c", "sleep 0.3"]}]
        self.create(pod("init", "sleep 0.5", initContainers=init, restartPolicy="Never"))
        self.wait_for("init", lambda pod: pod["status"].get("initContainerStatuses"))
        seen = self.wait_phase("init", "Succeeded")
        states = {s["name"]: s for s in seen["status"]["initContainerStatuses"]}
        self.assertEqual(states["first"]["state"]["terminated"]["reason"], "Completed")
        self.assertEqual(states["second"]["state"]["terminated"]["exitCode"], 0)
        self.assertIn("terminated", states["side"]["state"])
        self.assertEqual(self.kubectl("logs", "init", "-c", "first"), "one\n")

    def test_an_init_container_that_fails_fails_the_pod(self):
        self.create(pod("bad", "sleep 1000", restartPolicy="Never",
                        initContainers=[{"name": "first", "image": "host", "command": ["false"]}]))
        seen = self.wait_phase("bad", "Failed")
        self.assertEqual(container(seen)["state"]["waiting"]["reason"], "PodInitializing")

    def test_what_cannot_start_says_why(self):
        broken = pod("broken", None, restartPolicy="Never")
        broken["spec"]["containers"][0]["command"] = ["/no/such/program"]
        nameless = pod("nameless", "sleep 1000")
        nameless["spec"]["containers"][0]["env"] = [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "missing", "key": "k"}}}]
        absent = pod("absent", "sleep 1000")
        absent["spec"]["containers"][0].update(image="registry.invalid/none:1", imagePullPolicy="Never")
        self.create(broken, nameless, absent)
        seen = self.wait_phase("broken", "Failed")
        self.assertEqual(container(seen)["state"]["terminated"]["reason"], "StartError")
        self.assertEqual(container(seen)["state"]["terminated"]["exitCode"], 128)
        for name, reason in (("nameless", "CreateContainerConfigError"), ("absent", "ErrImageNeverPull")):
            self.wait_for(name, lambda pod: pod["status"].get("containerStatuses") and
                          container(pod)["state"].get("waiting", {}).get("reason") == reason)
        self.kubectl("create", "configmap", "missing", "--from-literal=k=v")
        self.wait_ready("nameless")
        self.kubectl("delete", "configmap", "missing")


class EndingTest(PodsTest):
    def test_terminal_phases(self):
        self.create(pod("good", "exit 0", restartPolicy="Never"), pod("poor", "exit 3", restartPolicy="Never"),
                    pod("killed", "kill -9 $$$$", restartPolicy="Never"))  # as a pod writes $$
        self.assertEqual(container(self.wait_phase("good", "Succeeded"))["state"]["terminated"]["reason"], "Completed")
        poor = self.wait_phase("poor", "Failed")
        self.assertEqual(container(poor)["state"]["terminated"]["exitCode"], 3)
        self.assertEqual(container(poor)["state"]["terminated"]["reason"], "Error")
        self.assertFalse(is_ready(poor))
        self.assertEqual(container(self.wait_phase("killed", "Failed"))["state"]["terminated"]["exitCode"], 137)

    def test_out_of_memory(self):
        greedy = pod("greedy", "exec python3 -c 'x = bytearray(512 << 20)'", restartPolicy="Never")
        greedy["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
        self.create(greedy)
        ended = container(self.wait_phase("greedy", "Failed"))["state"]["terminated"]
        self.assertEqual((ended["reason"], ended["exitCode"]), ("OOMKilled", 137))

    def test_a_restart_has_a_fresh_root_and_the_same_address(self):
        # A life ends when it is told to, the third and later ones at once.
        lives = pod("again", "ls /root/mark 2>&1; touch /root/mark; echo life >> /x/lives; echo life;"
                    "until test -e /x/end-$(wc -l < /x/lives) || test $(wc -l < /x/lives) -gt 2; do sleep 0.05; done; exit 1",
                    volumes=[{"name": "x", "emptyDir": {}}])
        lives["spec"]["containers"][0]["volumeMounts"] = [{"name": "x", "mountPath": "/x"}]
        self.create(lives)
        first = self.wait_ready("again")
        wait_until(lambda: "life" in self.kubectl("logs", "again"), what="its first words")
        self.kubectl("exec", "again", "--", "touch", "/x/end-1")
        seen = self.wait_for("again", lambda pod: container(pod)["restartCount"] == 1 and "running" in container(pod)["state"])
        self.assertEqual(seen["status"]["podIP"], first["status"]["podIP"])
        self.assertEqual(container(seen)["lastState"]["terminated"]["exitCode"], 1)
        self.assertEqual(container(seen)["lastState"]["terminated"]["containerID"], container(first)["containerID"])
        self.assertIn("life", self.kubectl("logs", "again", "--previous"))
        wait_until(lambda: "life" in self.kubectl("logs", "again"), what="its second first words")
        self.assertIn("No such file", self.kubectl("logs", "again"))
        self.kubectl("exec", "again", "--", "touch", "/x/end-2")
        seen = self.wait_for("again", lambda pod: container(pod)["state"].get("waiting"))
        self.assertEqual(container(seen)["state"]["waiting"]["reason"], "CrashLoopBackOff")
        self.assertRegex(container(seen)["state"]["waiting"]["message"],
                         r"back-off (10|20|40)s restarting failed container=c0 pod=again_default\(")
        self.assertEqual(seen["status"]["phase"], "Running")

    def test_on_failure_restarts_until_it_works(self):
        luck = pod("luck", "test -e /x/tried && exit 0; touch /x/tried; echo unlucky > /tmp/why; exit 1",
                   restartPolicy="OnFailure", volumes=[{"name": "x", "emptyDir": {}}])
        luck["spec"]["containers"][0]["terminationMessagePath"] = "/tmp/why"
        luck["spec"]["containers"][0]["volumeMounts"] = [{"name": "x", "mountPath": "/x"}]
        self.create(luck)
        seen = self.wait_phase("luck", "Succeeded")
        self.assertEqual(container(seen)["restartCount"], 1)
        self.assertEqual(container(seen)["lastState"]["terminated"]["exitCode"], 1)
        self.assertEqual(container(seen)["lastState"]["terminated"]["message"], "unlucky\n")

    def test_time_to_say_goodbye(self):
        self.create(pod("polite", "trap 'sleep 0.5; exit 0' TERM; echo listening; while :; do sleep 0.05; done",
                        terminationGracePeriodSeconds=100))
        self.wait_ready("polite")
        wait_until(lambda: self.kubectl("logs", "polite") == "listening\n", what="somebody who listens")
        started = time.monotonic()
        self.kubectl("delete", "pod", "polite")
        self.assertTrue(0.4 < time.monotonic() - started < 60)
        self.assertIsNone(self.get("polite"))

    def test_a_new_image_in_place(self):
        self.create(pod("swap", "sleep 1000"))
        first = self.wait_ready("swap")
        self.kubectl("patch", "pod", "swap", "-p", '{"spec":{"containers":[{"name":"c0","image":"registry.invalid/none:1"}]}}')
        self.wait_for("swap", lambda pod: container(pod)["state"].get("waiting"))
        self.kubectl("patch", "pod", "swap", "-p", '{"spec":{"containers":[{"name":"c0","image":"host"}]}}')
        seen = self.wait_ready("swap")
        self.assertEqual(container(seen)["restartCount"], 1)
        self.assertEqual(seen["status"]["podIP"], first["status"]["podIP"])

    def test_probes_and_hooks(self):
        probed = pod("probed", "sleep 1000")
        probed["spec"]["containers"][0].update(
            readinessProbe={"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "timeoutSeconds": 30},
            livenessProbe={"exec": {"command": ["test", "!", "-e", "/tmp/sick"]}, "periodSeconds": 1, "failureThreshold": 1,
                           "timeoutSeconds": 30},
            lifecycle={"postStart": {"exec": {"command": ["touch", "/tmp/hooked"]}},
                       "preStop": {"exec": {"command": ["sh", "-c", "sleep 1"]}}})
        self.create(probed)
        seen = self.wait_phase("probed", "Running")
        self.assertFalse(is_ready(seen))
        self.kubectl("exec", "probed", "--", "test", "-e", "/tmp/hooked")
        self.kubectl("exec", "probed", "--", "touch", "/tmp/ready")
        self.wait_ready("probed")
        self.kubectl("exec", "probed", "--", "touch", "/tmp/sick")
        self.wait_for("probed", lambda pod: container(pod)["restartCount"] == 1)

    def test_a_deadline(self):
        self.create(pod("late", "sleep 1000", activeDeadlineSeconds=1))
        seen = self.wait_phase("late", "Failed")
        self.assertEqual(seen["status"]["reason"], "DeadlineExceeded")


class EngineRestartTest(PodsTest):
    def test_pods_live_on(self):
        self.create(pod("stays", "exec sleep 1000"), pod("leaves", "exec sleep 1000"),
                    pod("ends", "trap 'exit 4' TERM; echo listening; while :; do sleep 0.05; done", restartPolicy="Never"))
        before = {name: self.wait_ready(name) for name in ("stays", "leaves", "ends")}
        pids = {sandbox["id"]: sandbox["pid"] for sandbox in self.engine.sandboxes()}
        wait_until(lambda: self.kubectl("logs", "ends") == "listening\n", what="somebody who listens")
        guest = pids[container(before["ends"])["containerID"].removeprefix("hearth://")]
        [command] = " ".join(of.read_text() for of in pathlib.Path(f"/proc/{guest}/task").glob("*/children")).split()
        self.engine.process.send_signal(signal.SIGKILL)
        self.engine.process.wait(60)
        os.kill(int(command), signal.SIGTERM)
        wait_until(lambda: not is_alive(command), what="its end while nobody looks")
        self.engine.start("--warm", "4", "--node-name", "here")
        self.assertEqual(self.get("stays")["status"], before["stays"]["status"])
        self.assertEqual(container(self.wait_phase("ends", "Failed"))["state"]["terminated"]["exitCode"], 4)
        now = {sandbox["id"]: sandbox["pid"] for sandbox in self.engine.sandboxes()}
        kept = container(before["stays"])["containerID"].removeprefix("hearth://")
        self.assertEqual(now[kept], pids[kept])
        self.kubectl("delete", "pod", "leaves")
        self.assertEqual(self.kubectl("exec", "stays", "--", "echo", "here").strip(), "here")

    def test_pods_that_went_meanwhile_are_cleared_away(self):
        self.create(pod("orphan", "trap '' TERM; while :; do sleep 0.1; done", terminationGracePeriodSeconds=1000))
        self.wait_ready("orphan")
        self.kubectl("delete", "pod", "orphan", "--wait=false")
        self.engine.process.send_signal(signal.SIGKILL)
        self.engine.process.wait(60)
        self.engine.start("--warm", "4", "--node-name", "here")
        self.kubectl("delete", "pod", "orphan", "--grace-period=1", "--wait=false")
        wait_until(lambda: self.get("orphan") is None)
        wait_until(lambda: not self.engine.sandboxes())


if __name__ == "__main__":
    unittest.main()
