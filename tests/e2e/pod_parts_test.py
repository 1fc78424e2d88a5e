"""What a container finds inside: variables, files, volumes, claims; and how it is asked for its health."""
import http.client
import json
import pathlib
import ssl
import unittest

from hearth import Engine, need_root, wait_until

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


class Cluster:
    def __init__(self):
        need_root()
        self.engine = Engine().start()

    def ask(self, method, path, body=None, kind="application/json"):
        url = self.engine.endpoints()["kube"].removeprefix("https://")
        connection = http.client.HTTPSConnection(url, timeout=30, context=ssl._create_unverified_context())
        token = pathlib.Path(self.engine.state_dir, "admin.token").read_text().strip()
        try:
            connection.request(method, path, body and json.dumps(body), {"Authorization": f"Bearer {token}", "Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        return answer.status, text

    def make(self, path, body):
        status, text = self.ask("POST", path, body)
        assert status == 201, text
        return json.loads(text)

    def run(self, name, container, annotations=None, **spec):
        self.make(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations or {}}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "host", **container}], **spec}})

    def pod(self, name):
        return json.loads(self.ask("GET", f"{PODS}/{name}")[1])

    def phase(self, name, *wanted, seconds=60):
        wait_until(lambda: self.pod(name)["status"].get("phase") in wanted, seconds, f"{name}: {wanted}, not {self.pod(name)['status']}")
        return self.pod(name)

    def said(self, name):
        """What a container wrote until its end."""
        self.phase(name, "Succeeded", "Failed")
        return self.ask("GET", f"{PODS}/{name}/log")[1]

    def remove(self, name):
        self.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        wait_until(lambda: self.ask("GET", f"{PODS}/{name}")[0] == 404, 30, f"{name} to go")


def setUpModule():
    global cluster
    cluster = Cluster()


def tearDownModule():
    cluster.engine.remove()


def shell(script, **more):
    return {"command": ["sh", "-c", script], **more}


