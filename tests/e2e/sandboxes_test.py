"""Sandboxes as their users know them, through kubectl and HTTP: identity, status, suspension, volumes, expiry."""
import concurrent.futures
import datetime
import json
import unittest

from cluster import (IMAGE, STAYS, ClusterTest, condition_of, in_seconds, is_current, is_ready, name_hash, owner_of, pod_name_of,
                     pod_template, sandbox, temporary_folder, uid_of)

NOT_SUSPENDED = {"type": "Suspended", "status": "False", "reason": "NotSuspended", "message": "Sandbox is not suspended"}


def without_times(conditions):
    return [{key: value for key, value in c.items() if key not in ("lastTransitionTime", "observedGeneration")} for c in conditions]


def since(thing, kind):
    return condition_of(thing, kind)["lastTransitionTime"]


class StatusTest(ClusterTest):
    def expect_status(self, name, pod, message, **more):
        seen = self.wait_ready("Sandbox", name)
        status = dict(seen["status"])
        conditions = status.pop("conditions")
        self.assertEqual(without_times(conditions), [
            NOT_SUSPENDED, {"type": "PodScheduled", "status": "True", "reason": "PodScheduled", "message": ""},
            {"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": message}])
        self.assertEqual({c["observedGeneration"] for c in conditions}, {seen["metadata"]["generation"]})
        self.assertEqual(status, {"podIPs": [ip["ip"] for ip in pod["status"]["podIPs"]], "nodeName": pod["spec"]["nodeName"],
                                  "selector": f"agents.x-k8s.io/sandbox-name-hash={name_hash(name)}", **more})

    def test_the_example_of_the_readme(self):
        served = {version["version"] for version in self.ask("GET", "/apis/agents.x-k8s.io")["versions"]}
        version = "v1alpha1" if "v1alpha1" in served else "v1beta1"
        self.kubectl("apply", "-f", "-", stdin=f"""
apiVersion: agents.x-k8s.io/{version}
kind: Sandbox
metadata:
  name: my-sandbox
spec:
  podTemplate:
    spec:
      containers:
      - name: my-container
        image: {IMAGE}
        command: [sleep, "100000"]
""")
        self.kubectl("wait", "--for=condition=Ready", "sandbox/my-sandbox", "--timeout=60s")
        made = self.get("Sandbox", "my-sandbox")
        self.assertEqual(made["spec"]["operatingMode"], "Running")
        pod = self.get("Pod", "my-sandbox")
        self.expect_status("my-sandbox", pod, "Pod is Ready")
        self.assertEqual(owner_of(pod), ("agents.x-k8s.io", "Sandbox", "my-sandbox", uid_of(made)))
        self.assertEqual(pod["metadata"]["labels"]["agents.x-k8s.io/sandbox-name-hash"], "374de8f5")
        self.assertEqual(pod_name_of(made), "my-sandbox")
        self.assertIsNone(self.get("Service", "my-sandbox"))
        table = self.kubectl("get", "sandbox", "my-sandbox").splitlines()
        self.assertEqual(table[0].split(), ["NAME", "READY", "REASON", "AGE"])
        self.assertEqual(table[1].split()[:3], ["my-sandbox", "True", "DependenciesReady"])
        self.kubectl("delete", "sandbox", "my-sandbox")
        self.wait_gone("Pod", "my-sandbox")

    def test_with_a_service(self):
        ports = [{"containerPort": 8080}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}]
        self.create(sandbox("served", service=True, pod=pod_template(container={"ports": ports})))
        made = self.wait_ready("Sandbox", "served")
        self.expect_status("served", self.get("Pod", "served"), "Pod is Ready; Service Exists", service="served",
                           serviceFQDN=f"served.{self.namespace}.svc.cluster.local")
        service = self.get("Service", "served")
        self.assertEqual(owner_of(service), ("agents.x-k8s.io", "Sandbox", "served", uid_of(made)))
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(service["spec"]["selector"], {"agents.x-k8s.io/sandbox-name-hash": name_hash("served")})
        self.assertEqual([(port["name"], port["protocol"], port["port"], port["targetPort"]) for port in service["spec"]["ports"]],
                         [("dns", "UDP", 53, 53), ("p-8080-tcp", "TCP", 8080, 8080)])
        self.patch("Sandbox", "served", {"spec": {"service": False}})
        self.wait_gone("Service", "served")
        self.wait("Sandbox", "served", lambda thing: "service" not in thing["status"] and "serviceFQDN" not in thing["status"])
        self.delete("Sandbox", "served")

    def test_labels_of_the_template_reach_the_living_pod(self):
        self.create(sandbox("labelled", pod={"metadata": {"labels": {"a": "1", "agents.x-k8s.io/claim-uid": "x"}}, **pod_template()}))
        self.wait_ready("Sandbox", "labelled")
        before = self.get("Pod", "labelled")
        self.assertEqual(before["metadata"]["labels"]["a"], "1")
        self.assertNotIn("agents.x-k8s.io/claim-uid", before["metadata"]["labels"])
        self.patch("Sandbox", "labelled", {"spec": {"podTemplate": {"metadata": {"labels": {"a": None, "b": "2"}}}}})
        after = self.wait("Pod", "labelled", lambda pod: pod["metadata"]["labels"].get("b") == "2")
        self.assertNotIn("a", after["metadata"]["labels"])
        self.assertEqual(uid_of(after), uid_of(before))
        self.delete("Sandbox", "labelled")

    def test_twenty_at_once(self):
        names = [f"many-{i}" for i in range(20)]
        with concurrent.futures.ThreadPoolExecutor(10) as threads:
            list(threads.map(lambda name: self.create(sandbox(name)), names))
        boxes = [self.wait_ready("Sandbox", name) for name in names]
        self.assertEqual(len({box["status"]["podIPs"][0] for box in boxes}), 20)
        for name in names:
            self.delete("Sandbox", name)

    def test_kubectl_works_inside(self):
        self.create(sandbox("inside", f"echo hello; {STAYS}"))
        pod = pod_name_of(self.wait_ready("Sandbox", "inside"))
        self.wait_log(pod, "hello\n")
        self.assertEqual(self.kubectl("logs", pod), "hello\n")
        self.assertEqual(self.run_in(pod, "uname -n").strip(), "inside")
        folder = temporary_folder(self)
        (folder / "there").write_text("and back\n")
        self.kubectl("cp", str(folder / "there"), f"{pod}:/tmp/there")
        self.kubectl("cp", f"{pod}:/tmp/there", str(folder / "back"))
        self.assertEqual((folder / "back").read_text(), "and back\n")
        self.delete("Sandbox", "inside")


