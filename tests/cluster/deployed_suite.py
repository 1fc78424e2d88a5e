"""What only a whole cluster shows: our controller and our guest as pods, on somebody else's node (run.py starts it)."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cluster import IMAGE, ClusterTest, claim, is_ready, pod_template, pool, sandbox, template, uid_of  # noqa: E402
from e2b import E2b  # noqa: E402
from hearth import HEARTH, wait_until  # noqa: E402

SYSTEM, LEASE = "hearth-system", "a3317529.agent-sandbox.x-k8s.io"
# What the Pod Security Standard `restricted` asks of a pod.
RESTRICTED = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
HARMLESS = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}


def fetch(url, body=None):
    """The text, or nothing while nobody answers."""
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"})
    with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()
    return None


class DeployedTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        if "HEARTH_CLUSTER_LOGS" not in os.environ:
            raise unittest.SkipTest("needs the cluster of run.py: pods must be reachable from here")
        super().setUpClass()

    def address_of(self, pod):
        return self.get("Pod", pod)["status"]["podIP"]

    def system(self, group, plural, name=""):
        return self.ask("GET", f"{group}/namespaces/{SYSTEM}/{plural}/{name}".rstrip("/"))

    def controllers(self):
        """Of pods that are not about to go: {name: pod}"""
        pods = self.system("/api/v1", "pods")["items"]
        return {pod["metadata"]["name"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    def leader(self):
        """The pod's name; an identity begins with it."""
        lease = self.system("/apis/coordination.k8s.io/v1", "leases", LEASE)
        return lease["spec"].get("holderIdentity", "").rpartition("_")[0]


class ControllerTest(DeployedTest):
    def test_the_service_leads_to_its_numbers(self):
        service = self.system("/api/v1", "services", "hearth-controller-metrics")
        numbers = wait_until(lambda: fetch(f"http://{service['spec']['clusterIP']}:8080/metrics"), 30, "an answer")
        self.assertIn("agent_sandbox_build_info", numbers)

    def test_another_leads_when_the_leader_goes(self):
        first = wait_until(self.leader, 30, "a leader")
        self.assertIn(first, self.controllers())
        self.ask("DELETE", f"/api/v1/namespaces/{SYSTEM}/pods/{first}")
        self.create(sandbox("meanwhile"))
        self.wait_ready("Sandbox", "meanwhile")
        wait_until(lambda: self.leader() not in ("", first), 30, "another leader")
        wait_until(lambda: sum(map(is_ready, self.controllers().values())) == 2, 120, "two replicas again")

    def test_nothing_is_lost_while_it_is_replaced(self):
        self.create(template("steady"), pool("steady", "steady", 2))
        self.wait("SandboxWarmPool", "steady", lambda it: it.get("status", {}).get("readyReplicas") == 2, "full")
        before = set(self.controllers())
        rollout = ("-n", SYSTEM, "rollout")
        self.assertEqual(self.cluster.kubectl(*rollout, "restart", "deployment/hearth-controller").returncode, 0)
        names = [f"during-{i}" for i in range(4)]
        for name in names:
            self.create(claim(name, "steady"))
        done = self.cluster.kubectl(*rollout, "status", "deployment/hearth-controller", "--timeout=120s")
        self.assertEqual(done.returncode, 0, done.stderr)
        given = {self.wait_ready("SandboxClaim", name)["status"]["sandbox"]["name"] for name in names}
        self.assertEqual(len(given), len(names))
        self.assertFalse(before & set(self.controllers()))

    def test_it_stays_within_its_rights(self):
        for name in self.controllers():
            said = self.ask("GET", f"/api/v1/namespaces/{SYSTEM}/pods/{name}/log")
            self.assertNotIn("forbidden", said)


class OlderVersionTest(DeployedTest):
    """The API server asks the controller's webhook, by its Service."""

    def test_an_older_client_sees_what_it_wrote(self):
        made = {**sandbox("older"), "apiVersion": "agents.x-k8s.io/v1alpha1"}
        path = f"/apis/agents.x-k8s.io/v1alpha1/namespaces/{self.namespace}/sandboxes"
        self.ask("POST", path, made)
        self.wait_ready("Sandbox", "older")
        self.assertEqual(self.get("Sandbox", "older")["spec"]["operatingMode"], "Running")
        self.ask("PATCH", f"{path}/older", {"spec": {"replicas": 0}}, "application/merge-patch+json")
        self.assertEqual(self.get("Sandbox", "older")["spec"]["operatingMode"], "Suspended")
        self.wait_gone("Pod", "older")
        self.assertEqual(self.ask("GET", f"{path}/older")["spec"]["replicas"], 0)


