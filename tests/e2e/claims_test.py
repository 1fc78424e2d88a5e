"""Templates, warm pools and claims as their users know them, through kubectl and HTTP."""
import concurrent.futures
import time
import unittest

from cluster import (IMAGE, STAYS, ClusterTest, claim, condition_of, in_seconds, is_ready, name_hash, owner_of, pod_name_of,
                     pod_template, pool, ready_of, template, uid_of)
from hearth import wait_until

POOL_LABEL = "agents.x-k8s.io/warm-pool-sandbox"
FIRST_READY = "agents.x-k8s.io/claim-first-ready-at"


class ClaimsTest(ClusterTest):
    def members(self, name):
        """The sandboxes that wait in a pool, by name."""
        return {box["metadata"]["name"]: box for box in self.list("Sandbox", f"{POOL_LABEL}={name_hash(name)}")
                if "deletionTimestamp" not in box["metadata"]}

    def wait_full(self, name, count):
        """The pool's members, once there are so many, and ready."""
        members = {}

        def is_full(it):
            nonlocal members
            status = it.get("status", {})
            if (status.get("observedGeneration") != it["metadata"]["generation"]
                    or not status.get("readyReplicas", 0) == status.get("replicas", 0) == count):
                return False
            # What it says may be from before the last one was taken.
            members = self.members(name)
            return len(members) == count and all(map(is_ready, members.values()))
        self.wait("SandboxWarmPool", name, is_full, f"full with {count}")
        return members

    def make_pool(self, name, count, **spec):
        self.create(template(name, **spec), pool(name, name, count))
        return self.wait_full(name, count)

    def get_claimed(self, name):
        """A claim that is ready, and its sandbox."""
        made = self.wait_ready("SandboxClaim", name)
        return made, self.get("Sandbox", made["status"]["sandbox"]["name"])

    def launch_type(self, box):
        return box["metadata"]["labels"]["agents.x-k8s.io/launch-type"]