class SuspensionTest(ClusterTest):
    def set_mode(self, name, mode):
        return self.patch("Sandbox", name, {"spec": {"operatingMode": mode}})["metadata"]["generation"]

    def wait_suspended(self, name):
        return self.wait("Sandbox", name, lambda box: (condition_of(box, "Suspended") or {}).get("status") == "True"
                         and is_current(box), "suspended")

    def test_twice(self):
        self.create(sandbox("naps", f"uname -n; {STAYS}", service=True))
        box = self.wait_ready("Sandbox", "naps")
        service, pods = self.get("Service", "naps"), [uid_of(self.get("Pod", "naps"))]
        for cycle in (1, 2):
            before = box
            self.assertEqual(self.set_mode("naps", "Suspended"), 2 * cycle)
            box = self.wait_suspended("naps")
            self.expect_condition(box, "Suspended", "True", "PodTerminated", "Pod has been terminated. Sandbox is suspended")
            self.expect_condition(box, "Ready", "False", "SandboxSuspended", "Sandbox is suspended")
            self.assertIsNone(condition_of(box, "PodScheduled"))
            self.assertEqual({c["observedGeneration"] for c in box["status"]["conditions"]}, {2 * cycle})
            self.assertGreaterEqual(since(box, "Suspended"), since(before, "Suspended"))
            self.assertNotIn("podIPs", box["status"])
            self.assertNotIn("nodeName", box["status"])
            self.assertIsNone(pod_name_of(box))
            self.assertIsNone(self.get("Pod", "naps"))
            self.assertEqual(uid_of(self.get("Service", "naps")), uid_of(service))
            self.assertEqual(box["status"]["service"], "naps")

            self.assertEqual(self.set_mode("naps", "Running"), 2 * cycle + 1)
            box = self.wait_ready("Sandbox", "naps")
            self.expect_condition(box, "Suspended", "False", "NotSuspended", "Sandbox is not suspended")
            self.expect_condition(box, "Ready", "True", "DependenciesReady", "Pod is Ready; Service Exists")
            self.assertEqual({c["observedGeneration"] for c in box["status"]["conditions"]}, {2 * cycle + 1})
            self.assertGreaterEqual(since(box, "Ready"), since(before, "Ready"))
            pods.append(uid_of(self.get("Pod", "naps")))
            self.wait_log("naps", "naps\n")  # its host name is the same again
        self.assertEqual(len(set(pods)), 3)
        self.assertEqual(uid_of(self.get("Service", "naps")), uid_of(service))
        self.delete("Sandbox", "naps")

    def test_times_stay_while_the_status_stays(self):
        self.create(sandbox("steady"))
        before = self.wait_ready("Sandbox", "steady")
        self.patch("Sandbox", "steady", {"spec": {"podTemplate": {"metadata": {"labels": {"x": "y"}}}}})
        after = self.wait_ready("Sandbox", "steady")
        self.assertEqual(after["metadata"]["generation"], 2)
        for kind in ("Ready", "Suspended", "PodScheduled"):
            self.assertEqual(since(after, kind), since(before, kind))
        self.delete("Sandbox", "steady")

    def test_a_pod_that_cannot_go_yet(self):
        self.create(sandbox("held"))
        self.wait_ready("Sandbox", "held")
        self.patch("Pod", "held", {"metadata": {"finalizers": ["e2e.test/held"]}})
        self.set_mode("held", "Suspended")
        try:
            box = self.wait("Sandbox", "held", lambda box: condition_of(box, "Suspended")["reason"] == "PodTerminating")
            self.expect_condition(box, "Suspended", "False", "PodTerminating", "Pod is terminating. Sandbox is suspending")
            self.expect_condition(box, "Ready", "False", "SandboxSuspended", "Sandbox is suspending")
        finally:
            self.patch("Pod", "held", {"metadata": {"finalizers": None}})
        self.wait_suspended("held")
        self.delete("Sandbox", "held")

    def test_a_pod_that_is_deleted_comes_back(self):
        self.create(sandbox("phoenix"))
        self.wait_ready("Sandbox", "phoenix")
        pod = self.get("Pod", "phoenix")
        self.delete("Pod", "phoenix")

        def is_new_and_ready(box):
            self.assertEqual(without_times([condition_of(box, "Suspended")]), [NOT_SUSPENDED])
            now = self.get("Pod", "phoenix")
            addresses = [ip["ip"] for ip in now["status"].get("podIPs", [])] if now else []
            return now and uid_of(now) != uid_of(pod) and is_ready(box) and box["status"]["podIPs"] == addresses
        self.wait("Sandbox", "phoenix", is_new_and_ready)
        self.delete("Sandbox", "phoenix")

    def test_a_pod_that_is_not_its_own_is_left_alone(self):
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs"}, **pod_template()})
        self.create(sandbox("theirs", operatingMode="Suspended"))
        box = self.wait("Sandbox", "theirs", lambda box: condition_of(box, "Suspended"))
        self.expect_condition(box, "Suspended", "False", "PodNotOwned", "Refused to delete pod because it is not owned by this sandbox")
        self.expect_condition(box, "Ready", "False", "SandboxSuspended", "Sandbox is suspending")
        self.assertNotIn("podIPs", box["status"])
        self.set_mode("theirs", "Running")
        message = self.wait_unready("Sandbox", "theirs", "ReconcilerError")["message"]
        self.assertIn('cannot adopt unowned pod "theirs": missing required pool authorization label', message)
        pod = self.get("Pod", "theirs")
        self.assertNotIn("deletionTimestamp", pod["metadata"])
        self.assertNotIn("ownerReferences", pod["metadata"])
        self.delete("Sandbox", "theirs")
        self.delete("Pod", "theirs")


