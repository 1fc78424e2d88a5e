"""Many claims at once, and an engine that is killed under them: nobody shares a sandbox, nobody goes without, nothing leaks."""
import concurrent.futures
import http.client
import threading
import time
import unittest

from cluster import KUBECONFIG, ClusterTest, claim, is_ready, name_hash, owner_of, pool, template
from hearth import wait_until

CLAIMS, SIZE = (60, 10) if KUBECONFIG else (500, 100)
SECONDS = 180  # all of them, on a machine that is busy
CALLERS = 16


class RushTest(ClusterTest):
    engine_options = ("--warm", "40")

    def setUp(self):
        self.is_up = threading.Event()
        self.is_up.set()

    def fill(self, name, size):
        """The names of a pool's members."""
        # No command: on our node the guest alone is the cheapest service.
        command = None if self.cluster.engine else "exec sleep 100000"
        self.create(template(name, command), pool(name, name, size))
        self.wait("SandboxWarmPool", name, lambda it: it.get("status", {}).get("readyReplicas") == size, "full", SECONDS)
        return {box["metadata"]["name"] for box in self.list("Sandbox", f"agents.x-k8s.io/warm-pool-sandbox={name_hash(name)}")}

    def insist(self, thing):
        """Until it is known to be there, as a client that wants its sandbox does."""
        for _ in range(20):
            self.assertTrue(self.is_up.wait(SECONDS))
            try:
                status, said = self.api.ask("POST", self.path(thing["kind"]), thing)
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)  # it was killed; whoever did that is about to say so
                continue
            self.assertIn(status, (201, 409), said)
            return
        self.fail(f"{thing['metadata']['name']} cannot be made")

    def all_ready(self, names):
        """{claim: name of its sandbox}"""
        given = {}

        def are_ready():
            time.sleep(0.3)
            claims = self.list("SandboxClaim")
            given.update({it["metadata"]["name"]: it["status"]["sandbox"]["name"] for it in claims if is_ready(it)})
            return given.keys() >= names
        try:
            wait_until(are_ready, SECONDS)
        except AssertionError:
            left = [it for it in self.list("SandboxClaim") if not is_ready(it)]
            self.fail(f"{len(left)} claims are not ready, such as {left[:1]}")
        return given

    def expect_one_each(self, given):
        """The sandboxes by name. Each has the owner that names it, and no claim has another one."""
        self.assertEqual(len(set(given.values())), len(given), "a sandbox was given away twice")
        boxes = {box["metadata"]["name"]: box for box in self.list("Sandbox")}
        owned = {}
        for name, box in boxes.items():
            _, kind, owner, _ = owner_of(box)
            if kind == "SandboxClaim":
                self.assertNotIn(owner, owned, f"{owner} has {name} and {owned.get(owner)}")
                owned[owner] = name
        self.assertEqual(owned, given)
        return boxes

    def expect_nothing_left(self, name):
        self.delete("SandboxWarmPool", name)
        self.ask("DELETE", self.path("SandboxClaim"))
        wait_until(lambda: not self.list("Sandbox"), SECONDS, "the end of all sandboxes")
        wait_until(lambda: not self.list("Pod"), SECONDS, "the end of all pods")
        if self.cluster.engine:
            wait_until(lambda: not self.cluster.engine.sandboxes(), SECONDS, "the end of what the runtime has")

    def test_many_at_once(self):
        members = self.fill("rush", SIZE)
        names = [f"c-{i}" for i in range(CLAIMS)]
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(lambda name: self.insist(claim(name, "rush")), names))
        given = self.all_ready(set(names))
        print(f"{CLAIMS} claims on {SIZE} ready after {time.monotonic() - begin:.1f} s", flush=True)
        boxes = self.expect_one_each(given)
        self.assertLessEqual(members, set(given.values()), "a warm sandbox was left over")
        for each, box in given.items():
            launched = boxes[box]["metadata"]["labels"]["agents.x-k8s.io/launch-type"]
            self.assertEqual(launched, "cold" if box == each else "warm")
        self.expect_nothing_left("rush")

    def kill_when(self, condition):
        wait_until(condition, SECONDS, "the moment to kill the engine")
        self.is_up.clear()
        self.cluster.kill_and_start()
        self.is_up.set()

    def test_killed_in_the_middle(self):
        self.need_our_node("killing the engine")
        members = self.fill("doomed", 20)
        names = [f"k-{i}" for i in range(80)]
        made = []

        def make(name):
            self.insist(claim(name, "doomed"))
            made.append(name)
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            wishes = [threads.submit(make, name) for name in names]
            for moment in (15, 50):
                self.kill_when(lambda: len(made) >= moment)
            for wish in wishes:
                wish.result(SECONDS)
        given = self.all_ready(set(names))
        self.expect_one_each(given)
        self.assertLessEqual(members, set(given.values()), "a warm sandbox was left over")
        self.expect_nothing_left("doomed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