class QuickstartTest(ClaimsTest):
    def test_the_quickstart(self):
        self.kubectl("apply", "-f", "-", stdin=f"""
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {{name: quick}}
spec:
  podTemplate:
    spec:
      containers:
      - {{name: main, image: "{IMAGE}", command: [sleep, "100000"]}}
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {{name: quick}}
spec: {{replicas: 2, sandboxTemplateRef: {{name: quick}}}}
""")
        waiting = self.wait_full("quick", 2)
        pods = {name: self.get("Pod", name) for name in waiting}
        for name, box in waiting.items():
            self.assertTrue(name.startswith("quick-"), name)
            self.assertEqual(owner_of(box)[1:3], ("SandboxWarmPool", "quick"))
            self.assertEqual(pods[name]["metadata"]["labels"][POOL_LABEL], name_hash("quick"))
            self.assertIs(pods[name]["spec"]["automountServiceAccountToken"], False)
        self.kubectl("apply", "-f", "-", stdin="""
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: quick-claim}
spec: {warmPoolRef: {name: quick}}
""")
        self.kubectl("wait", "--for=condition=Ready", "sandboxclaim/quick-claim", "--timeout=60s")
        made, box = self.get_claimed("quick-claim")
        name = box["metadata"]["name"]
        self.assertIn(name, waiting)
        self.assertEqual(owner_of(box), ("extensions.agents.x-k8s.io", "SandboxClaim", "quick-claim", uid_of(made)))
        self.assertEqual(self.launch_type(box), "warm")
        self.assertNotIn(POOL_LABEL, box["metadata"]["labels"])
        self.assertEqual(box["metadata"]["labels"]["agents.x-k8s.io/claim-uid"], uid_of(made))
        self.expect_condition(made, "Ready", "True", "DependenciesReady", "Pod is Ready")
        self.assertEqual(made["status"]["sandbox"], {"name": name, "podIPs": box["status"]["podIPs"]})
        pod = self.wait("Pod", name, lambda pod: POOL_LABEL not in pod["metadata"]["labels"], "out of the pool")
        self.assertEqual(uid_of(pod), uid_of(pods[name]))
        self.assertEqual(pod["status"]["containerStatuses"], pods[name]["status"]["containerStatuses"])
        self.assertEqual(len(self.wait_full("quick", 2).keys() - {name}), 2)
        table = self.kubectl("get", "sandboxclaim", "quick-claim").splitlines()
        self.assertEqual([line.split()[:4] for line in table],
                         [["NAME", "READY", "SANDBOX", "REASON"], ["quick-claim", "True", name, "DependenciesReady"]])
        self.kubectl("delete", "sandboxclaim", "quick-claim")
        self.wait_gone("Sandbox", name)
        self.wait_gone("Pod", name)

    def test_a_claim_tells_of_its_first_moments(self):
        self.make_pool("moments", 1)
        asked = claim("moments-claim", "moments")
        asked["metadata"]["labels"] = {"agents.x-k8s.io/created-by": "python-client"}
        self.create(asked)
        made = self.wait("SandboxClaim", "moments-claim", lambda it: FIRST_READY in it["metadata"].get("annotations", {}), "annotated")
        told = made["metadata"]["annotations"]
        self.assertEqual(told["agents.x-k8s.io/sandbox-name"], made["status"]["sandbox"]["name"])
        observed, ready = told["agents.x-k8s.io/controller-first-observed-at"], told[FIRST_READY]
        for moment in (observed, ready):
            self.assertRegex(moment, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")
        self.assertLessEqual(observed[:19], ready[:19])
        # Told once: what happens to it later is no first moment.
        self.patch("SandboxClaim", "moments-claim", {"spec": {"additionalPodMetadata": {"labels": {"sandbox.users.io/late": "yes"}}}})
        self.wait("Pod", made["status"]["sandbox"]["name"], lambda pod: pod["metadata"]["labels"].get("sandbox.users.io/late"), "labelled")
        self.assertEqual(self.get("SandboxClaim", "moments-claim")["metadata"]["annotations"], told)

    def test_the_pods_name_is_there_with_ready(self):
        self.make_pool("named", 1)
        self.create(claim("named-claim", "named"))
        seen = set()

        def is_bound_and_ready(made):
            name = made.get("status", {}).get("sandbox", {}).get("name")
            box = name and self.get("Sandbox", name)
            if box and is_ready(box):
                seen.add(pod_name_of(box))
            return is_ready(made)
        name = self.wait("SandboxClaim", "named-claim", is_bound_and_ready)["status"]["sandbox"]["name"]
        self.assertLessEqual(seen, {name})
        pod = self.get("Pod", name)
        self.patch("Pod", name, {"metadata": {"finalizers": ["e2e.test/held"]}})  # else it is back before we look
        try:
            self.delete("Pod", name)
            self.wait("SandboxClaim", "named-claim", lambda made: not is_ready(made), "not ready")
        finally:
            self.patch("Pod", name, {"metadata": {"finalizers": None}})
        self.wait_gone("Pod", name, uid_of(pod))
        _, box = self.get_claimed("named-claim")
        self.assertEqual((box["metadata"]["name"], pod_name_of(box)), (name, name))
        self.delete("SandboxClaim", "named-claim")
        self.delete("SandboxWarmPool", "named")

    def claim_twenty(self, name, size):
        self.make_pool(name, size)
        claims = [f"{name}-claim-{i}" for i in range(20)]
        with concurrent.futures.ThreadPoolExecutor(10) as threads:
            list(threads.map(lambda each: self.create(claim(each, name)), claims))
        boxes = {each: self.get_claimed(each)[1] for each in claims}
        self.assertEqual(len({box["metadata"]["name"] for box in boxes.values()}), 20)
        for each, box in boxes.items():
            self.assertEqual(owner_of(box)[2], each)
            self.assertEqual(self.launch_type(box), "cold" if box["metadata"]["name"] == each else "warm")
        self.delete("SandboxWarmPool", name)
        for each in claims:
            self.delete("SandboxClaim", each)
        for box in boxes.values():
            self.wait_gone("Sandbox", box["metadata"]["name"])
        return [self.launch_type(box) for box in boxes.values()]

    def test_twenty_claims_on_twenty_five(self):
        self.assertEqual(self.claim_twenty("plenty", 25), ["warm"] * 20)

    def test_twenty_claims_on_five(self):
        self.assertGreaterEqual(self.claim_twenty("scarce", 5).count("warm"), 5)


class SupplyTest(ClaimsTest):
    def test_no_such_pool_until_there_is(self):
        self.create(claim("early", "late"))
        self.assertEqual(self.wait_unready("SandboxClaim", "early", "WarmPoolNotFound")["message"], 'SandboxWarmPool "late" not found')
        self.create(pool("late", "later", 0))
        self.assertEqual(self.wait_unready("SandboxClaim", "early", "TemplateNotFound")["message"], 'SandboxTemplate "later" not found')
        self.create(template("later"))
        _, box = self.get_claimed("early")
        self.assertEqual((box["metadata"]["name"], self.launch_type(box)), ("early", "cold"))
        self.delete("SandboxClaim", "early")

    def test_who_waits_gets_what_comes(self):
        self.make_pool("line", 0)
        self.create(claim("patient", "line", whenEmpty="Wait"), claim("hasty", "line", whenEmpty="Fail"),
                    claim("brief", "line", whenEmpty="Wait", waitSeconds=1))
        self.wait_unready("SandboxClaim", "patient", "WaitingForWarmPool")
        self.wait_unready("SandboxClaim", "hasty", "WarmPoolEmpty")
        self.wait_unready("SandboxClaim", "brief", "WarmPoolEmpty")
        self.patch("SandboxWarmPool", "line", {"spec": {"replicas": 1}})
        made, box = self.get_claimed("patient")
        self.assertEqual(self.launch_type(box), "warm")
        self.wait_full("line", 1)
        for name in ("hasty", "brief"):
            self.assertEqual(ready_of(self.get("SandboxClaim", name))["reason"], "WarmPoolEmpty")
        for name in ("patient", "hasty", "brief"):
            self.delete("SandboxClaim", name)
        self.delete("SandboxWarmPool", "line")

    def test_metadata_for_the_pod(self):
        self.make_pool("marked", 1)
        self.create(claim("marks", "marked", additionalPodMetadata={"labels": {"sandbox.users.io/tenant": "t1"}}),
                    claim("cheats", "marked", additionalPodMetadata={"labels": {"app": "sandbox-router"}}))
        _, box = self.get_claimed("marks")
        self.wait("Pod", pod_name_of(box), lambda pod: pod["metadata"]["labels"].get("sandbox.users.io/tenant") == "t1", "labelled")
        self.assertIn('restricted system label value: "app"="sandbox-router"',
                      self.wait_unready("SandboxClaim", "cheats", "InvalidMetadata")["message"])
        for name in ("marks", "cheats"):
            self.delete("SandboxClaim", name)
        self.delete("SandboxWarmPool", "marked")

    def test_variables_need_the_templates_consent(self):
        self.make_pool("strict", 0)
        self.create(claim("asks", "strict", env=[{"name": "A", "value": "1"}]))
        self.assertIn("environment variable injection is not allowed by the template policy",
                      self.wait_unready("SandboxClaim", "asks", "EnvVarsInjectionRejected")["message"])
        self.delete("SandboxClaim", "asks")

    def test_variables_reach_a_cold_sandbox(self):
        self.make_pool("open", 0, envVarsInjectionPolicy="Allowed", command=f"echo $GREETING; {STAYS}")
        self.create(claim("greets", "open", env=[{"name": "GREETING", "value": "good morning"}]))
        _, box = self.get_claimed("greets")
        self.assertEqual(self.launch_type(box), "cold")
        self.wait_log(pod_name_of(box), "good morning\n")
        self.delete("SandboxClaim", "greets")

    def test_variables_do_not_force_a_cold_start(self):
        self.need_our_node("reaching into a warm sandbox")
        self.make_pool("ready", 1, envVarsInjectionPolicy="Allowed")
        self.create(claim("warm", "ready", env=[{"name": "GREETING", "value": "good morning"}],
                          files=[{"path": "/tmp/letter", "content": "dear me\n"}]))
        _, box = self.get_claimed("warm")
        self.assertEqual(self.run_in(pod_name_of(box), "echo $GREETING; cat /tmp/letter"), "good morning\ndear me\n")
        self.delete("SandboxClaim", "warm")
        self.delete("SandboxWarmPool", "ready")
        self.assertEqual(self.launch_type(box), "warm")

    def test_the_scale_of_a_pool(self):
        self.make_pool("scaled", 1)
        scale = self.ask("GET", self.path("SandboxWarmPool", "scaled", "scale"))
        self.assertEqual((scale["apiVersion"], scale["kind"], scale["spec"]), ("autoscaling/v1", "Scale", {"replicas": 1}))
        self.assertEqual(scale["status"], {"replicas": 1, "selector": f"{POOL_LABEL}={name_hash('scaled')}"})
        self.kubectl("scale", "swp", "scaled", "--replicas=4")
        self.wait_full("scaled", 4)
        self.patch("SandboxWarmPool", "scaled", {"spec": {"replicas": 0}}, sub="scale")
        self.wait_full("scaled", 0)
        self.assertNotIn("replicas", self.get("SandboxWarmPool", "scaled")["status"])

    def test_metrics(self):
        self.need_our_node("the metrics of the engine")
        self.make_pool("counted", 1)
        self.create(claim("counts", "counted"))
        self.get_claimed("counts")
        self.wait_full("counted", 1)
        labels = {"namespace": self.namespace, "sandbox_template": "counted"}

        def found(name, **more):
            wanted = [f'{key}="{value}"' for key, value in {**labels, **more}.items()]
            return [value for line, value in self.cluster.metrics().items() if line.startswith(name + "{") and all(w in line for w in wanted)]
        for name, more in (("agent_sandboxes", {"owned_by": "SandboxClaim", "launch_type": "warm", "ready_condition": "true"}),
                           ("agent_sandbox_claim_creation_total", {"launch_type": "warm", "warmpool_name": "counted", "pod_condition": "ready"}),
                           ("agent_sandbox_creation_latency_ms_count", {"launch_type": "warm"}),
                           ("agent_sandbox_warmpool_size", {"warmpool_name": "counted", "sandbox_status": "ready"})):
            wait_until(lambda: found(name, **more) == [1], what=f"{name} of {more}")
        self.delete("SandboxClaim", "counts")
        self.delete("SandboxWarmPool", "counted")


class ExpiryTest(ClaimsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for thing in (template("lives"), pool("lives", "lives", 0),
                      template("ends", pod=pod_template("exit 0", restartPolicy="Never")), pool("ends", "ends", 0)):
            plural = {"SandboxTemplate": "sandboxtemplates", "SandboxWarmPool": "sandboxwarmpools"}[thing["kind"]]
            status, said = cls.cluster.api.ask("POST", f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{cls.namespace}/{plural}", thing)
            assert status == 201, said

    def bind(self, name, pool_name="lives", **lifecycle):
        self.create(claim(name, pool_name, **({"lifecycle": lifecycle} if lifecycle else {})))
        return self.wait_ready("SandboxClaim", name) if pool_name == "lives" else None

    def expect_retained(self, name):
        self.assertEqual(self.wait_unready("SandboxClaim", name, "ClaimExpired")["message"], "Claim expired. Sandbox cleanup initiated.")
        self.wait_gone("Sandbox", name)
        self.wait_gone("Pod", name)
        self.assertEqual(ready_of(self.get("SandboxClaim", name))["reason"], "ClaimExpired")

    def expect_held_together(self, name):
        """Claim and sandbox stay, on their way out, for as long as the pod does."""
        for kind in ("SandboxClaim", "Sandbox", "Pod"):
            thing = self.wait(kind, name, lambda thing: "deletionTimestamp" in thing["metadata"], "on its way out")
            if kind != "Pod":
                self.assertIn("foregroundDeletion", thing["metadata"]["finalizers"])
        self.patch("Pod", name, {"metadata": {"finalizers": None}})
        for kind in ("Pod", "Sandbox", "SandboxClaim"):
            self.wait_gone(kind, name)

    def hold_pod(self, name):
        self.wait("Pod", name, lambda pod: True)
        self.patch("Pod", name, {"metadata": {"finalizers": ["e2e.test/held"]}})

    def end_now(self, name):
        self.patch("SandboxClaim", name, {"spec": {"lifecycle": {"shutdownTime": in_seconds(0)}}})

    def test_retain(self):
        self.bind("retain", shutdownPolicy="Retain", shutdownTime=in_seconds(3600))
        self.end_now("retain")
        self.expect_retained("retain")

    def test_delete(self):
        self.bind("delete", shutdownPolicy="Delete", shutdownTime=in_seconds(3600))
        self.end_now("delete")
        for kind in ("SandboxClaim", "Sandbox", "Pod"):
            self.wait_gone(kind, "delete")

    def test_delete_in_the_foreground(self):
        self.bind("foreground", shutdownPolicy="DeleteForeground", shutdownTime=in_seconds(3600))
        self.hold_pod("foreground")
        self.end_now("foreground")
        self.expect_held_together("foreground")

    def test_nothing_said_nothing_ends(self):
        self.bind("idle", "ends")
        made = self.wait("SandboxClaim", "idle", lambda made: condition_of(made, "Finished"), "finished")
        self.expect_condition(made, "Finished", "True", "PodSucceeded", "Pod completed successfully")
        self.expect_condition(made, "Ready", "False", "PodSucceeded", "Pod completed successfully")
        self.assertIsNotNone(self.get("Sandbox", "idle"))
        # Time after the end is the earlier of two.
        self.patch("SandboxClaim", "idle", {"spec": {"lifecycle": {"ttlSecondsAfterFinished": 0, "shutdownTime": in_seconds(3600)}}})
        self.expect_retained("idle")
        self.expect_condition(self.get("SandboxClaim", "idle"), "Finished", "True", "PodSucceeded", "Pod completed successfully")

    def test_a_while_after_the_end(self):
        self.bind("soon", "ends", ttlSecondsAfterFinished=2, shutdownPolicy="Delete")
        begin = time.monotonic()
        for kind in ("SandboxClaim", "Sandbox", "Pod"):
            self.wait_gone(kind, "soon")
        self.assertGreater(time.monotonic() - begin, 1)  # times have seconds

    def test_a_while_after_the_end_in_the_foreground(self):
        self.bind("slow", "ends", ttlSecondsAfterFinished=3600, shutdownPolicy="DeleteForeground")
        self.wait("SandboxClaim", "slow", lambda made: condition_of(made, "Finished"), "finished")
        self.hold_pod("slow")
        self.patch("SandboxClaim", "slow", {"spec": {"lifecycle": {"ttlSecondsAfterFinished": 0}}})
        self.expect_held_together("slow")

    def test_a_lease_that_nobody_renews(self):
        self.bind("leased", leaseDurationSeconds=3600, shutdownPolicy="Delete")
        renewed = in_seconds(3)
        self.patch("SandboxClaim", "leased", {"metadata": {"annotations": {"hearth.dev/renewed-at": renewed}},
                                              "spec": {"lifecycle": {"leaseDurationSeconds": 1}}})
        for kind in ("SandboxClaim", "Sandbox", "Pod"):
            self.wait_gone(kind, "leased")
        self.assertGreater(in_seconds(0), renewed)


class RolloutTest(ClaimsTest):
    def roll(self, name, value):
        container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", STAYS], "env": [{"name": "ROLLED", "value": value}]}
        self.patch("SandboxTemplate", name, {"spec": {"podTemplate": {"spec": {"containers": [container]}}}})

    def value_of(self, box):
        return {e["name"]: e["value"] for e in box["spec"]["podTemplate"]["spec"]["containers"][0].get("env", [])}.get("ROLLED")

    def test_replaced_as_they_are_taken(self):
        for name, strategy in (("usual", {}), ("replenish", {"updateStrategy": {"type": "OnReplenish"}})):
            self.create(template(name), pool(name, name, 2, **strategy))
            before = self.wait_full(name, 2)
            self.roll(name, "new")
            self.create(claim(name, name))
            _, box = self.get_claimed(name)
            self.assertIn(box["metadata"]["name"], before)
            self.assertIsNone(self.value_of(box))
            after = self.wait_full(name, 2)
            self.assertEqual(sorted(self.value_of(member) or "" for member in after.values()), ["", "new"])
            self.assertEqual(len(after.keys() & before.keys()), 1)
            self.delete("SandboxClaim", name)
            self.delete("SandboxWarmPool", name)

    def test_replaced_at_once(self):
        recreate = {"updateStrategy": {"type": "Recreate"}}
        self.create(template("recreate"), pool("recreate", "recreate", 3, **recreate),
                    template("other"), pool("other", "other", 1, **recreate))
        self.wait_full("recreate", 3)
        others = self.wait_full("other", 1)
        self.create(claim("taken", "recreate"))
        _, taken = self.get_claimed("taken")
        before = self.wait_full("recreate", 3)
        self.roll("recreate", "new")
        wait_until(lambda: [self.value_of(box) for box in self.members("recreate").values()] == ["new"] * 3, 60, "the rollout")
        self.assertFalse(self.wait_full("recreate", 3).keys() & before.keys())
        self.assertEqual(uid_of(self.get("Sandbox", taken["metadata"]["name"])), uid_of(taken))
        self.assertEqual(self.members("other").keys(), others.keys())
        # Another template, even an equal one, is another template.
        before = self.members("recreate")
        self.create(template("equal"))
        self.roll("equal", "new")
        self.patch("SandboxWarmPool", "recreate", {"spec": {"sandboxTemplateRef": {"name": "equal"}}})
        wait_until(lambda: not self.members("recreate").keys() & before.keys(), 60, "the switch of the template")
        self.wait_full("recreate", 3)
        for name in ("recreate", "other"):
            self.delete("SandboxWarmPool", name)
        self.delete("SandboxClaim", "taken")

    def test_labels_alone_replace_nobody(self):
        self.create(template("labels"), pool("labels", "labels", 2, updateStrategy={"type": "Recreate"}))
        before = self.wait_full("labels", 2)
        self.patch("SandboxTemplate", "labels", {"spec": {"podTemplate": {"metadata": {"labels": {"some": "label"}}}}})
        self.patch("SandboxWarmPool", "labels", {"spec": {"replicas": 3}})  # a pass that has seen it
        after = self.wait_full("labels", 3)
        self.assertLess(before.keys(), after.keys())
        self.delete("SandboxWarmPool", "labels")


class NetworkPolicyTest(ClaimsTest):
    def test_the_policy_of_a_template(self):
        [made] = self.create(template("guarded"))
        policy = self.wait("NetworkPolicy", "guarded-network-policy", lambda policy: True)
        self.assertEqual(owner_of(policy), ("extensions.agents.x-k8s.io", "SandboxTemplate", "guarded", uid_of(made)))
        spec = policy["spec"]
        self.assertEqual(spec["podSelector"], {"matchLabels": {"agents.x-k8s.io/sandbox-template-ref-hash": name_hash("guarded")}})
        self.assertEqual(spec["policyTypes"], ["Ingress", "Egress"])
        self.assertEqual(spec["ingress"], [{"from": [{"podSelector": {"matchLabels": {"app": "sandbox-router"}}, "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": "agent-sandbox-system"}}}]}])
        self.assertEqual([to["ipBlock"] for rule in spec["egress"] for to in rule["to"]], [
            {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"]},
            {"cidr": "::/0", "except": ["fc00::/7", "fe80::/10"]}])
        self.patch("NetworkPolicy", "guarded-network-policy", {"spec": {"ingress": None}})
        self.wait("NetworkPolicy", "guarded-network-policy", lambda policy: policy["spec"].get("ingress") == spec["ingress"], "repaired")
        self.patch("SandboxTemplate", "guarded", {"spec": {"networkPolicy": {"egress": [{"ports": [{"port": 443, "protocol": "TCP"}]}]}}})
        self.wait("NetworkPolicy", "guarded-network-policy", lambda policy: "ingress" not in policy["spec"] and
                  policy["spec"]["egress"] == [{"ports": [{"port": 443, "protocol": "TCP"}]}], "the template's own")
        self.patch("SandboxTemplate", "guarded", {"spec": {"networkPolicyManagement": "Unmanaged"}})
        self.wait_gone("NetworkPolicy", "guarded-network-policy")
        labels = self.get("SandboxTemplate", "guarded")["metadata"]["labels"]
        self.assertEqual(labels["agents.x-k8s.io/sandbox-template-ref-hash"], name_hash("guarded"))

    def test_somebody_elses_policy_is_left_alone(self):
        theirs = {"podSelector": {"matchLabels": {"a": "b"}}, "policyTypes": ["Ingress"]}
        self.create({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "shared-network-policy"}, "spec": theirs})
        self.create(template("shared"))
        self.wait("SandboxTemplate", "shared", lambda made: made["metadata"].get("labels"), "labelled")
        self.patch("SandboxTemplate", "shared", {"spec": {"networkPolicyManagement": "Unmanaged"}})
        self.assertEqual(self.get("NetworkPolicy", "shared-network-policy")["spec"], theirs)


if __name__ == "__main__":
    unittest.main(verbosity=2)
