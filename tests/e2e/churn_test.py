"""Controllers while everything changes under them and the engine is killed: in the end the objects say the truth, and nothing
is double or left over."""
import concurrent.futures
import contextlib
import http.client
import random
import threading
import time
import unittest

from cluster import (IMAGE, STAYS, ClusterTest, claim, condition_of, in_seconds, is_current, is_ready, name_hash, owner_of, pool,
                     sandbox, template)
from hearth import wait_until

SECONDS = 120  # until all is said and done, on a machine that is busy
POOL_LABEL = "agents.x-k8s.io/warm-pool-sandbox"


def is_leaving(thing):
    return "deletionTimestamp" in thing["metadata"]


class ChurnTest(ClusterTest):
    def setUp(self):
        self.need_our_node("killing the engine")
        self.random = random.Random(7)
        self.is_up = threading.Event()
        self.is_up.set()
        self.addCleanup(self.expect_nothing_left)

    def kill_engine(self):
        self.is_up.clear()
        self.cluster.kill_and_start()
        self.is_up.set()

    def insist(self, method, path, body=None, kind="application/json", expect=(200, 201, 202)):
        """Until somebody has answered, and said something that was expected."""
        for _ in range(50):
            self.assertTrue(self.is_up.wait(SECONDS))
            with contextlib.suppress(OSError, http.client.HTTPException):
                status, said = self.api.ask(method, path, body, kind)
                self.assertIn(status, expect, f"{method} {path}: {said}")
                return said
            time.sleep(0.1)  # it was killed; whoever did that is about to say so
        self.fail(f"{method} {path}: nobody answers")

    def insist_on(self, *things):
        for thing in things:
            self.insist("POST", self.path(thing["kind"]), thing, expect=(201, 409))

    def insist_on_end(self, kind, name):
        self.insist("DELETE", self.path(kind, name), expect=(200, 202, 404))

    def insist_on_change(self, kind, name, spec):
        self.insist("PATCH", self.path(kind, name), {"spec": spec}, "application/merge-patch+json")

    def run_all(self, *jobs):
        """Side by side; throws what one of them throws."""
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as threads:
            for job in [threads.submit(job) for job in jobs]:
                job.result(3 * SECONDS)

    def members(self, name):
        return [box for box in self.list("Sandbox", f"{POOL_LABEL}={name_hash(name)}") if not is_leaving(box)]

    def is_full(self, name):
        it = self.get("SandboxWarmPool", name)
        status = it.get("status", {})
        counts = {it["spec"]["replicas"], status.get("replicas", 0), status.get("readyReplicas", 0), len(self.members(name))}
        return len(counts) == 1 and status.get("observedGeneration") == it["metadata"]["generation"]

    def wait_for(self, condition, what):
        def is_met():
            time.sleep(0.1)
            return condition()
        wait_until(is_met, SECONDS, what)

    def expect_truth(self, *pools):
        """Every claim has a sandbox of its own, every sandbox an owner, every pod a sandbox and every container a pod."""
        for name in pools:
            self.wait_for(lambda: self.is_full(name), f"pool {name} full: {self.get('SandboxWarmPool', name)}")
        self.wait_for(lambda: all(map(is_ready, self.list("SandboxClaim"))), "a sandbox for every claim")
        given = {it["metadata"]["name"]: it["status"]["sandbox"]["name"] for it in self.list("SandboxClaim")}
        self.assertEqual(len(set(given.values())), len(given), "a sandbox was given away twice")

        def boxes_without_owner():
            waiting = {box["metadata"]["name"] for name in pools for box in self.members(name)}
            return {box["metadata"]["name"] for box in self.list("Sandbox")
                    if "ownerReferences" in box["metadata"]} ^ waiting ^ set(given.values())
        self.wait_for(lambda: not boxes_without_owner(), "an owner for every sandbox")
        for box in self.list("Sandbox"):
            if box["metadata"]["name"] in given.values():
                _, kind, owner, _ = owner_of(box)
                self.assertEqual((kind, given[owner]), ("SandboxClaim", box["metadata"]["name"]))

        def strange_pods():
            running = {box["metadata"]["uid"] for box in self.list("Sandbox") if box["spec"].get("operatingMode") != "Suspended"}
            return sorted(running ^ {owner_of(pod)[3] for pod in self.list("Pod")})
        self.wait_for(lambda: not strange_pods(), "one pod for every sandbox that runs")

        def strange_containers():
            named = [status["containerID"] for pod in self.list("Pod") for status in pod["status"]["containerStatuses"]]
            return sorted(named) != sorted(f"hearth://{box['id']}" for box in self.cluster.engine.sandboxes())
        self.wait_for(lambda: not strange_containers(), "the runtime to have what the pods name")

    def expect_nothing_left(self):
        for kind in ("SandboxWarmPool", "SandboxClaim", "Sandbox"):
            self.ask("DELETE", self.path(kind))
        for kind in ("SandboxClaim", "Sandbox", "Pod", "PersistentVolumeClaim"):
            self.wait_for(lambda: not self.list(kind), f"the end of every {kind}")
        self.wait_for(lambda: not self.cluster.engine.sandboxes(), "the end of what the runtime has")

    def roll(self, name, value):
        container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", STAYS], "env": [{"name": "ROLLED", "value": value}]}
        self.insist_on_change("SandboxTemplate", name, {"podTemplate": {"spec": {"containers": [container]}}})

    def value_of(self, box):
        env = box["spec"]["podTemplate"]["spec"]["containers"][0].get("env", [])
        return next((each["value"] for each in env if each["name"] == "ROLLED"), "")

    def churn(self, strategy):
        """A pool is rolled and resized, its claims come and go, and the engine dies twice."""
        name = strategy.lower()
        self.create(template(name), pool(name, name, 6, updateStrategy={"type": strategy}))
        self.wait_for(lambda: self.is_full(name), "a full pool")

        def come_and_go():
            for i in range(40):
                self.insist_on(claim(f"{name}-{i}", name))
                if i % 4:
                    time.sleep(self.random.uniform(0, 0.05))
                    self.insist_on_end("SandboxClaim", f"{name}-{i}")

        def roll():
            for i in range(6):
                self.roll(name, f"v{i}")
                time.sleep(self.random.uniform(0, 0.8))

        def resize():
            for size in (0, 6, 2, 0, 5, 4):
                self.insist_on_change("SandboxWarmPool", name, {"replicas": size})
                time.sleep(self.random.uniform(0, 0.8))

        def kill():
            for _ in range(2):
                time.sleep(self.random.uniform(0.5, 1.5))
                self.kill_engine()
        self.run_all(come_and_go, roll, resize, kill)
        self.expect_truth(name)
        return {self.value_of(box) for box in self.members(name)}

    def test_recreate_under_claims(self):
        self.assertEqual(self.churn("Recreate"), {"v5"})

    def test_replenish_under_claims(self):
        self.churn("OnReplenish")
        # What is made from now on is new.
        self.insist_on_change("SandboxWarmPool", "onreplenish", {"replicas": 0})
        self.wait_for(lambda: self.is_full("onreplenish"), "an empty pool")
        self.insist_on_change("SandboxWarmPool", "onreplenish", {"replicas": 3})
        self.expect_truth("onreplenish")
        self.assertEqual({self.value_of(box) for box in self.members("onreplenish")}, {"v5"})

    def test_claims_that_are_deleted_while_they_are_bound(self):
        self.create(template("hasty"), pool("hasty", "hasty", 8))
        self.wait_for(lambda: self.is_full("hasty"), "a full pool")

        def change_minds(first):
            for i in range(first, 90, 3):
                self.insist_on(claim(f"hasty-{i}", "hasty"))
                time.sleep(self.random.choice((0, 0.002, 0.01, 0.03)))
                self.insist_on_end("SandboxClaim", f"hasty-{i}")

        def kill():
            time.sleep(0.6)
            self.kill_engine()
        self.run_all(*(lambda first=first: change_minds(first) for first in range(3)), kill)
        self.wait_for(lambda: not self.list("SandboxClaim"), "the end of all claims")
        self.expect_truth("hasty")

    def test_suspended_and_resumed_in_a_hurry(self):
        names = [f"restless-{i}" for i in range(6)]
        self.create(*map(sandbox, names))
        ends = {}

        def toggle(name):
            for i in range(15):
                ends[name] = self.random.choice(("Running", "Suspended"))
                self.insist_on_change("Sandbox", name, {"operatingMode": ends[name]})
                time.sleep(self.random.choice((0, 0.01, 0.1, 0.3)))

        def kill():
            time.sleep(1)
            self.kill_engine()
        self.run_all(*(lambda name=name: toggle(name) for name in names), kill)

        def is_settled(box):
            is_suspended = (condition_of(box, "Suspended") or {}).get("status") == "True"
            return is_current(box) and (is_suspended, is_ready(box)) == (ends[box["metadata"]["name"]] == "Suspended",
                                                                         ends[box["metadata"]["name"]] == "Running")
        self.wait_for(lambda: all(map(is_settled, self.list("Sandbox"))), f"{ends}")
        self.expect_truth()

    def test_time_is_up_while_suspended(self):
        for policy in ("Retain", "Delete"):
            for when in ("asleep", "away"):
                self.create(sandbox(f"{policy.lower()}-{when}", operatingMode="Running"))
        for box in self.list("Sandbox"):
            self.wait_ready("Sandbox", box["metadata"]["name"])
            self.insist_on_change("Sandbox", box["metadata"]["name"], {"operatingMode": "Suspended"})
        self.wait_for(lambda: not self.list("Pod"), "the end of the pods")
        for policy in ("Retain", "Delete"):
            for when, seconds in (("asleep", 1), ("away", 2)):
                self.insist_on_change("Sandbox", f"{policy.lower()}-{when}",
                                      {"shutdownTime": in_seconds(seconds), "shutdownPolicy": policy})
        self.kill_engine()
        for when in ("asleep", "away"):
            self.wait_gone("Sandbox", f"delete-{when}")
            box = self.wait("Sandbox", f"retain-{when}", lambda box: (condition_of(box, "Ready") or {}).get("reason") == "SandboxExpired")
            self.assertEqual(condition_of(box, "Ready")["status"], "False")
            # Nobody wakes the dead.
            self.insist_on_change("Sandbox", f"retain-{when}", {"operatingMode": "Running"})
            self.wait("Sandbox", f"retain-{when}", is_current)
        self.assertEqual(self.list("Pod"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
