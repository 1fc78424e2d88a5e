"""The Kubernetes API without sandboxes: `hearth apiserver`, kubectl behind our verb, backups. Needs no root."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import unittest

from hearth import HEARTH, wait_until


class ApiServer:
    def __init__(self, state_dir):
        self.state_dir = state_dir
        self.process = None

    def start(self, *extra):
        self.process = subprocess.Popen([HEARTH, "apiserver", "--state-dir", self.state_dir, "--kube-port", "0", *extra],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        self.first_line = self.process.stdout.readline()
        if not self.first_line.startswith("ready "):
            raise AssertionError(f"hearth apiserver: {self.first_line}{self.process.communicate(timeout=10)[0]}")
        return self

    def end(self, sig=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        code = self.process.wait(60)
        self.process.stdout.close()
        return code

    def token(self):
        return pathlib.Path(self.state_dir, "admin.token").read_text().strip()

    def ask(self, method, path, body=None, token=None):
        """The status and the text of an answer."""
        url = json.loads(pathlib.Path(self.state_dir, "endpoints.json").read_text())["kube"]
        trust = ssl.create_default_context(cafile=f"{self.state_dir}/engine/pki/ca.crt")
        connection = http.client.HTTPSConnection(url.removeprefix("https://"), timeout=60, context=trust)
        headers = {"Authorization": f"Bearer {token or self.token()}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body and json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def put_note(self, name):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"note": name}}
        status, text = self.ask("POST", "/api/v1/namespaces/default/configmaps", body)
        assert status == 201, text

    def notes(self):
        status, text = self.ask("GET", "/api/v1/namespaces/default/configmaps")
        assert status == 200, text
        return {item["metadata"]["name"] for item in json.loads(text)["items"]} - {"kube-root-ca.crt"}


class KubeTest(unittest.TestCase):
    def setUp(self):
        if not pathlib.Path(HEARTH).exists():
            raise unittest.SkipTest(f"needs {HEARTH}: build first")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hearth-kube-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.state_dir = str(self.folder / "state")
        self.server = ApiServer(self.state_dir)
        self.addCleanup(lambda: self.server.process and self.server.process.poll() is None and self.server.end(signal.SIGKILL))

    def hearth(self, *words, env=None):
        return subprocess.run([HEARTH, "--state-dir", self.state_dir, *words], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))

    def expect_refusal(self, result, *parts):
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def kept_files(self):
        return {path.name for path in pathlib.Path(self.state_dir, "engine/kube").iterdir()}


class ServerTest(KubeTest):
    def test_serves_and_ends(self):
        self.server.start()
        self.assertRegex(self.server.first_line, r"^ready kube=https://127\.0\.0\.1:\d+ state-dir=")
        self.assertEqual(self.server.ask("GET", "/healthz"), (200, "ok"))
        self.assertEqual(self.server.ask("GET", "/api/v1/namespaces", token="wrong")[0], 401)
        self.assertEqual(self.server.end(), 0)
        self.assertFalse(pathlib.Path(self.state_dir, "endpoints.json").exists())
        self.server.start()
        self.assertEqual(self.server.end(signal.SIGINT), 0)

    def test_what_it_writes_is_its_owners_alone(self):
        self.server.start()
        for name in ("admin.kubeconfig", "admin.token", "endpoints.json", "engine/pki/ca.key", "engine/kube/objects.db"):
            mode = os.stat(f"{self.state_dir}/{name}").st_mode
            self.assertEqual(stat.S_IMODE(mode) & 0o077, 0, name)
        self.assertEqual(os.stat(self.state_dir).st_mode & 0o007, 0)

    def test_a_token_can_be_given_and_is_kept(self):
        self.server.start("--token", "for-a-test")
        self.assertEqual(self.server.ask("GET", "/api/v1/namespaces", token="for-a-test")[0], 200)
        self.server.end()
        self.server.start()
        self.assertEqual(self.server.token(), "for-a-test")

    def test_env_names_the_kubeconfig(self):
        self.server.start()
        self.assertIn(f"export KUBECONFIG={self.state_dir}/admin.kubeconfig", self.hearth("env").stdout.splitlines())

    def test_a_kill_loses_nothing(self):
        self.server.start()
        for count in range(20):
            self.server.put_note(f"note-{count}")
        self.server.end(signal.SIGKILL)
        self.server.start()
        self.assertEqual(self.server.notes(), {f"note-{count}" for count in range(20)})

    def test_what_cannot_be_is_said_in_a_line(self):
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            port = str(busy.getsockname()[1])
            self.expect_refusal(self.hearth("apiserver", "--kube-port", port), port, "--kube-port")
        for address in ("localhost", "192.0.2.1", "300.1.1.1"):
            self.expect_refusal(self.hearth("apiserver", "--kube-port", "0", "--listen", address), "--listen", address)
        used = self.folder / "used"
        used.mkdir()
        (used / "thesis.txt").write_text("years of work")
        self.expect_refusal(self.hearth("apiserver", "--kube-port", "0", "--state-dir", str(used)), str(used), "something else")
        if os.geteuid() == 0:
            return
        self.expect_refusal(self.hearth("apiserver", "--kube-port", "0", "--state-dir", "/"), "'/'")

    def test_two_do_not_share_a_folder(self):
        self.server.start()
        self.expect_refusal(self.hearth("apiserver", "--kube-port", "0"), f"pid {self.server.process.pid}")
        self.assertEqual(self.server.ask("GET", "/healthz")[0], 200)

    def test_objects_that_are_damaged_are_not_served(self):
        self.server.start()
        self.server.put_note("one")
        self.server.end()
        objects = pathlib.Path(self.state_dir, "engine/kube/objects.db")
        for file in (objects, objects.with_name("objects.db-wal")):
            if file.exists():
                file.write_bytes(file.read_bytes().replace(b'"note":"one"', b'"note":"ONE"'))
        result = self.hearth("apiserver", "--kube-port", "0")
        self.expect_refusal(result, str(objects))
        self.assertEqual(result.returncode, 1)


class KubectlTest(KubeTest):
    def stand_in(self, script):
        program = self.folder / "bin" / "kubectl"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return {"PATH": f"{program.parent}:{os.environ['PATH']}"}

    def test_words_and_exit_code_pass_through(self):
        self.server.start()
        env = self.stand_in('echo "$KUBECONFIG" "$@"; exit 3')
        result = self.hearth("kubectl", "get", "pods", "--help", "-o", "json", env=env)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stdout, f"{self.state_dir}/admin.kubeconfig get pods --help -o json\n")

    @unittest.skipUnless(shutil.which("kubectl"), "needs kubectl")
    def test_the_real_one(self):
        self.server.start()
        env = {"HOME": str(self.folder)}
        result = self.hearth("kubectl", "get", "namespace", "default", "-o", "name", env=env)
        self.assertEqual((result.returncode, result.stdout), (0, "namespace/default\n"), result.stderr)
        self.assertEqual(self.hearth("kubectl", "get", "pod", "nobody", env=env).returncode, 1)

    def test_without_an_engine(self):
        self.expect_refusal(self.hearth("kubectl", "get", "pods"), "hearth up")
        self.server.start()
        self.server.end()
        self.expect_refusal(self.hearth("kubectl", "get", "pods"), "hearth up")

    def test_without_kubectl(self):
        self.server.start()
        self.expect_refusal(self.hearth("kubectl", "get", "pods", env={"PATH": str(self.folder)}), "kubernetes-client", "KUBECONFIG")

    def test_help_is_ours(self):
        self.assertIn("Examples:", self.hearth("kubectl", "--help").stdout)


class BackupTest(KubeTest):
    def setUp(self):
        super().setUp()
        self.file = str(self.folder / "objects.backup")
        self.server.start()
        self.server.put_note("one")

    def backup(self, file=None):
        result = self.hearth("backup", file or self.file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(stat.S_IMODE(os.stat(file or self.file).st_mode), 0o600)

    def restore(self, *words):
        result = self.hearth("restore", *words, self.file)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_of_a_server_that_runs(self):
        self.backup()
        self.server.put_note("two")
        self.assertEqual(self.kept_files() & {"backup.tmp"}, set())
        self.server.end()
        self.restore("--replace")
        self.server.start()
        self.assertEqual(self.server.notes(), {"one"})
        self.assertIn("objects.db.before-restore", self.kept_files())

    def test_of_one_that_does_not(self):
        self.server.end()
        self.backup()
        self.assertEqual({name for name in self.kept_files() if "tmp" in name}, set())
        self.folder.chmod(0o711)  # root's engine is somebody else
        self.state_dir = self.server.state_dir = str(self.folder / "new")
        self.restore()
        self.server.start()
        self.assertEqual(self.server.notes(), {"one"})

    def test_of_one_that_was_killed(self):
        self.server.end(signal.SIGKILL)
        self.backup()
        self.server.start()
        self.assertEqual(self.server.notes(), {"one"})

    def test_a_client_that_goes_away_leaves_nothing(self):
        for count in range(40):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"big-{count}"}, "data": {"x": "x" * 500_000}}
            self.assertEqual(self.server.ask("POST", "/api/v1/namespaces/default/configmaps", body)[0], 201)
        url = json.loads(pathlib.Path(self.state_dir, "endpoints.json").read_text())["kube"]
        trust = ssl.create_default_context(cafile=f"{self.state_dir}/engine/pki/ca.crt")
        connection = http.client.HTTPSConnection(url.removeprefix("https://"), timeout=60, context=trust)
        connection.request("GET", "/hearth/backup", headers={"Authorization": f"Bearer {self.server.token()}"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertGreater(int(answer.getheader("Content-Length")), 20_000_000)
        answer.read(1000)
        self.assertEqual({name for name in self.kept_files() if name.startswith("backup")}, set())
        descriptors = pathlib.Path(f"/proc/{self.server.process.pid}/fd")

        def copies_in_use():
            return [link for link in map(str, descriptors.iterdir()) if "backup.tmp" in read_link(link)]
        self.assertTrue(copies_in_use())
        answer.close()
        connection.close()
        wait_until(lambda: not copies_in_use(), 30, "letting go of the copy")

    def test_only_for_those_who_may(self):
        self.assertEqual(self.server.ask("GET", "/hearth/backup", token="wrong")[0], 401)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "curious"}}
        self.server.ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)
        status, text = self.server.ask("POST", "/api/v1/namespaces/default/serviceaccounts/curious/token",
                                       {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        self.assertEqual(status, 201, text)
        token = json.loads(text)["status"]["token"]
        self.assertEqual(self.server.ask("GET", "/hearth/backup", token=token)[0], 403)

    def test_a_token_that_is_not_known_is_said(self):
        pathlib.Path(self.state_dir, "engine/admin.token").write_text("wrong\n")
        self.expect_refusal(self.hearth("backup", self.file), "401")
        self.assertEqual(os.listdir(self.folder), ["state"])

    def test_files_that_cannot_be_written(self):
        self.backup()
        before = pathlib.Path(self.file).read_bytes()
        self.expect_refusal(self.hearth("backup", self.file), self.file, "already")
        self.assertEqual(pathlib.Path(self.file).read_bytes(), before)
        self.expect_refusal(self.hearth("backup", str(self.folder / "no/such/folder")), "no/such/folder")
        self.state_dir = str(self.folder / "nothing")
        self.expect_refusal(self.hearth("backup", str(self.folder / "other")), "no objects")

    def test_what_is_there_is_not_replaced_unasked(self):
        self.backup()
        self.expect_refusal(self.hearth("restore", self.file), f"pid {self.server.process.pid}")
        self.expect_refusal(self.hearth("restore", "--replace", self.file), f"pid {self.server.process.pid}")
        self.server.end()
        self.expect_refusal(self.hearth("restore", self.file), "--replace")

    def test_a_backup_that_is_damaged_changes_nothing(self):
        self.backup()
        self.server.put_note("two")
        self.server.end()
        whole = pathlib.Path(self.file).read_bytes()
        before = self.kept_files()
        for content in (b"", b"something else", whole[: len(whole) // 2], whole[:-4096] + bytes(4096),
                        whole.replace(b'"note":"one"', b'"note":"ONE"')):
            pathlib.Path(self.file).write_bytes(content)
            self.expect_refusal(self.hearth("restore", "--replace", self.file))
            self.assertEqual(self.kept_files(), before)
        self.expect_refusal(self.hearth("restore", "--replace", "/no/such/file"), "/no/such/file")
        self.server.start()
        self.assertEqual(self.server.notes(), {"one", "two"})


def read_link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


if __name__ == "__main__":
    unittest.main(verbosity=2)