class PodParts(unittest.TestCase):
    def test_variables_and_files(self):
        cluster.make("/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
                                                               "data": {"color": "red"}})
        cluster.make("/api/v1/namespaces/default/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                                                            "stringData": {"key": "hush"}})
        cluster.run("files", shell(
            "echo $COLOR $WHO; cat /c/color; echo; stat -L -c '%a %u' /s/deep/key; cat /s/deep/key; echo; cat /one; echo;"
            "touch /c/x 2>/dev/null || echo read-only; cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo;"
            "test -n \"$IP\" && hostname -I | grep -q \"$IP\" && echo same address",
            env=[{"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "color"}}},
                 {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                 {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            volumeMounts=[{"name": "c", "mountPath": "/c"}, {"name": "s", "mountPath": "/s"},
                          {"name": "c", "mountPath": "/one", "subPath": "color"}]),
            volumes=[{"name": "c", "configMap": {"name": "c"}},
                     {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400, "items": [{"key": "key", "path": "deep/key"}]}}])
        self.assertEqual(cluster.said("files").splitlines()[:7],
                         ["red files", "red", "400 0", "hush", "red", "read-only", "default"])

    def test_files_follow_what_they_are_made_of(self):
        def change(path, patch):
            status, text = cluster.ask("PATCH", path, patch, "application/merge-patch+json")
            self.assertEqual(status, 200, text)

        maps, secrets = (f"/api/v1/namespaces/default/{kind}" for kind in ("configmaps", "secrets"))
        cluster.make(maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "live"}, "data": {"color": "red", "old": "x"}})
        # Says what it sees whenever that is something new; all files of one moment come from one folder.
        cluster.run("live", shell(
            "see() { for f in color new; do cat /all/$f 2>/dev/null; echo; done; cat /all/labels; echo; ls /all; cat /one; }; before=;"
            "while :; do now=$(see | tr '\\n' ' '); test \"$now\" = \"$before\" || echo \"$now\"; before=$now; sleep 0.02; done",
            volumeMounts=[{"name": "all", "mountPath": "/all"}, {"name": "c", "mountPath": "/one", "subPath": "color"}]),
            volumes=[{"name": "c", "configMap": {"name": "live"}}, {"name": "all", "projected": {"sources": [
                {"configMap": {"name": "live"}}, {"secret": {"name": "late", "optional": True}},
                {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}}])

        def sees(*words):
            lines = cluster.ask("GET", f"{PODS}/live/log")[1].splitlines()
            return lines and lines[-1].split() == list(words)

        cluster.phase("live", "Running")
        wait_until(lambda: sees("red", "color", "labels", "old", "red"), 30, "the first files")
        change(f"{maps}/live", {"data": {"color": "blue", "old": None}})
        wait_until(lambda: sees("blue", "color", "labels", "red"), 30, "a change, and none of a subPath")
        cluster.make(secrets, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}, "stringData": {"new": "hush"}})
        wait_until(lambda: sees("blue", "hush", "color", "labels", "new", "red"), 30, "a secret that came later")
        change(f"{PODS}/live", {"metadata": {"labels": {"tier": "web"}}})
        wait_until(lambda: sees("blue", "hush", 'tier="web"', "color", "labels", "new", "red"), 30, "its own label")
        # An engine that comes back goes on with it.
        cluster.engine.process.kill()
        cluster.engine.process.wait()
        cluster.engine.start()
        change(f"{maps}/live", {"data": {"color": "green"}})
        wait_until(lambda: sees("green", "hush", 'tier="web"', "color", "labels", "new", "red"), 30, "a change after kill -9")
        cluster.remove("live")

    def test_folders_are_shared_and_go_with_the_pod(self):
        before = cluster.engine.hearth("volume", "ls").stdout
        cluster.run("shared", shell("until test -e /a/word; do sleep 0.05; done; cat /a/word; id -u",
                                    securityContext={"runAsUser": 1000}, volumeMounts=[{"name": "e", "mountPath": "/a"}]),
                    initContainers=[{"name": "first", "image": "host", "command": ["sh", "-c", "echo from first > /b/sub-word; mkdir /b/in"],
                                     "volumeMounts": [{"name": "e", "mountPath": "/b"}]},
                                    {"name": "second", "image": "host", "command": ["sh", "-c", "mv /b/sub-word /b/word; touch /in/y"],
                                     "volumeMounts": [{"name": "e", "mountPath": "/b"}, {"name": "e", "mountPath": "/in", "subPath": "in"}],
                                     "securityContext": {"runAsUser": 0}}],
                    volumes=[{"name": "e", "emptyDir": {}}])
        self.assertEqual(cluster.said("shared"), "from first\n1000\n")
        cluster.remove("shared")
        wait_until(lambda: cluster.engine.hearth("volume", "ls").stdout == before, 30, "the volume to go")

    def test_a_claim_outlives_pods(self):
        cluster.make(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                              "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}})
        mounts = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
        volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        cluster.run("writer", shell("echo kept > /d/x", **mounts), volumes=volumes)
        cluster.phase("writer", "Succeeded")
        cluster.remove("writer")
        cluster.run("reader", shell("cat /d/x; df -m /d | tail -1 | awk '{print ($2 < 70)}'", **mounts), volumes=volumes)
        self.assertEqual(cluster.said("reader"), "kept\n1\n")
        cluster.remove("reader")
        cluster.ask("DELETE", f"{CLAIMS}/data")
        wait_until(lambda: json.loads(cluster.ask("GET", "/api/v1/persistentvolumes")[1])["items"] == [], 30, "the volume to go")

    def test_a_root_that_cannot_be_written(self):
        cluster.run("sealed", shell(
            "for d in / /etc /usr/bin /var /root /tmp; do touch $d/x 2>&1 | grep -c 'Read-only file system'; done;"
            "echo scratch > /scratch/x && cat /scratch/x; echo shared > /dev/shm/x && cat /dev/shm/x;"
            "touch /c/x 2>&1 | grep -c 'Read-only file system'; getent hosts sealed | grep -c sealed;"
            "echo last words > /dev/termination-log; exit 4",
            securityContext={"readOnlyRootFilesystem": True}, volumeMounts=[{"name": "s", "mountPath": "/scratch"}, {"name": "c", "mountPath": "/c"}]),
            volumes=[{"name": "s", "emptyDir": {}}, {"name": "c", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}])
        self.assertEqual(cluster.said("sealed").split(), ["1"] * 6 + ["scratch", "shared", "1", "1"])
        state = cluster.pod("sealed")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((state["exitCode"], state["message"]), (4, "last words\n"))
        cluster.remove("sealed")
        # The guest serves as usual: commands come and go.
        cluster.run("sealed-service", shell("exec sleep 1000", securityContext={"readOnlyRootFilesystem": True},
                                            readinessProbe={"exec": {"command": ["test", "-d", "/etc"]}}))
        wait_until(lambda: cluster.pod("sealed-service")["status"].get("containerStatuses", [{}])[0].get("ready"), 30, "readiness")
        cluster.remove("sealed-service")

    def test_sudo_is_for_those_who_are_named(self):
        named = {"hearth.dev/sudo": "user"}
        cluster.run("may", shell("sudo id -u", securityContext={"runAsUser": 1000}), named)
        cluster.run("other", shell("sudo id -u 2>&1", securityContext={"runAsUser": 1001}), named)
        cluster.run("kept-down", shell("test -e /usr/local/bin/sudo || echo none",
                                       securityContext={"runAsUser": 1000, "allowPrivilegeEscalation": False}), named)
        cluster.run("plain", shell("test -e /usr/local/bin/sudo || echo none", securityContext={"runAsUser": 1000}))
        self.assertEqual(cluster.said("may"), "0\n")
        self.assertEqual(cluster.said("other"), "sudo: 1001 may not run sudo in this sandbox\n")
        self.assertEqual((cluster.said("kept-down"), cluster.said("plain")), ("none\n", "none\n"))
        for name in ("may", "other", "kept-down", "plain"):
            cluster.remove(name)

    def test_why_it_ended(self):
        cluster.run("last-words", shell("echo out of paper > /dev/termination-log; exit 3", securityContext={"runAsUser": 1000}))
        state = cluster.phase("last-words", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((state["exitCode"], state["message"]), (3, "out of paper\n"))
        cluster.run("last-lines", shell("echo boom; exit 1", terminationMessagePolicy="FallbackToLogsOnError"))
        state = cluster.phase("last-lines", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual(state["message"], "boom\n")

    def test_readiness_is_asked_for(self):
        def is_ready():
            return cluster.pod("asked")["status"].get("containerStatuses", [{}])[0].get("ready")

        cluster.run("asked", shell("mkdir /www; cd /www; sleep 0.5; exec python3 -m http.server 8000",
                                   ports=[{"name": "web", "containerPort": 8000}],
                                   readinessProbe={"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 60},
                                   livenessProbe={"exec": {"command": ["true"]}}))
        wait_until(is_ready, 45, "readiness, before a period is over")
        cluster.remove("asked")

    def test_what_cannot_be_is_refused_in_words(self):
        cluster.run("privileged", shell("true", securityContext={"privileged": True}))
        self.assertIn("privileged", json.dumps(cluster_waiting("privileged")))
        cluster.remove("privileged")

    def test_the_node_is_there(self):
        nodes = json.loads(cluster.ask("GET", "/api/v1/nodes")[1])["items"]
        self.assertEqual(len(nodes), 1)
        ready = [c["status"] for c in nodes[0]["status"]["conditions"] if c["type"] == "Ready"]
        self.assertEqual(ready, ["True"])
        lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{nodes[0]['metadata']['name']}"
        wait_until(lambda: cluster.ask("GET", lease)[0] == 200, what="its lease")


def cluster_waiting(name):
    """What a container that does not start says."""
    def waiting():
        statuses = cluster.pod(name)["status"].get("containerStatuses", [{}])
        return statuses[0].get("state", {}).get("waiting", {}).get("message") and statuses[0]["state"]["waiting"]
    return wait_until(waiting, 30, f"a reason why {name} does not start")


if __name__ == "__main__":
    unittest.main()