class EndTest(ClusterTest):
    def test_retained_at_its_time_and_not_before(self):
        self.create(sandbox("retained", service=True, shutdownTime=in_seconds(3600), shutdownPolicy="Retain"))
        self.wait_ready("Sandbox", "retained")
        when = in_seconds(3)
        self.patch("Sandbox", "retained", {"spec": {"shutdownTime": when}})
        self.wait_unready("Sandbox", "retained", "SandboxExpired")
        self.assertGreaterEqual(datetime.datetime.now(datetime.timezone.utc), datetime.datetime.fromisoformat(when))
        self.wait_gone("Pod", "retained")
        self.wait_gone("Service", "retained")
        box = self.wait("Sandbox", "retained", lambda box: set(box["status"]) == {"conditions"}, "without children")
        self.expect_condition(box, "Ready", "False", "SandboxExpired", "Sandbox has expired")
        self.assertIsNone(condition_of(box, "PodScheduled"))
        self.patch("Sandbox", "retained", {"spec": {"shutdownTime": in_seconds(3600)}})
        self.wait_ready("Sandbox", "retained")
        self.delete("Sandbox", "retained")

    def test_deleted_at_its_time(self):
        self.create(sandbox("deleted", service=True))
        self.wait_ready("Sandbox", "deleted")
        self.patch("Sandbox", "deleted", {"spec": {"shutdownTime": in_seconds(0), "shutdownPolicy": "Delete"}})
        for kind in ("Sandbox", "Pod", "Service"):
            self.wait_gone(kind, "deleted")

    def test_finished_is_kept(self):
        for name, command, reason, message in (("good", "exit 0", "PodSucceeded", "Pod completed successfully"),
                                               ("poor", "exit 3", "PodFailed", "Pod failed")):
            self.create(sandbox(name, pod=pod_template(command, restartPolicy="Never")))
            box = self.wait("Sandbox", name, lambda box: condition_of(box, "Finished"), "finished")
            finished = self.expect_condition(box, "Finished", "True", reason, message)
            self.expect_condition(box, "Ready", "False", reason, message)
            self.patch("Sandbox", name, {"spec": {"shutdownTime": in_seconds(0)}})
            self.wait_unready("Sandbox", name, "SandboxExpired")
            self.wait_gone("Pod", name)
            box = self.wait("Sandbox", name, lambda box: set(box["status"]) == {"conditions"})
            kept = self.expect_condition(box, "Finished", "True", reason, message)
            self.assertEqual(kept["lastTransitionTime"], finished["lastTransitionTime"])
            self.delete("Sandbox", name)

    def test_what_failed_can_be_made_again(self):
        self.create(sandbox("again", pod=pod_template("exit 3", restartPolicy="Never"), podFailurePolicy="Recreate"))
        first = {}

        def is_another(pod):
            first.setdefault("uid", uid_of(pod))
            return uid_of(pod) != first["uid"]
        self.wait("Pod", "again", is_another, "made again")
        self.assertIsNone(condition_of(self.get("Sandbox", "again"), "Finished"))
        self.delete("Sandbox", "again")
        self.wait_gone("Sandbox", "again")


