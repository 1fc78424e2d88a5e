"""The Python SDK of Kubernetes' agent-sandbox, unchanged, against `hearth up`: sandboxes from a warm pool, used and ended.

Or against the cluster that HEARTH_E2E_KUBECONFIG names, if its pods can be reached from here.
"""
import asyncio
import os
import pathlib
import sys
import unittest

from client_venv import AGENT_SANDBOX, run_with

if __name__ == "__main__":
    run_with(AGENT_SANDBOX)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import cluster  # noqa: E402
from hearth import wait_until  # noqa: E402
from k8s_agent_sandbox import AsyncSandboxClient, SandboxClient  # noqa: E402
from k8s_agent_sandbox.exceptions import SandboxNotFoundError, SandboxWarmPoolNotFoundError  # noqa: E402
from k8s_agent_sandbox.models import SandboxInClusterConnectionConfig  # noqa: E402
from kubernetes import config  # noqa: E402
import kubernetes_asyncio.config.kube_config as async_config  # noqa: E402

POOL = "python-pool"


class PoolTest(cluster.ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # What $KUBECONFIG said when the clients were imported.
        config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION = cls.cluster.kubeconfig
        async_config.KUBE_CONFIG_DEFAULT_LOCATION = cls.cluster.kubeconfig
        os.environ["KUBECONFIG"] = cls.cluster.kubeconfig

    def setUp(self):
        # No command: the guest serves the SDK's runtime.
        self.create(cluster.template(POOL, command=None, envVarsInjectionPolicy="Allowed"), cluster.pool(POOL, POOL, 2))
        self.addCleanup(self.empty)
        self.wait("SandboxWarmPool", POOL, lambda it: it.get("status", {}).get("readyReplicas") == 2, "full")
        self.need_guest()

    def need_guest(self):
        """On somebody else's node the controller puts it into the pods, if it was told to."""
        firsts = [pod["spec"].get("initContainers", [{}])[0].get("name") for pod in self.list("Pod")]
        if cluster.KUBECONFIG and set(firsts) != {"hearth-guest"}:
            self.skipTest("needs `hearth controller --guest-image`: else the pods serve nothing on port 8888")

    def empty(self):
        for kind in ("SandboxClaim", "SandboxWarmPool", "SandboxTemplate"):
            self.ask("DELETE", self.path(kind))
        wait_until(lambda: not self.list("Sandbox"), 60, "the end of all sandboxes")

    def members(self):
        return {box["metadata"]["name"] for box in self.list("Sandbox", "agents.x-k8s.io/warm-pool-sandbox")}

    def test_a_life(self):
        client = SandboxClient(connection_config=SandboxInClusterConnectionConfig())
        members = self.members()
        box = client.create_sandbox(POOL, namespace=self.namespace, sandbox_ready_timeout=60, labels={"team": "a"},
                                    pod_labels={"sandbox.users.io/tenant": "t1"}, shutdown_after_seconds=600)
        self.assertIn(box.sandbox_id, members)
        self.assertEqual(box.get_pod_name(), box.sandbox_id)
        self.assertEqual(box.get_pod_ip(), self.get("Pod", box.sandbox_id)["status"]["podIP"])

        result = box.commands.run("sh -c 'echo out; echo err >&2; exit 3'")
        self.assertEqual((result.stdout, result.stderr, result.exit_code), ("out\n", "err\n", 3))
        self.assertEqual(box.commands.run("hostname").stdout.strip(), box.sandbox_id)
        box.files.write("notes/a.txt", "written by the client")
        self.assertEqual(box.files.read("notes/a.txt"), b"written by the client")
        self.assertEqual(box.commands.run("cat notes/a.txt").stdout, "written by the client")
        self.assertEqual([(entry.name, entry.size) for entry in box.files.list("notes")], [("a.txt", 21)])
        self.assertTrue(box.files.exists("notes/a.txt"))
        self.assertFalse(box.files.exists("notes/b.txt"))

        name = box.claim_name
        self.assertEqual(client.list_active_sandboxes(), [(self.namespace, name)])
        self.assertEqual(client.list_all_sandboxes(self.namespace, label_selector="team=a"), [name])
        self.assertEqual(client.list_all_sandboxes(self.namespace, label_selector="team=b"), [])
        self.assertEqual(client.get_sandbox_claim_warmpool_name(name, self.namespace), POOL)
        again = SandboxClient(connection_config=SandboxInClusterConnectionConfig()).get_sandbox(name, self.namespace)
        self.assertEqual(again.files.read("notes/a.txt"), b"written by the client")

        box.terminate()
        self.wait_gone("SandboxClaim", name)
        self.wait_gone("Sandbox", box.sandbox_id)
        self.wait_gone("Pod", box.sandbox_id)
        with self.assertRaises(SandboxNotFoundError):
            client.get_sandbox(name, self.namespace, resolve_timeout=1)

    def test_variables(self):
        client = SandboxClient(connection_config=SandboxInClusterConnectionConfig())
        box = client.create_sandbox(POOL, namespace=self.namespace, sandbox_ready_timeout=60, env={"GREETING": "good morning"})
        self.assertEqual(box.commands.run("sh -c 'echo $GREETING'").stdout, "good morning\n")
        box.terminate()

    def test_more_than_there_are(self):
        client = SandboxClient(connection_config=SandboxInClusterConnectionConfig())
        boxes = [client.create_sandbox(POOL, namespace=self.namespace, sandbox_ready_timeout=60) for _ in range(5)]
        self.assertEqual(len({box.sandbox_id for box in boxes}), 5)
        self.assertEqual({box.commands.run("hostname").stdout.strip() for box in boxes}, {box.sandbox_id for box in boxes})
        client.delete_all()
        self.assertEqual(client.list_active_sandboxes(), [])
        wait_until(lambda: not self.list("SandboxClaim"), 60, "the end of all claims")

    def test_no_such_pool(self):
        client = SandboxClient(connection_config=SandboxInClusterConnectionConfig())
        with self.assertRaises(SandboxWarmPoolNotFoundError):
            client.create_sandbox("other", namespace=self.namespace, sandbox_ready_timeout=60)
        wait_until(lambda: not self.list("SandboxClaim"), what="the end of the claim")

    def test_a_life_without_waiting(self):
        async def live():
            async with AsyncSandboxClient(connection_config=SandboxInClusterConnectionConfig()) as client:
                members = self.members()
                boxes = await asyncio.gather(*(client.create_sandbox(POOL, namespace=self.namespace, sandbox_ready_timeout=60)
                                               for _ in range(2)))
                self.assertEqual({box.sandbox_id for box in boxes}, members)
                first, second = boxes
                results = await asyncio.gather(*(box.commands.run("hostname") for box in boxes))
                self.assertEqual([result.stdout.strip() for result in results], [first.sandbox_id, second.sandbox_id])
                await first.files.write("notes/a.txt", "text")
                self.assertEqual(await first.files.read("notes/a.txt"), b"text")
                self.assertTrue(await first.files.exists("notes/a.txt"))
                self.assertFalse(await second.files.exists("notes/a.txt"))
                # Of a folder by name: httpx makes /list of /list/. before it asks.
                self.assertEqual([entry.name for entry in await first.files.list("notes")], ["a.txt"])
                again = await client.get_sandbox(first.claim_name, self.namespace)
                self.assertEqual(again.sandbox_id, first.sandbox_id)
                self.assertEqual(sorted(await client.list_all_sandboxes(self.namespace)), sorted(box.claim_name for box in boxes))
                # Before the end: a handle forgets its claim then.
                names = [(box.claim_name, box.sandbox_id) for box in boxes]
                for box in boxes:
                    await box.terminate()
                return names
        for claim_name, sandbox in asyncio.run(live()):
            self.wait_gone("SandboxClaim", claim_name)
            self.wait_gone("Pod", sandbox)


if __name__ == "__main__":
    unittest.main(verbosity=2)
