"""get, describe, claim, pool and template on a real engine: what people see without kubectl."""
import json
import os
import signal
import subprocess
import tempfile
import unittest

from cluster import is_ready, name_hash
from hearth import HEARTH, Engine, expect_host_as_before, host_state, need_root, wait_until


class KubeVerbsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        cls.before = host_state()
        cls.engine = Engine().start("--warm", "4", "--node-name", "here")
        cls.run_ok("template", "create", "py", "--image", "host", "--memory", "128Mi", "--env-policy", "allowed")
        cls.run_ok("pool", "create", "py", "--template", "py", "--replicas", "2")
        wait_until(cls.pool_is_full, what="a full pool")

    @classmethod
    def tearDownClass(cls):
        cls.engine.remove()
        expect_host_as_before(cls.before)

    def tearDown(self):
        names = self.names("claims")
        if names:
            self.run_ok("claim", "delete", *names)
        wait_until(lambda: not self.names("claims"), 30, "the end of all claims")

    @classmethod
    def run_ok(cls, *words, **kwargs):
        result = cls.engine.hearth(*words, **kwargs)
        assert result.returncode == 0, (words, result.returncode, result.stderr)
        return result.stdout

    @classmethod
    def pool_is_full(cls):
        """What its status says may be from before the last one was taken."""
        boxes = json.loads(cls.run_ok("get", "sandboxes", "-l", f"agents.x-k8s.io/warm-pool-sandbox={name_hash('py')}",
                                      "-o", "json"))["items"]
        return len([box for box in boxes if "deletionTimestamp" not in box["metadata"] and is_ready(box)]) == 2

    def names(self, kind):
        return [line.partition("/")[2] for line in self.run_ok("get", kind, "-o", "name").splitlines()]

    def fails(self, code, part, *words):
        result = self.engine.hearth(*words)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(part, result.stderr)
        self.assertEqual(result.stdout, "")

    def follow(self, *words):
        """A verb that goes on, and the file it writes to."""
        output = tempfile.NamedTemporaryFile("w+")
        self.addCleanup(output.close)
        process = subprocess.Popen([HEARTH, *words], stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=dict(os.environ, HEARTH_STATE_DIR=self.engine.state_dir))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def said():
            with open(output.name) as text:
                return text.read()
        return process, said


class ClaimTest(KubeVerbsTest):
    def test_a_claim_says_what_it_got(self):
        wait_until(self.pool_is_full, what="a full pool")
        heading, row = self.run_ok("claim", "py", "--name", "one", "--label", "team=a").splitlines()
        self.assertEqual(heading.split(), ["CLAIM", "SANDBOX", "ADDRESS", "TOOK"])
        self.assertRegex(row, r"^one +py-\w+ +\d+\.\d+\.\d+\.\d+ +\d+ ms$")
        claim = json.loads(self.run_ok("get", "claim", "one", "-o", "json"))
        self.assertEqual(claim["status"]["sandbox"]["name"], row.split()[1])
        self.assertEqual(claim["metadata"]["labels"], {"team": "a"})
        self.assertNotIn("managedFields", claim["metadata"])
        self.assertIn("one ", self.run_ok("claim", "ls", "-l", "team=a"))
        self.fails(1, '"one" already exists', "claim", "py", "--name", "one")
        self.assertEqual(self.names("claims"), ["one"])
        told = json.loads(self.run_ok("claim", "py", "-o", "json"))
        self.assertEqual((told["launch"], told["node"], told["namespace"]), ("warm", "here", "default"))
        self.assertLess(told["milliseconds"], 30000)

    def test_a_command_in_it(self):
        result = self.engine.hearth("claim", "py", "--rm", "-i", "-e", "WHO=alice", "--",
                                    "sh", "-c", "read line; echo $WHO $line; exit 7", stdin="hello\n")
        self.assertEqual((result.stdout, result.returncode, result.stderr), ("alice hello\n", 7, ""))
        wait_until(lambda: not self.names("claims"), 30, "the end of the claim")
        result = self.engine.hearth("claim", "py", "--name", "stays", "--", "touch", "/tmp/mark")
        self.assertEqual(result.returncode, 0)
        self.assertIn("'hearth claim delete stays' ends it", result.stderr)
        self.assertEqual(self.names("claims"), ["stays"])
        self.assertEqual(self.engine.hearth("claim", "py", "--rm", "--", "/no/such/program").returncode, 127)

    def test_why_there_is_no_sandbox(self):
        self.fails(1, 'WarmPoolNotFound: SandboxWarmPool "none" not found; \'hearth pool ls -A\'', "claim", "none")
        self.fails(125, "WarmPoolNotFound", "claim", "none", "--rm", "--", "true")
        self.run_ok("pool", "create", "poor", "--template", "none", "--replicas", "0")
        self.addCleanup(self.run_ok, "pool", "delete", "poor")
        self.fails(1, "TemplateNotFound", "claim", "poor")
        self.fails(1, "WarmPoolEmpty", "claim", "poor", "--when-empty", "fail")
        self.fails(1, "within 5s: WaitingForWarmPool", "claim", "poor", "--when-empty", "wait", "--wait", "5s")
        self.assertEqual(self.names("claims"), [], "what failed is not left behind")
        self.fails(1, "'hearth describe claim kept' tells more", "claim", "none", "--name", "kept", "--keep")
        self.assertIn("WarmPoolNotFound", self.run_ok("describe", "claim", "kept"))

    def test_ctrl_c_deletes_it(self):
        self.run_ok("pool", "create", "empty", "--template", "py", "--replicas", "0")
        self.addCleanup(self.run_ok, "pool", "delete", "empty")
        process, said = self.follow("claim", "empty", "--name", "never", "--when-empty", "wait")
        wait_until(lambda: self.names("claims") == ["never"], 30, "the claim")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130, said())
        self.assertEqual(self.names("claims"), [])

    def test_a_claim_ends_by_itself(self):
        self.run_ok("claim", "py", "--name", "short", "--ttl", "1s")
        wait_until(lambda: not self.names("claims"), 30, "the end of the claim")

    def test_it_need_not_wait(self):
        self.assertEqual(self.run_ok("claim", "none", "--name", "later", "--wait", "0"), "later\n")


