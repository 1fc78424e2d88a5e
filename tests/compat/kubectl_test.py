"""kubectl, unchanged, against `hearth apiserver`: the machine's, the newest beside it, and Debian's 1.20.

Before 1.29, kubectl looks into OpenAPI v2 whether it may leave the checks to the server. There are no schemas in ours,
so `explain` of 1.26 and older finds nothing; all else works without --validate=false.
"""
import json
import re
import ssl
import stat
import time
import unittest
import urllib.request

from api_server import TOKEN, ApiServer, wait_until
from kubectl import Kubectl, debian_kubectl, kubectl_of_machine, siblings_of

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: web}}
spec:
  nodeName: n1
  containers:
  - {name: main, image: "example.test/app:1", env: [{name: A, value: "1"}], ports: [{containerPort: 80}]}
  - {name: side, image: "example.test/side:1"}
"""
SANDBOX = """
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: NAME}
spec:
  podTemplate:
    spec:
      containers: [{name: main, image: "example.test/app:1"}]
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, labels: {tier: one}}
data: {a: "1", b: "2"}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: NAME}
"""
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wg]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How large it is.}
              replicas: {type: integer, default: 2}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
WIDGET = """
apiVersion: example.test/v1
kind: Widget
metadata: {name: NAME}
spec: {size: SIZE}
"""


class Cases:
    """What every kubectl must be able to do."""

    @classmethod
    def find(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        program = cls.find()
        cls.server = ApiServer()
        cls.addClassCleanup(cls.server.end)
        cls.kubectl = Kubectl(program, cls.server)

    def setUp(self):
        self.ns = re.sub("[^a-z0-9]+", "-", self.id().split(".")[-1].removeprefix("test_"))
        self.does("create", "namespace", self.ns)
        # It comes by itself; whoever lists the namespace should not see it half made.
        wait_until(lambda: self.run_kubectl("get", "cm", "kube-root-ca.crt").returncode == 0, what="the server's own ConfigMap")

    def run_kubectl(self, *words, **more):
        return self.kubectl.run("-n", self.ns, *words, **more)

    def does(self, *words, **more):
        done = self.run_kubectl(*words, **more)
        self.assertEqual(done.returncode, 0, f"kubectl {' '.join(words)}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def refused(self, *words, code=1, **more):
        done = self.run_kubectl(*words, **more)
        self.assertEqual(done.returncode, code, f"kubectl {' '.join(words)}:\n{done.stdout}{done.stderr}")
        return done.stderr

    def apply(self, text, *words):
        return self.does("apply", "-f", "-", *words, text=text)

    def create(self, text, *words):
        return self.does("create", "-f", "-", *words, text=text)

    def read(self, *words):
        return json.loads(self.does("get", *words, "-o", "json"))

    def editor(self, change):
        """An editor that does one thing."""
        script = self.server.folder / "editor"
        script.write_text(f"#!/bin/sh\nsed -i '{change}' \"$1\"\n")
        script.chmod(stat.S_IRWXU)
        return {"KUBE_EDITOR": str(script), "EDITOR": str(script)}

    # Reading

    def test_get_forms(self):
        self.apply(POD.replace("NAME", "web"))
        table = self.does("get", "pods")
        self.assertRegex(table, r"NAME +READY +STATUS +RESTARTS +AGE\nweb +0/2 +Pending +0 +\d+s\n")
        self.assertRegex(self.does("get", "po", "web", "-o", "wide"), r"IP +NODE +NOMINATED NODE +READINESS GATES\n.* n1 +<none> +<none>\n")
        self.assertEqual(self.does("get", "pods", "-o", "name"), "pod/web\n")
        pod = self.read("pod", "web")
        self.assertEqual((pod["apiVersion"], pod["kind"], pod["spec"]["restartPolicy"]), ("v1", "Pod", "Always"))
        self.assertIn("\n  name: web\n", self.does("get", "pod/web", "-o", "yaml"))
        listed = self.read("pods")
        self.assertEqual((listed["kind"], listed["items"][0]["kind"]), ("List", "Pod"))
        self.assertEqual(self.does("get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].name}"), "main side")
        self.assertRegex(self.does("get", "pods", "-o", "custom-columns=N:.metadata.name,I:.spec.containers[0].image"),
                         r"N +I\nweb +example.test/app:1\n")
        self.assertRegex(self.does("get", "pods", "-A"), rf"NAMESPACE +NAME .*\n(.*\n)*{self.ns} +web ")
        self.assertRegex(self.does("get", "pods", "--show-labels", "-L", "app"), r"AGE +APP +LABELS\nweb .* web +app=web\n")
        self.assertEqual(self.does("get", "pods", "--no-headers", "--ignore-not-found", "-l", "app=none"), "")
        self.assertRegex(self.does("get", "pod,cm"), r"pod/web .*\n\n?NAME +DATA +AGE\nconfigmap/kube-root-ca.crt +1 ")
        self.assertRegex(self.does("get", "all"), r"pod/web ")

    def test_get_selects_and_sorts(self):
        for name, tier in (("one", "tx"), ("two", "ty"), ("three", "tz")):
            self.apply(CONFIG.replace("NAME", name).replace("tier: one", f"tier: {tier}"))
        names = lambda *words: self.does("get", "cm", "-o", "name", *words).split()
        self.assertEqual(names("-l", "tier=tx"), ["configmap/one"])
        self.assertEqual(names("-l", "tier in (tx,tz)"), ["configmap/one", "configmap/three"])
        self.assertEqual(names("-l", "tier,tier!=tx,tier notin (ty)"), ["configmap/three"])
        self.assertEqual(names("--field-selector", "metadata.name=two"), ["configmap/two"])
        table = self.does("get", "cm", "-l", "tier", "--sort-by", ".metadata.labels.tier", "--no-headers")
        self.assertEqual([line.split()[0] for line in table.splitlines()], ["one", "two", "three"])
        table = self.does("get", "cm", "-l", "tier", "--chunk-size", "1", "--no-headers")
        self.assertEqual([line.split()[0] for line in table.splitlines()], ["one", "three", "two"])
        self.assertIn("unable to parse requirement", self.refused("get", "cm", "-l", "a in b"))
        self.assertIn('"spec.x" is not a known field selector', self.refused("get", "cm", "--field-selector", "spec.x=1"))

    def test_get_watches(self):
        self.apply(CONFIG.replace("NAME", "first"))
        watch = self.kubectl.start("-n", self.ns, "get", "cm", "-w", "-l", "tier", "--output-watch-events")
        try:
            said = lambda: watch.stdout.readline()
            self.assertRegex(said(), r"EVENT +NAME +DATA +AGE")
            self.assertRegex(said(), r"ADDED +first +2 +\d+s")
            self.apply(CONFIG.replace("NAME", "one"))
            self.assertRegex(said(), r"ADDED +one +2 +\d+s")
            self.does("patch", "cm", "one", "--type=merge", "-p", '{"data":{"c":"3"}}')
            self.assertRegex(said(), r"MODIFIED +one +3 ")
            self.does("delete", "cm", "one")
            self.assertRegex(said(), r"DELETED +one +3 ")
        finally:
            watch.terminate()
            watch.communicate(timeout=60)

    def test_describe(self):
        self.apply(SANDBOX.replace("NAME", "box"))
        uid = self.read("sandbox", "box")["metadata"]["uid"]
        self.create(f"""