class VolumeTest(ClusterTest):
    # What it says, it says when it is written down.
    LIVES = f"before=$(cat /data/lives 2>/dev/null); echo life >> /data/lives; echo before: $before; {STAYS}"

    def with_volume(self, name, **spec):
        volume = {"metadata": {"name": "data", "labels": {"of": "e2e"}},
                  "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}}
        mounts = [{"name": "data", "mountPath": "/data"}]
        return sandbox(name, pod=pod_template(self.LIVES, container={"volumeMounts": mounts}),
                       volumeClaimTemplates=[volume], **spec)

    def test_data_outlives_the_pod(self):
        self.create(self.with_volume("keeps"))
        box = self.wait_ready("Sandbox", "keeps")
        made = self.get("PersistentVolumeClaim", "data-keeps")
        self.assertEqual(owner_of(made), ("agents.x-k8s.io", "Sandbox", "keeps", uid_of(box)))
        self.assertEqual(made["metadata"]["labels"], {"of": "e2e", "agents.x-k8s.io/sandbox-name-hash": name_hash("keeps")})
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-keeps"}}
        self.assertIn(volume, self.get("Pod", "keeps")["spec"]["volumes"])
        self.wait_log("keeps", "before:\n")
        self.run_in("keeps", "echo kept > /data/word")
        pod = self.get("Pod", "keeps")
        self.delete("Pod", "keeps")
        self.wait_gone("Pod", "keeps", uid_of(pod))
        self.wait("Pod", "keeps", is_ready)
        self.wait_log("keeps", "before: life\n")
        self.patch("Sandbox", "keeps", {"spec": {"operatingMode": "Suspended"}})
        self.wait_gone("Pod", "keeps")
        self.assertEqual(uid_of(self.get("PersistentVolumeClaim", "data-keeps")), uid_of(made))
        self.patch("Sandbox", "keeps", {"spec": {"operatingMode": "Running"}})
        self.wait("Pod", "keeps", is_ready)
        self.wait_log("keeps", "before: life life\n")
        self.assertEqual(self.run_in("keeps", "cat /data/word"), "kept\n")
        self.delete("Sandbox", "keeps")
        self.wait_gone("PersistentVolumeClaim", "data-keeps")

    def test_volumes_that_are_retained(self):
        self.create(self.with_volume("heir", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"}))
        self.wait_ready("Sandbox", "heir")
        self.wait_log("heir", "before:\n")
        self.delete("Sandbox", "heir")
        self.wait_gone("Pod", "heir")
        self.create(self.with_volume("heir"))
        self.wait_ready("Sandbox", "heir")
        self.wait_log("heir", "before: life\n")
        self.delete("Sandbox", "heir")

    def test_templates_of_volumes_never_change(self):
        whole = self.with_volume("fixed", operatingMode="Suspended")
        bare = sandbox("bare", operatingMode="Suspended")
        self.create(whole, bare)
        other = json.loads(json.dumps(whole["spec"]["volumeClaimTemplates"]))
        other[0]["spec"]["resources"]["requests"]["storage"] = "32Mi"
        for name, templates in (("fixed", other), ("fixed", None), ("bare", other)):
            answer = self.patch("Sandbox", name, {"spec": {"volumeClaimTemplates": templates}}, expect=(422,))
            self.assertIn("volumeClaimTemplates is immutable", answer["message"])
        self.delete("Sandbox", "fixed")
        self.delete("Sandbox", "bare")


if __name__ == "__main__":
    unittest.main(verbosity=2)
