"""Pods whose images are in a registry that asks who is there: secrets, pull policies, other tags."""
import base64
import json
import os
import subprocess
import time
import unittest

from hearth import Engine, need_root, wait_until
from registry import Image, Registry, busybox_layer, tar_of

# What was asked a moment ago counts (docs/pods.md): after this it is asked again.
FRESH_SECONDS = 10.5


class PodImages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        if subprocess.run(["which", "kubectl"], capture_output=True).returncode:
            raise unittest.SkipTest("needs kubectl")
        cls.layer = busybox_layer()
        cls.registry = Registry("reader", "open sesame", tls=True)
        cls.addClassCleanup(cls.registry.stop)
        # The engine trusts what its machine trusts.
        os.environ["SSL_CERT_FILE"] = cls.registry.certificate
        cls.addClassCleanup(os.environ.pop, "SSL_CERT_FILE")
        # And what it is told to trust besides, in a file that only root reads.
        cls.private_registry = Registry(tls=True)
        cls.addClassCleanup(cls.private_registry.stop)
        os.chmod(cls.private_registry.certificate, 0o600)
        cls.engine = Engine()
        cls.addClassCleanup(cls.engine.remove)
        cls.engine.start("--warm", "2", "--node-name", "here", "--registry-ca", cls.private_registry.certificate)
        for name, password in (("key", "open sesame"), ("wrong-key", "open barley")):
            cls.create(cls.pull_secret(name, password))

    def tearDown(self):
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
        wait_until(lambda: not self.engine.sandboxes(), 30, "the end of all sandboxes")

    @classmethod
    def kubectl(cls, *words, stdin=None):
        config = os.path.join(cls.engine.state_dir, "admin.kubeconfig")
        result = subprocess.run(["kubectl", "--kubeconfig", config, *words], input=stdin, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
        return result.stdout

    @classmethod
    def create(cls, thing):
        cls.kubectl("create", "-f", "-", stdin=json.dumps(thing))

    @classmethod
    def pull_secret(cls, name, password):
        auth = base64.b64encode(f"reader:{password}".encode()).decode()
        config = json.dumps({"auths": {cls.registry.host: {"auth": auth}}})
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson",
                "stringData": {".dockerconfigjson": config}}

    def push(self, repository, tag, word):
        """An image that says the word."""
        image = Image([self.layer, tar_of({"word": f"{word}\n".encode()})], {"Cmd": ["sh", "-c", "cat /word; exec sleep 1000"]})
        return self.registry.push(repository, tag, image), image

    def run_pod(self, name, image, policy="IfNotPresent", secret=None, **spec):
        secrets = {"imagePullSecrets": [{"name": secret}]} if secret else {}
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": image, "imagePullPolicy": policy}],
            **secrets, **spec}})

    def status(self, name):
        statuses = json.loads(self.kubectl("get", "pod", name, "-o", "json"))["status"].get("containerStatuses")
        return statuses[0] if statuses else {"state": {}}

    def says(self, name, word, seconds=60):
        wait_until(lambda: "running" in self.status(name)["state"], seconds, f"{name} to run: {self.status(name)}")
        wait_until(lambda: self.kubectl("logs", name) == word + "\n", 60, f"{name} to say {word}")

    def waits(self, name, *reasons):
        """Why it does."""
        wait_until(lambda: self.status(name)["state"].get("waiting", {}).get("reason") in reasons, 60,
                   f"{name} to wait for {reasons}: {self.status(name)}")
        return self.status(name)["state"]["waiting"]["message"]

    def events(self, name):
        return self.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json")

    def test_a_secret_opens_the_registry(self):
        name, image = self.push("secret", "1", "inside")
        self.run_pod("with-key", name, secret="key")
        self.says("with-key", "inside")
        self.assertIn(image.config, self.status("with-key")["imageID"])
        wait_until(lambda: "Successfully pulled image" in self.events("with-key"), 30, "the event")

    def test_a_registry_with_an_authority_of_its_own(self):
        image = Image([self.layer, tar_of({"word": b"privately\n"})], {"Cmd": ["sh", "-c", "cat /word; exec sleep 1000"]})
        self.run_pod("private", self.private_registry.push("own", "1", image))
        self.says("private", "privately")

    def test_an_authority_that_is_none_is_told_at_the_start(self):
        for path, problem in (("/no/such/file", "cannot be read"), (os.path.abspath(__file__), "has no certificate (PEM) in it")):
            told = self.engine.hearth("up", "--registry-ca", path)
            self.assertEqual((told.returncode, told.stderr), (2, f"hearth: up: --registry-ca: '{path}' {problem}\n"))

    def test_the_service_account_may_have_it(self):
        name, _ = self.push("account", "1", "for all of them")
        self.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "puller"}, "imagePullSecrets": [{"name": "key"}]})
        self.run_pod("of-account", name, serviceAccountName="puller")
        self.says("of-account", "for all of them")

    def test_without_it_the_pod_waits_and_says_why(self):
        name, _ = self.push("closed", "1", "never said")
        for pod, secret in (("no-key", None), ("with-wrong-key", "wrong-key"), ("with-no-such-key", "nowhere")):
            self.run_pod(pod, name, secret=secret)
        for pod in ("no-key", "with-wrong-key", "with-no-such-key"):
            message = self.waits(pod, "ErrImagePull", "ImagePullBackOff")
            self.assertIn(f'"{name}"', message)
            self.assertRegex(message, "(?i)unauthori[sz]ed|authenticat|credentials|password|log ?in")
            message = self.waits(pod, "ImagePullBackOff")
            self.assertIn(f'Back-off pulling image "{name}"', message)
            wait_until(lambda: '"Failed"' in self.events(pod), 30, "the event")
        # What was missing comes, and so does the pod.
        self.create(self.pull_secret("nowhere", "open sesame"))
        self.says("with-no-such-key", "never said", seconds=60)

    def test_what_is_not_there_is_named(self):
        self.run_pod("no-tag", f"{self.registry.host}/nothing:7", secret="key")
        self.assertIn("there is no manifest '7'", self.waits("no-tag", "ErrImagePull", "ImagePullBackOff"))
        self.run_pod("no-name", "Not A Name", secret="key")
        self.waits("no-name", "InvalidImageName")

    def test_policies(self):
        name, _ = self.push("moving", "now", "one")
        self.run_pod("never", name, "Never", "key")
        self.assertIn("not present with pull policy of Never", self.waits("never", "ErrImageNeverPull"))
        self.run_pod("first", name, "Always", "key")
        self.says("first", "one")
        pulled = time.monotonic()
        # What is here needs no key, unless the registry is to be asked.
        self.run_pod("never-again", name, "Never")
        self.says("never-again", "one")
        self.push("moving", "now", "two")
        self.run_pod("if-not-present", name)
        self.says("if-not-present", "one")
        self.run_pod("always-without-key", name, "Always")
        self.waits("always-without-key", "ErrImagePull", "ImagePullBackOff")
        time.sleep(max(0.0, pulled + FRESH_SECONDS - time.monotonic()))
        self.run_pod("always", name, "Always", "key")
        self.says("always", "two")

    def test_another_tag_in_place(self):
        old, _ = self.push("app", "1", "old")
        new, image = self.push("app", "2", "new")
        self.run_pod("app", old, secret="key")
        self.says("app", "old")
        before = json.loads(self.kubectl("get", "pod", "app", "-o", "json"))
        self.kubectl("set", "image", "pod/app", f"main={new}")
        wait_until(lambda: self.status("app").get("restartCount") == 1 and "running" in self.status("app")["state"], 30, "the change")
        self.says("app", "new")
        after = json.loads(self.kubectl("get", "pod", "app", "-o", "json"))
        self.assertEqual(after["metadata"]["uid"], before["metadata"]["uid"])
        self.assertEqual(after["status"]["podIP"], before["status"]["podIP"])
        self.assertIn(image.config, self.status("app")["imageID"])
        # One that cannot be had: the container waits, and goes on when the old one is named again.
        self.kubectl("set", "image", "pod/app", f"main={self.registry.host}/app:3")
        self.waits("app", "ErrImagePull", "ImagePullBackOff")
        self.kubectl("set", "image", "pod/app", f"main={old}")
        self.says("app", "old")


if __name__ == "__main__":
    unittest.main()