apiVersion: v1
kind: Event
metadata: {{name: box.1}}
involvedObject: {{apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox, name: box, namespace: {self.ns}, uid: {uid}}}
reason: Started
message: it runs
type: Normal
count: 2
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
source: {{component: compat}}
""")
        said = self.does("describe", "sandbox", "box")
        self.assertRegex(said, r"Name: +box\n")
        self.assertRegex(said, r"Operating Mode: +Running")
        self.assertRegex(said, r"Events:\n(.*\n)* +Normal +Started +.* compat +it runs")
        self.apply(POD.replace("NAME", "web"))
        self.assertRegex(self.does("describe", "pod", "web"), r"Image: +example.test/side:1\n(.*\n)*QoS Class: +BestEffort")
        self.assertRegex(self.does("describe", "ns", self.ns), r"Status: +Active")
        self.assertRegex(self.does("describe", "svc", "kubernetes", "-n", "default"), r"IP: +10\.")
        self.assertRegex(self.does("get", "events"), r"LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n.*Normal +Started +sandbox/box +it runs")
        if self.kubectl.minor >= 26:
            self.assertRegex(self.does("events", "--for", "sandbox/box"), r"Normal +Started +Sandbox/box +it runs")

    def test_explain(self):
        if self.kubectl.minor < 27:
            self.assertIn("couldn't find resource for", self.refused("explain", "sandbox.spec"))
            return
        self.assertRegex(self.does("explain", "sandbox.spec"), r"KIND: +Sandbox\n(.*\n)*FIELDS:\n(.*\n)*  podTemplate\t<Object> -required-")
        self.assertRegex(self.does("explain", "pod.spec.containers"), r"FIELD: containers <\[\]Container>\n(.*\n)*  image\t<string>")
        self.assertIn("doesn't have a resource type", self.refused("explain", "nothing"))
        self.assertIn("does not exist", self.refused("explain", "sandbox.spec.nothing"))
        self.assertRegex(self.does("explain", "swp", "--recursive"), r"(?s)  spec\t<Object>.*\n    replicas\t<integer>")

    def test_what_is_served(self):
        resources = self.does("api-resources", "--no-headers")
        self.assertRegex(resources, r"(?m)^pods +po +v1 +true +Pod$")
        self.assertRegex(resources, r"(?m)^sandboxes +sandbox +agents.x-k8s.io/v1beta1 +true +Sandbox$")
        self.assertRegex(self.does("api-resources", "--verbs=list", "--namespaced=false", "-o", "name"), r"(?m)^nodes$")
        self.assertIn("\nagents.x-k8s.io/v1beta1\n", self.does("api-versions"))
        self.assertIn(self.server.url, self.does("cluster-info"))
        self.assertIn('"serverVersion"', self.does("version", "-o", "json"))
        self.assertEqual(self.does("get", "--raw", "/readyz"), "ok")
        self.assertEqual(json.loads(self.does("get", "--raw", "/api/v1/namespaces/default"))["kind"], "Namespace")
        self.assertIn("(NotFound)", self.refused("get", "--raw", "/api/v1/namespaces/nothing"))

    # Writing

    def test_apply_client_side(self):
        self.assertEqual(self.apply(POD.replace("NAME", "web")), "pod/web created\n")
        self.assertEqual(self.apply(POD.replace("NAME", "web")), "pod/web unchanged\n")
        self.assertEqual(self.apply(POD.replace("NAME", "web").replace("app:1", "app:2")), "pod/web configured\n")
        containers = self.read("pod", "web")["spec"]["containers"]
        self.assertEqual([c["image"] for c in containers], ["example.test/app:2", "example.test/side:1"])
        self.assertEqual(self.apply(SANDBOX.replace("NAME", "box")), "sandbox.agents.x-k8s.io/box created\n")
        self.assertEqual(self.apply(SANDBOX.replace("NAME", "box")), "sandbox.agents.x-k8s.io/box unchanged\n")
        suspended = SANDBOX.replace("NAME", "box").replace("spec:\n  pod", "spec:\n  operatingMode: Suspended\n  pod", 1)
        self.assertEqual(self.apply(suspended), "sandbox.agents.x-k8s.io/box configured\n")
        self.assertEqual(self.read("sandbox", "box")["spec"]["operatingMode"], "Suspended")
        self.apply(CONFIG.replace("NAME", "cm"))
        self.apply(CONFIG.replace("NAME", "cm").replace(', b: "2"', ""))
        self.assertEqual(self.read("cm", "cm")["data"], {"a": "1"})
        self.assertEqual(self.apply(CONFIG.replace("NAME", "cm"), "--dry-run=server"), "configmap/cm configured (server dry run)\n")
        self.assertEqual(self.read("cm", "cm")["data"], {"a": "1"})
        self.assertIn("configmap/cm", self.apply(CONFIG.replace("NAME", "other"), "--prune", "-l", "tier=one", *self.allow_prune()))

    def allow_prune(self):
        name = "--prune-allowlist" if self.kubectl.minor >= 26 else "--prune-whitelist"
        return [f"{name}=core/v1/ConfigMap"]

    def test_apply_server_side(self):
        config = CONFIG.replace("NAME", "cm")
        ours = ["--server-side", "--field-manager=ours"]
        self.assertEqual(self.apply(config, *ours), "configmap/cm serverside-applied\n")
        self.assertEqual(self.apply(config, *ours), "configmap/cm serverside-applied\n")
        said = self.refused("apply", "--server-side", "--field-manager=theirs", "-f", "-", text=config.replace('a: "1"', 'a: "9"'))
        self.assertIn('Apply failed with 1 conflict: conflict with "ours"', said)
        self.assertIn(".data.a", said)
        self.apply(config.replace('a: "1"', 'a: "9"'), "--server-side", "--field-manager=theirs", "--force-conflicts")
        self.assertEqual(self.read("cm", "cm")["data"], {"a": "9", "b": "2"})
        self.apply(config.replace('a: "1", ', ""), *ours)
        self.assertEqual(self.read("cm", "cm")["data"], {"a": "9", "b": "2"})
        self.apply(SANDBOX.replace("NAME", "box"), "--server-side")
        said = self.refused("apply", "--server-side", "--field-manager=theirs", "-f", "-",
                            text=SANDBOX.replace("NAME", "box").replace("app:1", "app:2"))
        self.assertIn('.spec.podTemplate.spec.containers[name="main"].image', said)

    def test_apply_moves_to_the_server(self):
        config = CONFIG.replace("NAME", "cm")
        self.apply(config)
        self.apply(config.replace(', b: "2"', ', c: "3"'), "--server-side")
        self.assertEqual(self.read("cm", "cm")["data"], {"a": "1", "c": "3"} if self.kubectl.minor >= 26 else {"a": "1", "b": "2", "c": "3"})
        managers = [entry["manager"] for entry in self.managed("cm", "cm")]
        if self.kubectl.minor >= 26:
            self.assertNotIn("kubectl-client-side-apply", managers)
        self.assertIn("kubectl", managers)

    def managed(self, *words):
        shown = ["--show-managed-fields"] if self.kubectl.minor >= 21 else []
        return self.read(*words, *shown)["metadata"]["managedFields"]

    def test_diff(self):
        self.apply(CONFIG.replace("NAME", "cm"))
        self.assertEqual(self.does("diff", "-f", "-", text=CONFIG.replace("NAME", "cm")), "")
        done = self.run_kubectl("diff", "-f", "-", text=CONFIG.replace("NAME", "cm").replace('a: "1"', 'a: "7"'))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r'(?m)^-  a: "1"$')
        self.assertRegex(done.stdout, r'(?m)^\+  a: "7"$')
        self.assertEqual(self.read("cm", "cm")["data"]["a"], "1")
        done = self.run_kubectl("diff", "-f", "-", text=SANDBOX.replace("NAME", "new"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r'(?m)^\+  operatingMode: Running$')

    def test_edit(self):
        self.apply(CONFIG.replace("NAME", "cm"))
        self.assertEqual(self.does("edit", "cm", "cm", **self.editor('s/^  a: "1"/  a: "5"/')), "configmap/cm edited\n")
        self.assertEqual(self.read("cm", "cm")["data"]["a"], "5")
        self.apply(SANDBOX.replace("NAME", "box"))
        self.does("edit", "sandbox", "box", **self.editor("s/operatingMode: Running/operatingMode: Suspended/"))
        self.assertEqual(self.read("sandbox", "box")["spec"]["operatingMode"], "Suspended")

    def test_replace(self):
        self.create(CONFIG.replace("NAME", "cm"))
        said = self.does("replace", "-f", "-", text=CONFIG.replace("NAME", "cm").replace('a: "1"', 'a: "4"'))
        self.assertEqual(said, "configmap/cm replaced\n")
        self.create(SANDBOX.replace("NAME", "box"))
        self.does("replace", "-f", "-", text=SANDBOX.replace("NAME", "box").replace("app:1", "app:3"))
        self.assertEqual(self.read("sandbox", "box")["spec"]["podTemplate"]["spec"]["containers"][0]["image"], "example.test/app:3")
        stale = self.does("get", "cm", "cm", "-o", "yaml")
        self.does("label", "cm", "cm", "x=y")
        self.assertIn("the object has been modified; please apply your changes to the latest version and try again",
                      self.refused("replace", "-f", "-", text=stale))
        self.does("replace", "--force", "-f", "-", text=CONFIG.replace("NAME", "cm"))
        self.assertNotIn("x", self.read("cm", "cm")["metadata"]["labels"])

    def test_patch_types(self):
        self.apply(POD.replace("NAME", "web"))
        self.does("patch", "pod", "web", "-p", '{"spec":{"containers":[{"name":"side","image":"example.test/side:2"}]}}')
        self.assertEqual([c["image"] for c in self.read("pod", "web")["spec"]["containers"]], ["example.test/app:1", "example.test/side:2"])
        self.does("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"labels":{"app":null,"new":"1"}}}')
        self.does("patch", "pod", "web", "--type=json", "-p", '[{"op":"test","path":"/metadata/labels/new","value":"1"},{"op":"add","path":"/metadata/annotations/x","value":"y"}]')
        metadata = self.read("pod", "web")["metadata"]
        self.assertEqual((metadata["labels"], metadata["annotations"]["x"]), ({"new": "1"}, "y"))
        self.apply(SANDBOX.replace("NAME", "box"))
        self.assertIn("the body of the request was in an unknown format", self.refused("patch", "sandbox", "box", "-p", '{"spec":{"service":true}}'))
        self.does("patch", "sandbox", "box", "--type=merge", "-p", '{"spec":{"service":true}}')
        self.assertEqual(self.does("patch", "sandbox", "box", "--type=merge", "-p", '{"spec":{"service":true}}'),
                         "sandbox.agents.x-k8s.io/box patched (no change)\n")
        self.assertIn("the server rejected our request due to an error in our request" if self.kubectl.minor >= 22 else "The request is invalid",
                      self.refused("patch", "sandbox", "box", "--type=json", "-p", '[{"op":"remove","path":"/spec/nothing"}]'))
        if self.kubectl.minor >= 24:
            self.does("patch", "sandbox", "box", "--subresource=status", "--type=merge", "-p", '{"status":{"nodeName":"n7"}}')
            self.assertEqual(self.read("sandbox", "box", "--subresource=status")["status"]["nodeName"], "n7")

    def test_label_annotate_set(self):
        self.apply(POD.replace("NAME", "web"))
        self.assertIn("labeled", self.does("label", "pod", "web", "a=b"))
        self.assertIn("already has a value (b), and --overwrite is false", self.refused("label", "pod", "web", "a=c"))
        self.does("label", "pod", "web", "a=c", "--overwrite")
        self.does("label", "pod", "web", "app-")
        self.does("annotate", "pod", "web", "note=hello world")
        metadata = self.read("pod", "web")["metadata"]
        self.assertEqual((metadata["labels"], metadata["annotations"]["note"]), ({"a": "c"}, "hello world"))
        self.assertIn("invalid label value", self.refused("label", "pod", "web", "a=-bad-"))
        self.does("set", "image", "pod/web", "main=example.test/app:9")
        self.assertEqual(self.read("pod", "web")["spec"]["containers"][0]["image"], "example.test/app:9")
        self.assertIn("pod updates may not change fields other than", self.refused("set", "env", "pod/web", "B=2"))

    def test_scale(self):
        self.apply("""
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: pool}
spec: {replicas: 1, sandboxTemplateRef: {name: t}}
""")
        self.assertIn("scaled", self.does("scale", "swp", "pool", "--replicas=3"))
        self.assertEqual(self.read("swp", "pool")["spec"]["replicas"], 3)
        self.does("scale", "swp/pool", "--current-replicas=3", "--replicas=4")
        self.assertIn("Expected", self.refused("scale", "swp/pool", "--current-replicas=3", "--replicas=5"))
        self.apply(SANDBOX.replace("NAME", "box"))
        self.assertIn("could not find the requested resource", self.refused("scale", "sandbox/box", "--replicas=1"))

    def test_wait(self):
        self.apply(SANDBOX.replace("NAME", "box"))
        ready = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Up", "message": "",
                                                       "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        waiting = self.kubectl.start("-n", self.ns, "wait", "sandbox/box", "--for=condition=Ready", "--timeout=60s")
        self.settle()
        self.patch_status("sandboxes/box", ready)
        self.assertEqual(waiting.communicate(timeout=90)[0], "sandbox.agents.x-k8s.io/box condition met\n")
        self.assertIn("timed out waiting for the condition",
                      self.refused("wait", "sandbox/box", "--for=condition=Other", "--timeout=1s"))
        if self.kubectl.minor >= 23:
            self.does("wait", "sandbox/box", "--for=jsonpath={.spec.operatingMode}=Running", "--timeout=60s")
        waiting = self.kubectl.start("-n", self.ns, "wait", "sandbox/box", "--for=delete", "--timeout=60s", "-v=6")
        self.wait_watching(waiting)
        self.does("delete", "sandbox", "box", "--wait=false")
        self.assertIn("condition met" if self.kubectl.minor >= 21 else "", waiting.communicate(timeout=90)[0])
        self.assertEqual(waiting.returncode, 0)
        if self.kubectl.minor >= 31:
            waiting = self.kubectl.start("-n", self.ns, "wait", "sandbox/late", "--for=create", "--timeout=60s")
            self.settle()
            self.apply(SANDBOX.replace("NAME", "late"))
            self.assertIn("condition met", waiting.communicate(timeout=90)[0])

    def wait_watching(self, process):
        """Until a kubectl that tells of its requests (-v=6) has a watch: from then on it sees everything."""
        for line in process.stdout:
            if "watch=true" in line:
                return
        self.fail("kubectl ended before it watched")

    def patch_status(self, path, patch):
        """By hand: `kubectl patch --subresource` came with 1.24."""
        url = f"{self.server.url}/apis/agents.x-k8s.io/v1beta1/namespaces/{self.ns}/{path}/status"
        request = urllib.request.Request(url, patch.encode(), method="PATCH", headers={
            "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/merge-patch+json"})
        urllib.request.urlopen(request, context=ssl.create_default_context(cafile=self.server.ca)).read()

    # Making and removing

    def test_create_by_words(self):
        self.does("create", "configmap", "cm", "--from-literal=a=b")
        self.does("create", "secret", "generic", "s", "--from-literal=p=q")
        self.assertEqual(self.read("secret", "s")["data"], {"p": "cQ=="})
        self.assertRegex(self.does("get", "secret", "s"), r"s +Opaque +1 ")
        self.does("create", "secret", "docker-registry", "d", "--docker-server=r.test", "--docker-username=u", "--docker-password=p")
        self.assertEqual(self.read("secret", "d")["type"], "kubernetes.io/dockerconfigjson")
        self.does("create", "serviceaccount", "bot")
        self.does("create", "role", "reader", "--verb=get,list", "--resource=pods,sandboxes.agents.x-k8s.io")
        self.does("create", "rolebinding", "bot-reads", "--role=reader", f"--serviceaccount={self.ns}:bot")
        self.does("create", "clusterrole", f"{self.ns}-c", "--verb=get", "--resource=nodes")
        self.does("create", "clusterrolebinding", f"{self.ns}-cb", f"--clusterrole={self.ns}-c", f"--serviceaccount={self.ns}:bot")
        self.assertRegex(self.does("get", "rolebinding", "bot-reads", "-o", "wide"), rf"Role/reader .* {self.ns}/bot")
        self.does("create", "service", "clusterip", "svc", "--tcp=80:8080")
        self.assertRegex(self.does("get", "svc", "svc"), r"svc +ClusterIP +10\.\S+ +<none> +80/TCP ")
        self.does("run", "r", "--image=example.test/app:1", "--restart=Never", "--", "sleep", "1")
        self.assertEqual(self.read("pod", "r")["spec"]["containers"][0]["args"], ["sleep", "1"])
        self.does("expose", "pod", "r", "--port=80", "--name=exposed")
        self.assertEqual(self.read("svc", "exposed")["spec"]["selector"], {"run": "r"})
        self.assertIn('"cm" already exists', self.refused("create", "configmap", "cm"))

    def test_identity(self):
        self.assertEqual(self.does("auth", "can-i", "create", "sandboxes.agents.x-k8s.io"), "yes\n")
        self.does("create", "serviceaccount", "bot")
        bot = f"--as=system:serviceaccount:{self.ns}:bot"
        self.assertEqual(self.run_kubectl("auth", "can-i", "list", "pods", bot).stdout, "no\n")
        self.does("create", "role", "reader", "--verb=list", "--resource=pods")
        self.does("create", "rolebinding", "bot-reads", "--role=reader", f"--serviceaccount={self.ns}:bot")
        self.assertEqual(self.does("auth", "can-i", "list", "pods", bot), "yes\n")
        self.assertRegex(self.does("auth", "can-i", "--list", bot), r"(?m)^pods +\[\] +\[\] +\[list\]$")
        self.assertIn(f'User "system:serviceaccount:{self.ns}:bot" cannot list resource "configmaps" in API group "" in the namespace "{self.ns}"',
                      self.refused("get", "cm", bot))
        if self.kubectl.minor >= 28:
            self.assertRegex(self.does("auth", "whoami"), r"Username +admin\n")
        if self.kubectl.minor < 24:
            return  # there is no `create token` yet
        token = self.does("create", "token", "bot").strip()
        as_bot = ["--token", token, "--server", self.server.url, "--certificate-authority", self.server.ca, "--kubeconfig", "/dev/null"]
        self.assertIn("No resources found", self.run_kubectl(*as_bot, "get", "pods").stderr)
        self.assertIn("cannot list resource", self.refused(*as_bot, "get", "cm"))
        wrong = [*as_bot[2:], "--token", "wrong"]
        self.assertIn("You must be logged in to the server", self.refused(*wrong, "get", "pods"))

    def owner_and_dependent(self):
        self.apply(CONFIG.replace("NAME", "owner"))
        uid = self.read("cm", "owner")["metadata"]["uid"]
        self.apply(CONFIG.replace("metadata: {name: NAME", "metadata: {name: child, ownerReferences: [{apiVersion: v1, kind: ConfigMap, "
                                  f"name: owner, uid: {uid}, blockOwnerDeletion: true}}]"))

    def children(self):
        return self.does("get", "cm", "child", "--ignore-not-found", "-o", "name").split()

    def test_delete_policies(self):
        for policy in ("background", "foreground", "orphan"):
            self.owner_and_dependent()
            self.assertIn('configmap "owner" deleted', self.does("delete", "cm", "owner", f"--cascade={policy}"))
            self.assertIn('configmaps "owner" not found', self.refused("get", "cm", "owner"))
            if policy == "orphan":
                self.assertEqual(self.children(), ["configmap/child"])
                self.assertNotIn("ownerReferences", self.read("cm", "child")["metadata"])
                self.does("delete", "cm", "child")
            else:
                wait_until(lambda: not self.children(), what="garbage collection")

    def test_delete(self):
        self.apply(POD.replace("NAME", "web"))
        self.does("delete", "pod", "web", "--wait=false")
        pod = self.read("pod", "web")
        self.assertEqual(pod["metadata"]["deletionGracePeriodSeconds"], 30)
        self.assertRegex(self.does("get", "pod", "web"), r"web +0/2 +Terminating ")
        self.does("delete", "pod", "web", "--grace-period=0", "--force")
        self.assertEqual(self.does("get", "pods", "-o", "name"), "")
        for name in ("a", "b", "c"):
            self.apply(CONFIG.replace("NAME", name))
        self.does("delete", "cm", "-l", "tier=one")
        self.assertEqual(self.does("get", "cm", "-l", "tier=one", "-o", "name"), "")
        self.apply(SANDBOX.replace("NAME", "box"))
        self.does("delete", "sandbox", "--all")
        self.assertIn('sandboxes.agents.x-k8s.io "box" not found', self.refused("delete", "sandbox", "box"))
        self.assertIn("is forbidden", self.refused("delete", "ns", "default"))
        self.apply(CONFIG.replace("NAME", "a"))
        self.does("delete", "namespace", self.ns)
        self.assertIn(f'namespaces "{self.ns}" not found', self.refused("get", "ns", self.ns))

    def test_nodes(self):
        self.does("create", "-f", "-", text=NODE.replace("NAME", "drained"))
        self.apply(POD.replace("NAME", "web").replace("nodeName: n1", "nodeName: drained"))
        self.assertIn("cordoned", self.does("cordon", "drained"))
        self.assertRegex(self.does("get", "node", "drained"), r"drained +\S*SchedulingDisabled ")
        self.assertIn("uncordoned", self.does("uncordon", "drained"))
        self.does("taint", "node", "drained", "k=v:NoSchedule")
        draining = self.kubectl.start("drain", "drained", "--force", "--ignore-daemonsets", "--grace-period=1", "--timeout=60s")
        wait_until(lambda: "deletionTimestamp" in self.read("pod", "web")["metadata"], what="the eviction")
        self.does("delete", "pod", "web", "--grace-period=0", "--force")
        said = draining.communicate(timeout=90)[0]
        self.assertEqual(draining.returncode, 0, said)
        # Before 1.22, it evicts only where there are disruption budgets, and deletes otherwise.
        self.assertRegex(said, r"evicting pod .*web\n(.*\n)*node/drained (drained|evicted)" if self.kubectl.minor >= 22 else "pod/web deleted")
        self.assertRegex(self.does("describe", "node", "drained"), r"Taints: +k=v:NoSchedule\n")
        self.does("delete", "node", "drained")

    # Kinds of users

    def test_user_crd(self):
        self.assertIn("created", self.apply(WIDGETS))
        try:
            self.does("wait", "--for=condition=Established", "crd/widgets.example.test", "--timeout=60s")
            self.assertRegex(self.does("get", "crd", "widgets.example.test"), r"NAME +CREATED AT\nwidgets.example.test +20")
            self.apply(WIDGET.replace("NAME", "w").replace("SIZE", "3"))
            self.assertRegex(self.does("get", "wg"), r"NAME +SIZE( +AGE)?\nw +3")
            self.assertEqual(self.read("widget", "w")["spec"], {"size": 3, "replicas": 2})
            self.does("scale", "widget/w", "--replicas=5")
            self.assertEqual(self.read("widget", "w")["spec"]["replicas"], 5)
            said = self.refused("apply", "-f", "-", text=WIDGET.replace("NAME", "x").replace("SIZE", "0"))
            self.assertRegex(said, r'The Widget "x" is invalid: .*spec.size: Invalid value: .*should be greater than or equal to 1')
            if self.kubectl.minor >= 29:
                self.assertIn("How large it is.", self.does("explain", "widget.spec.size"))
            if self.kubectl.minor >= 27:
                self.assertIn('unknown field "spec.sice"', self.refused("apply", "-f", "-", text=WIDGET.replace("NAME", "x").replace("SIZE", "1, sice: 2")))
            self.apply(WIDGETS.replace("minimum: 1", "minimum: 0"))
            wait_until(lambda: self.run_kubectl("apply", "-f", "-", text=WIDGET.replace("NAME", "x").replace("SIZE", "0")).returncode == 0,
                       what="the new schema")
        finally:
            self.does("delete", "crd", "widgets.example.test")
        wait_until(lambda: self.run_kubectl("get", "widgets").returncode == 1, what="the end of the kind")

    # What people see when something is wrong

    def test_errors(self):
        self.assertEqual(self.refused("get", "pod", "nope"), 'Error from server (NotFound): pods "nope" not found\n')
        self.assertEqual(self.refused("get", "sandbox", "nope"), 'Error from server (NotFound): sandboxes.agents.x-k8s.io "nope" not found\n')
        self.assertEqual(self.refused("get", "nothing"), 'error: the server doesn\'t have a resource type "nothing"\n')
        self.assertIn(f"No resources found in {self.ns} namespace.", self.run_kubectl("get", "pods").stderr)
        self.assertIn('namespaces "nowhere" not found', self.refused("create", "-n", "nowhere", "-f", "-", text=CONFIG.replace("NAME", "x")))
        said = self.refused("create", "-f", "-", text=SANDBOX.replace("NAME", "Not_A_Name"))
        self.assertIn('The Sandbox "Not_A_Name" is invalid: metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain must consist of', said)
        said = self.refused("create", "-f", "-", text="apiVersion: agents.x-k8s.io/v1beta1\nkind: Sandbox\nmetadata: {name: x}\nspec: {operatingMode: Nope}\n")
        self.assertIn('The Sandbox "x" is invalid:', said)
        self.assertIn('* spec.podTemplate: Required value', said)
        self.assertIn('* spec.operatingMode: Unsupported value: "Nope": supported values: "Running", "Suspended"', said)
        said = self.refused("create", "-f", "-", text=POD.replace("NAME", "x").replace("name: side", "name: main"))
        self.assertIn('The Pod "x" is invalid: spec.containers[1].name: Duplicate value: "main"', said)
        self.create(CONFIG.replace("NAME", "cm"))
        self.assertEqual(self.refused("create", "-f", "-", text=CONFIG.replace("NAME", "cm")),
                         'Error from server (AlreadyExists): error when creating "STDIN": configmaps "cm" already exists\n')
        if self.kubectl.minor >= 27:
            said = self.refused("create", "-f", "-", text=CONFIG.replace("NAME", "x").replace("\ndata:", "\ndate: 1\ndata:"))
            self.assertIn('strict decoding error: unknown field "date"', said)
            done = self.run_kubectl("create", "--validate=warn", "-f", "-", text=CONFIG.replace("NAME", "x").replace("\ndata:", "\ndate: 1\ndata:"))
            self.assertIn('Warning: unknown field "date"', done.stderr)
        old = self.run_kubectl("get", "sandboxes.v1alpha1.agents.x-k8s.io")
        self.assertIn("Warning: agents.x-k8s.io/v1alpha1 Sandbox is deprecated; use agents.x-k8s.io/v1beta1 Sandbox instead", old.stderr)
        self.assertIn("no matches for kind", self.refused("create", "-f", "-", text="apiVersion: no.test/v1\nkind: Nothing\nmetadata: {name: x}\n"))

    @staticmethod
    def settle():
        """Time for a kubectl to begin to wait. Too short a one makes the test weaker, not wrong."""
        time.sleep(0.5)


class MachinesKubectl(Cases, unittest.TestCase):
    @classmethod
    def find(cls):
        return kubectl_of_machine()


class NewestKubectl(Cases, unittest.TestCase):
    @classmethod
    def find(cls):
        others = siblings_of(kubectl_of_machine())
        if not others:
            raise unittest.SkipTest("needs several kubectls beside the machine's")
        return others[max(others)]


class DebiansKubectl(Cases, unittest.TestCase):
    @classmethod
    def find(cls):
        return debian_kubectl()


if __name__ == "__main__":
    unittest.main()
