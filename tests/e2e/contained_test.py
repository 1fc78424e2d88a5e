"""The guest as the first process of a container that is not ours: as a kubelet's runtime would start it, in namespaces
of a user without rights, on a root that is read-only."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from hearth import HEARTH, free_ports, wait_until

GUEST = str(pathlib.Path(HEARTH).parent / "hearth-guest")
# Pids, mounts and users of its own; then nobody can gain or use a right any more.
CONTAINER = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
NO_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
READ_ONLY = 'mount -o remount,ro,bind / && exec "$@"'


def ask(port, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        content = json.dumps(body) if body is not None else None
        connection.request(method, path, content, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def accepts(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Contained(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not pathlib.Path(GUEST).exists():
            raise unittest.SkipTest(f"needs {GUEST}: build first")
        tried = subprocess.run([*CONTAINER, "sh", "-c", READ_ONLY, "sh", *NO_RIGHTS, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            raise unittest.SkipTest(f"needs user namespaces: {tried.stderr}")
        cls.folder = tempfile.mkdtemp(prefix="hearth-contained-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.chmod(cls.folder, 0o755)
        # As the init container does.
        subprocess.run([GUEST, "install", f"{cls.folder}/bin"], check=True)
        cls.guest = f"{cls.folder}/bin/hearth-guest"

    def command(self, *words):
        return [*CONTAINER, "sh", "-c", READ_ONLY, "sh", *NO_RIGHTS, self.guest, "serve", *words]

    def start(self, *words, **variables):
        process = subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env={**os.environ, **variables})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def first_process(self, process):
        """The pid, as seen here, of the guest that unshare waits for."""
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        return int(wait_until(lambda: children.read_text().split(), 30, "the guest")[0])

    def serve(self, *words, **variables):
        """A guest with envd, code and runtime-api; its ports."""
        ports = free_ports(3)
        surfaces = "--surfaces=" + ",".join(f"{name}={port}" for name, port in zip(("envd", "code", "runtime-api"), ports))
        process = self.start(surfaces, *words, **variables)
        wait_until(lambda: all(map(accepts, ports)) or process.poll() is not None, 30, "surfaces")
        self.assertIsNone(process.poll(), "the guest ended")
        return process, ports

    def run_guest(self, *words):
        return subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def test_the_command_is_the_containers_own(self):
        done = self.run_guest("--surfaces=none", "--", "sh", "-c", "echo $$; cat /proc/1/comm; touch /x; exit 9")
        self.assertEqual(done.returncode, 9)
        pid, first = done.stdout.split()
        self.assertNotEqual(pid, "1")
        self.assertEqual(first, "hearth-guest")
        self.assertIn("Read-only file system", done.stderr)

    def test_any_user_will_do(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be somebody without a name")
        somebody = ["setpriv", "--reuid=12345", "--regid=12346", "--clear-groups", *NO_RIGHTS[1:]]
        done = subprocess.run([*somebody, self.guest, "serve", "--surfaces=none", "--", "id"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "uid=12345 gid=12346 groups=12346\n"), done.stderr)

    def test_no_right_is_left_to_anybody(self):
        _, (_, _, api) = self.serve("--", "sleep", "1000")
        status, said = ask(api, "POST", "/execute", {"command": "grep -h Cap /proc/self/status"})
        self.assertEqual(status, 200, said)
        masks = {line.split()[1] for line in json.loads(said)["stdout"].splitlines()}
        self.assertEqual(masks, {"0" * 16})

    def test_surfaces_are_served_beside_the_command(self):
        process, (envd, code, api) = self.serve("--", "sleep", "1000")
        self.assertEqual(ask(envd, "GET", "/health")[0], 204)
        status, said = ask(envd, "POST", "/process.Process/List", {})
        self.assertEqual(status, 200, said)
        status, said = ask(api, "POST", "/execute", {"command": "cat /proc/1/comm"})
        self.assertEqual((status, json.loads(said)["stdout"]), (200, "hearth-guest\n"))
        status, said = ask(code, "POST", "/execute", {"code": "print(6 * 7)"})
        self.assertIn("42", said)
        self.assertIsNone(process.poll())

    def test_files_go_where_something_can_be_written(self):
        _, (envd, _, _) = self.serve("--", "sleep", "1000")
        path = f"/dev/shm/hearth-contained-{os.getpid()}"
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        connection = http.client.HTTPConnection("127.0.0.1", envd, timeout=30)
        self.addCleanup(connection.close)
        connection.request("POST", f"/files?path={path}", b"text", {"Content-Type": "application/octet-stream"})
        self.assertEqual(connection.getresponse().status, 200)
        self.assertEqual(ask(envd, "GET", f"/files?path={path}"), (200, "text"))
        # And not where nothing can.
        self.assertGreaterEqual(ask(envd, "GET", "/files?path=/hearth-nowhere")[0], 400)

    def test_the_token_is_asked_for_and_told_to_nobody(self):
        _, (_, _, api) = self.serve("--", "sleep", "1000", HEARTH_GUEST_TOKEN="secret")
        self.assertEqual(ask(api, "GET", "/")[0], 200)
        self.assertEqual(ask(api, "POST", "/execute", {"command": "env"})[0], 401)
        status, said = ask(api, "POST", "/execute", {"command": "env"}, **{"X-Access-Token": "secret"})
        self.assertEqual(status, 200)
        self.assertNotIn("HEARTH_GUEST_TOKEN", said)
        # Not even by what the guest began with.
        status, said = ask(api, "POST", "/execute", {"command": "cat /proc/1/environ"}, **{"X-Access-Token": "secret"})
        self.assertNotIn("secret", said)

    def test_sigterm_goes_to_the_command_and_its_code_comes_back(self):
        process = self.start("--surfaces=none", "--", "sh", "-c", "trap 'exit 5' TERM; echo there; while :; do sleep 0.05; done")
        self.assertEqual(process.stdout.readline(), "there\n")
        os.kill(self.first_process(process), signal.SIGTERM)
        self.assertEqual(process.wait(60), 5)

    def test_without_a_command_sigterm_reaches_everybody_and_ends_it(self):
        process, (_, _, api) = self.serve()
        marker = pathlib.Path(f"/dev/shm/hearth-told-{os.getpid()}")
        self.addCleanup(lambda: marker.exists() and marker.unlink())
        program = pathlib.Path(self.folder) / "stays.sh"
        program.write_text(f"trap 'echo told > {marker}; exit' TERM\necho on > {marker}\nwhile :; do sleep 0.05; done\n")
        self.assertEqual(ask(api, "POST", "/execute", {"command": f"sh -c 'sh {program} >/dev/null 2>&1 &'"})[0], 200)
        wait_until(lambda: marker.exists() and marker.read_text() == "on\n", 30, "a process that stays")
        os.kill(self.first_process(process), signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(marker.read_text(), "told\n")

    def test_a_port_that_is_taken_costs_its_surface_only(self):
        with contextlib.ExitStack() as stack:
            try:
                taken = stack.enter_context(socket.create_server(("0.0.0.0", 49983)))
            except OSError:
                self.skipTest("port 49983 is somebody else's")
            done = self.run_guest("--taken-ports=8888,49999", "--", "true")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("no surface 'envd'", done.stderr)
            done = self.run_guest("--surfaces=envd", "--", "true")
            self.assertEqual(done.returncode, 1)
            self.assertIn("49983", done.stderr)
            taken.close()

    def test_an_image_with_nothing_else_can_install_it(self):
        root = pathlib.Path(self.folder) / "image"
        (root / "hearth/bin").mkdir(parents=True)
        (root / "proc").mkdir()
        shutil.copy(GUEST, root / "hearth-guest")
        script = f"mount -t proc proc {root}/proc && exec chroot {root} /hearth-guest install /hearth/bin"
        done = subprocess.run([*CONTAINER, "sh", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((root / "hearth/bin/hearth-guest").read_bytes(), pathlib.Path(GUEST).read_bytes())


if __name__ == "__main__":
    unittest.main()