class E2bTest(DeployedTest):
    """Its front door, in every replica of the controller, by its Service."""

    def hearth(self, *words):
        done = subprocess.run([HEARTH, *words, "--kubeconfig", self.cluster.kubeconfig], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def open_door(self, team):
        self.hearth("team", "create", team)
        self.addCleanup(self.hearth, "team", "rm", team)
        service = self.system("/api/v1", "services", "hearth-e2b")
        door = E2b(f"http://{service['spec']['clusterIP']}:8090", self.hearth("key", "create", "--team", team))
        # Of every replica that may be asked.
        wait_until(lambda: [door.ask("GET", "/v2/sandboxes").status for _ in range(8)] == [200] * 8, 30, "a key that works")
        return door

    def test_a_life(self):
        team = f"team-{self.namespace[-6:]}"
        door = self.open_door(team)
        self.hearth("template", "create", "web", "-n", team, "--image", IMAGE, "--surfaces", "envd")
        for variables in ({}, {"GREETING": "good morning"}):
            box = door.create(templateID="web", envVars=variables)
            told = door.inside(box, "GET", "/envs").json
            self.assertEqual(told["E2B_SANDBOX_ID"], box["sandboxID"])
            self.assertEqual(told.get("GREETING"), variables.get("GREETING"))
            self.assertEqual(door.inside(box, "GET", "/files?path=/etc/passwd").status, 200)
            self.assertEqual(door.inside(box, "GET", "/files?path=/etc/passwd", token="wrong").status, 401)
            self.assertEqual(door.ask("DELETE", f"/sandboxes/{box['sandboxID']}").status, 204)
        self.assertEqual(door.ids(), set())


    def test_what_the_cluster_refuses_is_told_at_once(self):
        team = f"strict-{self.namespace[-6:]}"
        door = self.open_door(team)
        mark = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
        self.ask("PATCH", f"/api/v1/namespaces/{team}", mark, "application/merge-patch+json")
        self.hearth("template", "create", "web", "-n", team, "--image", IMAGE, "--surfaces", "envd")
        began = time.monotonic()
        answer = door.ask("POST", "/sandboxes", {"templateID": "web"})
        self.assertEqual(answer.status, 403)
        self.assertIn("violates PodSecurity", answer.json["message"])
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(door.ids(), set())


class RestrictedTest(DeployedTest):
    def test_in_a_restricted_namespace(self):
        mark = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
        self.ask("PATCH", f"/api/v1/namespaces/{self.namespace}", mark, "application/merge-patch+json")
        container = {"securityContext": HARMLESS, "volumeMounts": [{"name": "app", "mountPath": "/app"}]}
        pod = pod_template(securityContext=RESTRICTED, container=container, volumes=[{"name": "app", "emptyDir": {}}])
        self.create(sandbox("boxed", pod=pod))
        self.wait_ready("Sandbox", "boxed")
        said = wait_until(lambda: fetch(f"http://{self.address_of('boxed')}:8888/execute", {"command": "id -u"}), 30, "an answer")
        self.assertEqual(json.loads(said)["stdout"], "1000\n")
        self.assertIsNotNone(fetch(f"http://{self.address_of('boxed')}:49983/health"))


class GuestTest(DeployedTest):
    def test_what_it_runs_is_started_again(self):
        self.create(sandbox("restless", "echo started; exec sleep 100000"))
        self.wait_ready("Sandbox", "restless")
        before = self.get("Pod", "restless")
        # The guest gives it on to the command. Not at once: who says it is in the container, too.
        self.run_in("restless", "(sleep 1; kill -TERM 1) > /dev/null 2>&1 &")

        def is_again(it):
            status = it["status"]["containerStatuses"][0]
            return status["restartCount"] == 1 and status["ready"]
        after = self.wait("Pod", "restless", is_again, "started again")
        self.assertEqual(uid_of(after), uid_of(before))
        ended = after["status"]["containerStatuses"][0]["lastState"]["terminated"]
        self.assertEqual(ended["exitCode"], 128 + 15)
        self.wait_ready("Sandbox", "restless")

    def test_it_costs_no_quality_of_service(self):
        size = {"cpu": "50m", "memory": "64Mi"}
        self.create(sandbox("sized", pod=pod_template(container={"resources": {"requests": size, "limits": size}})))
        self.wait_ready("Sandbox", "sized")
        self.assertEqual(self.get("Pod", "sized")["status"]["qosClass"], "Guaranteed")

    def test_who_wants_none_has_none(self):
        self.create(sandbox("plain", pod={"metadata": {"annotations": {"hearth.dev/guest": "off"}}, **pod_template()}))
        self.wait_ready("Sandbox", "plain")
        self.assertNotIn("initContainers", self.get("Pod", "plain")["spec"])
        self.assertIsNone(fetch(f"http://{self.address_of('plain')}:49983/health"))


class ClusterFactsTest(DeployedTest):
    def test_an_evicted_pod_comes_back(self):
        self.create(sandbox("evicted"))
        self.wait_ready("Sandbox", "evicted")
        before = self.get("Pod", "evicted")
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted", "namespace": self.namespace}}
        self.ask("POST", self.path("Pod", "evicted", "eviction"), eviction)
        self.wait_gone("Pod", "evicted", uid_of(before))
        self.wait("Pod", "evicted", is_ready)
        self.wait_ready("Sandbox", "evicted")

    def test_a_service_leads_to_the_pod(self):
        self.create(sandbox("served", service=True, pod=pod_template(container={"ports": [{"containerPort": 8888}]})))
        self.wait_ready("Sandbox", "served")
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"

        def addresses():
            return [one for each in self.ask("GET", path)["items"] for end in each["endpoints"] or [] for one in end["addresses"]]
        wait_until(addresses, 30, "an endpoint")
        self.assertEqual(addresses(), [self.address_of("served")])

    def test_what_a_claim_brings_reaches_its_sandbox(self):
        labels = {"hearth.dev/claimable": "true"}
        self.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "labels": labels}, "stringData": {"WORD": "sesame"}},
                    template("open", envVarsInjectionPolicy="Allowed"), pool("open", "open", 0))
        self.create(claim("mine", "open", env=[{"name": "PLAIN", "value": "text"}], envFrom=[{"secretRef": {"name": "key"}}],
                          files=[{"path": "/etc/told", "content": "in a file"}], workingDir="/tmp"))
        box = self.wait_ready("SandboxClaim", "mine")["status"]["sandbox"]["name"]
        self.assertEqual(self.run_in(box, "echo $PLAIN $WORD; pwd; cat /etc/told"), "text sesame\n/tmp\nin a file")


if __name__ == "__main__":
    unittest.main(verbosity=2)