class LookTest(KubeVerbsTest):
    def test_tables(self):
        self.run_ok("claim", "py", "--name", "seen")
        self.assertEqual(self.run_ok("get", "claims").splitlines()[0].split(), ["NAME", "READY", "SANDBOX", "REASON", "AGE"])
        self.assertEqual(self.run_ok("pool", "ls", "-A").splitlines()[0].split(), ["NAMESPACE", "NAME", "READY", "DESIRED", "AGE"])
        self.assertIn(" here ", self.run_ok("get", "pods", "-o", "wide"))
        self.assertIn("default ", self.run_ok("get", "ns"))
        self.assertIn("image: host", self.run_ok("get", "template/py", "-o", "yaml"))
        self.assertEqual(self.run_ok("get", "swp", "-o", "name"), "sandboxwarmpool.extensions.agents.x-k8s.io/py\n")
        self.assertEqual(len(json.loads(self.run_ok("get", "sandboxes", "-o", "json"))["items"]), len(self.names("sandboxes")))

    def test_what_is_not_there(self):
        result = self.engine.hearth("get", "claims", "-n", "elsewhere")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertEqual(result.stderr, "no sandboxclaims in the namespace 'elsewhere'\n")
        self.fails(1, 'sandboxclaims.extensions.agents.x-k8s.io "none" not found', "get", "claim", "none")
        self.fails(1, "did you mean 'sandbox'? there are sandboxes, claims, pools, templates, pods, ", "get", "sandbx")
        self.fails(1, "no engine of ours runs on '/nowhere'", "--state-dir", "/nowhere", "get", "pods")
        self.fails(1, "/no/such/file", "get", "pods", "--kubeconfig", "/no/such/file")
        self.fails(2, "which kind?", "get")

    def test_a_watch_shows_changes(self):
        process, said = self.follow("get", "claims", "-w")
        wait_until(lambda: "no sandboxclaims" in said(), 30, "the first look")
        self.run_ok("claim", "py", "--name", "comes")
        wait_until(lambda: "True" in said(), 30, "a claim that is ready")
        self.run_ok("claim", "delete", "comes")
        wait_until(lambda: "(deleted)" in said(), 30, "its end")
        self.assertEqual(said().count("NAME "), 1)
        self.assertIsNone(process.poll())

    def test_stories(self):
        sandbox = json.loads(self.run_ok("claim", "py", "--name", "told", "-o", "json"))["sandbox"]
        claim = wait_until(lambda: self.with_event("SandboxAdopted", "claim", "told"), 30, "the event")
        for part in ("Pool:       py", f"Sandbox:    {sandbox}", f"Pod              {sandbox}", "Ready", "SandboxClaim/told"):
            self.assertIn(part, claim)
        self.assertIn("Owner:       SandboxClaim/told", self.run_ok("describe", "sandbox", sandbox))
        pool = self.run_ok("describe", "pool", "py")
        self.assertRegex(pool, r"Members: +\d ready, \d there, 2 desired")
        self.assertIn("gets at most memory 128Mi", self.run_ok("describe", "template", "py"))
        wait_until(lambda: self.with_event("Started", "pod", sandbox), what="the pod's event")

    def with_event(self, reason, *words):
        text = self.run_ok("describe", *words)
        return text if reason in text else None

    def test_another_cluster_by_its_kubeconfig(self):
        config = os.path.join(self.engine.state_dir, "admin.kubeconfig")
        self.assertIn("py", self.run_ok("--state-dir", "/nowhere", "pool", "ls", "--kubeconfig", config))


class FleetTest(KubeVerbsTest):
    def test_a_pool_of_its_own(self):
        self.run_ok("template", "create", "web", "--image", "host", "--port", "8000", "--", "sleep", "1000")
        result = self.engine.hearth("pool", "create", "web", "--template", "webb")
        self.assertEqual((result.returncode, result.stdout), (0, "web\n"))
        self.assertIn("no template 'webb'", result.stderr)
        self.assertEqual(self.run_ok("pool", "scale", "web", "3"), "web\n")
        self.assertEqual(json.loads(self.run_ok("get", "pool", "web", "-o", "json"))["spec"]["replicas"], 3)
        shown = self.run_ok("template", "show", "web")
        self.assertIn("containerPort: 8000", shown)
        self.assertEqual(self.run_ok("template", "create", "webb", "-f", "-", stdin=shown), "webb\n")
        wait_until(lambda: json.loads(self.run_ok("get", "pool", "web", "-o", "json")).get("status", {}).get("readyReplicas") == 3)
        self.fails(1, '"nope" not found', "pool", "scale", "nope", "1")
        self.fails(1, '"nope" not found', "template", "delete", "nope")
        self.assertEqual(self.run_ok("pool", "delete", "web"), "web\n")
        self.assertEqual(self.run_ok("template", "delete", "web", "webb"), "web\nwebb\n")


del KubeVerbsTest

if __name__ == "__main__":
    unittest.main()
