"""Images: from a real registry, from what other tools write, from root file systems; and commands in them."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from hearth import HEARTH, Engine, need_root
from registry import ARCHITECTURE, Image, Registry, busybox_layer, digest_of, need, tar_of


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        cls.layer = busybox_layer()
        cls.image = Image([cls.layer, tar_of({"app/hello": b"hello from a layer\n"})],
                          {"Cmd": ["cat", "hello"], "Env": ["GREETING=hi"], "WorkingDir": "/app"})
        cls.registry = Registry()
        cls.addClassCleanup(cls.registry.stop)
        cls.engine = Engine().start()
        cls.addClassCleanup(cls.engine.remove)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hearth-image-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.remove_images)

    def remove_images(self):
        for name in self.hearth("image", "ls", "-q").stdout.split():
            self.hearth("image", "rm", name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def hearth(self, *words, **kwargs):
        env = {"XDG_CACHE_HOME": self.path("cache"), "DOCKER_CONFIG": self.path("docker"), **kwargs.pop("env", {})}
        return self.engine.hearth(*words, env=env, **kwargs)

    def done(self, *words, **kwargs):
        result = self.hearth(*words, **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, *words, **kwargs):
        result = self.hearth(*words, **kwargs)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        complaints = [line for line in result.stderr.splitlines() if line.startswith("hearth: ")]
        self.assertEqual(len(complaints), 1, result.stderr)
        return complaints[0]

    def expect_it_runs(self, name):
        self.assertEqual(self.done("run", "--rm", "--image", name, "--", "cat", "/app/hello").stdout,
                         "hello from a layer\n")

    def test_pull_list_inspect_run_remove(self):
        image = Image([*self.image.layers, tar_of({"new": os.urandom(9)})], {"Cmd": ["cat", "hello"]})
        name = self.registry.push("app", "1", image)
        pulled = self.done("image", "pull", "--plain-http", name)
        self.assertEqual(pulled.stdout.strip(), name)
        self.assertIn("done", pulled.stderr)

        listed = json.loads(self.done("image", "ls", "-o", "json").stdout)
        self.assertEqual([image["name"] for image in listed], [name])
        self.assertEqual(listed[0]["id"], image.config)
        self.assertGreater(listed[0]["bytes"], len(self.layer) // 2)
        self.assertIn(name, self.done("image", "ls").stdout)
        inspected = json.loads(self.done("image", "inspect", name).stdout)[0]
        self.assertEqual(inspected["layers"], [digest_of(layer) for layer in image.layers])
        self.assertEqual(inspected["config"]["command"], ["cat", "hello"])
        self.assertEqual(inspected["architecture"], ARCHITECTURE)

        self.expect_it_runs(name)
        self.assertEqual(self.done("run", "--rm", "--image", "sha256:" + image.config[7:], "--", "echo", "by id").stdout, "by id\n")
        self.assertEqual(self.done("image", "rm", name).stdout.strip(), name)
        self.assertEqual(json.loads(self.done("image", "ls", "-o", "json").stdout), [])

    def test_a_second_pull_downloads_nothing(self):
        name = self.registry.push("again", "1", self.image)
        self.done("image", "pull", "--plain-http", name)
        second = self.done("image", "pull", "--plain-http", name)
        self.assertEqual(second.stderr.count("is here already"), 2, second.stderr)
        self.assertNotIn("downloading", second.stderr)

    def test_commands_get_what_the_image_says(self):
        name = self.registry.push("config", "1", self.image)
        self.done("image", "pull", "--plain-http", name)
        said = self.done("run", "--rm", "--image", name, "--", "sh", "-c", "pwd; echo $GREETING; cat hello").stdout
        self.assertEqual(said, "/app\nhi\nhello from a layer\n")

    def test_pull_by_digest(self):
        self.registry.push("digest", "1", self.image)
        name = f"{self.registry.host}/digest@{digest_of(self.image.manifest)}"
        self.assertEqual(self.done("image", "pull", "-q", "--plain-http", name).stdout.strip(), name)

    def test_plain_http_must_be_asked_for(self):
        name = self.registry.push("app", "1", self.image)
        self.assertIn("does not speak TLS", self.refused("image", "pull", name))

    def test_certificates_are_checked(self):
        registry = Registry(tls=True)
        self.addCleanup(registry.stop)
        name = f"{registry.host}/app:1"
        self.assertIn("certificate", self.refused("image", "pull", name))
        self.assertIn("there is no manifest '1'", self.refused("image", "pull", "--ca", registry.certificate, name))

    def test_what_cannot_be_pulled_is_named(self):
        name = self.registry.push("bad", "1", self.image)
        self.assertIn("there is no manifest '2'", self.refused("image", "pull", "--plain-http", f"{self.registry.host}/bad:2"))
        self.assertIn("there is no manifest", self.refused("image", "pull", "--plain-http", f"{self.registry.host}/nobody:1"))
        self.assertIn("may not be part of a name", self.refused("image", "pull", "Bad Name"))
        other = self.registry.push("bad", "vax", Image([self.layer], architecture="vax"))
        self.assertIn("the image is for 'linux/vax'", self.refused("image", "pull", "--plain-http", other))
        spoilt = Image([tar_of({"spoilt": b"x" * 1000})])
        name = self.registry.push("bad", "spoilt", spoilt)
        file = self.registry.blob_file(next(d for d in spoilt.blobs if d != spoilt.config))
        file.write_bytes(bytes(reversed(file.read_bytes())))
        self.assertIn("is not what its digest says", self.refused("image", "pull", "--plain-http", name))
        self.assertEqual(self.done("image", "ls", "-q").stdout, "")

    def test_credentials(self):
        registry = Registry("me", "s3cret pass")
        self.addCleanup(registry.stop)
        name = registry.push("private", "1", self.image)
        pull = ("image", "pull", "--plain-http", name)
        self.assertIn("wants credentials", self.refused(*pull))
        wrong = self.refused(*pull, "--user", "me", "--password-stdin", stdin="wr0ng\n")
        self.assertIn("it wants other credentials", wrong)
        self.assertNotIn("wr0ng", wrong)
        self.done(*pull, "--user", "me", "--password-stdin", stdin="s3cret pass\n")

        need("skopeo")
        os.mkdir(self.path("docker"))
        subprocess.run(["skopeo", "login", "--tls-verify=false", "--authfile", self.path("docker/config.json"), "-u", "me",
                        "--password-stdin", registry.host], input="s3cret pass", text=True, check=True, stdout=subprocess.DEVNULL)
        self.done(*pull)
        self.done(*pull, "--docker-config", self.path("docker/config.json"), env={"DOCKER_CONFIG": "/nowhere"})

    def test_archives_that_skopeo_writes(self):
        need("skopeo")
        self.image.write_layout(self.path("layout"), "app:oci")
        for kind, name in (("docker-archive", "app:docker"), ("oci-archive", "app:archive")):
            subprocess.run(["skopeo", "copy", "-q", "--insecure-policy", f"oci:{self.path('layout')}:app:oci",
                            f"{kind}:{self.path(kind)}.tar:{name}"], check=True)
        docker = self.path("docker-archive.tar")
        subprocess.run(["gzip", "-k", docker], check=True)
        for path, name in ((docker, "app:docker"), (docker + ".gz", "app:docker"),
                           (self.path("oci-archive.tar"), "app:archive"), (self.path("layout"), "app:oci")):
            with self.subTest(path=path):
                self.assertEqual(self.done("image", "load", path).stdout.strip(), "docker.io/library/" + name)
                self.expect_it_runs(name)
                self.remove_images()
        with open(docker, "rb") as archive:
            cat = subprocess.Popen(["cat"], stdin=archive, stdout=subprocess.PIPE)
            env = dict(os.environ, HEARTH_STATE_DIR=self.engine.state_dir, XDG_CACHE_HOME=self.path("cache"))
            piped = subprocess.run([HEARTH, "image", "load"], stdin=cat.stdout, env=env, capture_output=True, text=True, timeout=60)
            cat.stdout.close()
            cat.wait()
        self.assertEqual(piped.stdout.strip(), "docker.io/library/app:docker", piped.stderr)

    def test_broken_archives(self):
        path = pathlib.Path(self.path("x.tar"))
        self.assertIn("ENOENT", self.refused("image", "load", self.path("missing")))
        for content, why in ((b"noise" * 1000, "x.tar"), (tar_of({"etc/passwd": b"x"}), "hearth image import"),
                             (tar_of({"manifest.json": b"["}), "not JSON"), (b"\x1f\x8b\x08nonsense", "x.tar")):
            path.write_bytes(content)
            self.assertIn(why, self.refused("image", "load", str(path)))
        self.image.write_layout(self.path("layout"), "app:1")
        blob = pathlib.Path(self.path("layout/blobs/sha256"), self.image.config.removeprefix("sha256:"))
        blob.write_bytes(b"{}" + blob.read_bytes()[2:])
        self.assertIn("is not what its digest says", self.refused("image", "load", self.path("layout")))

    def test_import_archives_and_folders(self):
        tar = self.path("root.tar")
        pathlib.Path(tar).write_bytes(self.layer)
        subprocess.run(["xz", "-k", "-0", tar], check=True)
        os.mkdir(self.path("root"))
        subprocess.run(["tar", "-C", self.path("root"), "-xf", tar], check=True)
        for path in (tar, tar + ".xz", self.path("root")):
            with self.subTest(path=path):
                made = self.done("image", "import", path, "--name", "mine:1", "-e", "A=b", "--", "sh", "-c", "echo $A")
                self.assertEqual(made.stdout.strip(), "docker.io/library/mine:1")
                self.assertEqual(self.done("run", "--rm", "--image", "mine:1", "--", "sh", "-c", "echo $0 ran").stdout, "sh ran\n")
                config = json.loads(self.done("image", "inspect", "mine:1").stdout)[0]["config"]
                self.assertEqual((config["command"], config["environment"]), (["sh", "-c", "echo $A"], ["A=b"]))
        pathlib.Path(tar).write_bytes(b"no archive")
        self.assertIn("root.tar", self.refused("image", "import", tar, "--name", "x"))
        self.assertIn("there is no image 'nobody'", self.refused("image", "rm", "nobody"))
        self.assertIn("there is no image 'nobody'", self.refused("image", "inspect", "nobody"))

    def test_import_debian(self):
        need("mmdebstrap")
        made = self.hearth("image", "import", "--debian", "bookworm", timeout=280)
        if made.returncode != 0:
            self.skipTest(f"needs a Debian mirror: {made.stderr.strip().splitlines()[-3:]}")
        said = self.done("run", "--rm", "--image", "debian:bookworm", "--", "cat", "/etc/debian_version").stdout
        self.assertTrue(said.startswith("12"), said)

    def test_debian_without_mmdebstrap(self):
        self.assertIn("apt-get install mmdebstrap",
                      self.refused("image", "import", "--debian", "bookworm", env={"PATH": "/nowhere"}))
        self.assertIn("is no release", self.refused("image", "import", "--debian", "book worm", "--name", "x"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
