"""What listens in a sandbox, how to reach it from outside, and how a sandbox becomes somebody's."""
import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import unittest

from hearth import HEARTH, Engine, need_root, wait_until


STORM = """import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(1000)
    except OSError:
        pass
"""


class SurfaceCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        cls.engine = Engine()
        cls.addClassCleanup(cls.engine.remove)
        cls.engine.start()

    def setUp(self):
        self.addCleanup(lambda: self.engine.hearth("rm", "--all"))

    def hearth(self, *words, **kwargs):
        return self.engine.hearth(*words, **kwargs)

    def run_box(self, *words):
        done = self.hearth("run", "-d", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def start(self, *words):
        process = subprocess.Popen([HEARTH, "--state-dir", self.engine.state_dir, *words], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def forward(self, box, port):
        """The port on this machine that leads to one inside."""
        process = self.start("forward", box, f"0:{port}")
        return int(re.fullmatch(rf"127\.0\.0\.1:(\d+) -> {port}\n", process.stdout.readline())[1])

    def inside(self, box, script):
        done = self.hearth("exec", box, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Forward(SurfaceCase):
    def test_bytes_go_both_ways_whatever_the_network(self):
        box = self.run_box("--network", "none")
        self.hearth("exec", "-d", box, "--", "python3", "-m", "http.server", "--bind", "127.0.0.1", "7777")
        wait_until(lambda: "7777" in self.hearth("ports", box).stdout.split())
        port = self.forward(box, 7777)
        self.inside(box, "echo from inside > /root/page")
        for _ in range(3):
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request("GET", "/page")
                self.assertEqual(connection.getresponse().read(), b"from inside\n")

    def test_many_at_once_and_a_lot(self):
        box = self.run_box()
        self.hearth("exec", "-d", box, "--", "python3", "-c", """
import socket, threading
def echo(s):
    while piece := s.recv(65536): s.sendall(piece)
    s.shutdown(socket.SHUT_WR)
listener = socket.create_server(("127.0.0.1", 7777), backlog=64)
while True: threading.Thread(target=echo, args=(listener.accept()[0],)).start()
""")
        wait_until(lambda: "7777" in self.hearth("ports", box).stdout.split())
        port = self.forward(box, 7777)
        sent = os.urandom(1 << 20)
        received = []

        def talk():
            with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
                writer = threading.Thread(target=lambda: (s.sendall(sent), s.shutdown(socket.SHUT_WR)))
                writer.start()
                got = b""
                while piece := s.recv(1 << 16):
                    got += piece
                writer.join()
                received.append(got == sent)

        threads = [threading.Thread(target=talk) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(received, [True] * 20)

    def test_nobody_listening_is_said_and_is_no_end(self):
        box = self.run_box()
        process = self.start("forward", box, "0:7777")
        port = int(process.stdout.readline().split()[0].split(":")[1])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
            self.assertEqual(s.recv(1), b"")
        self.assertIn("nobody listens on port 7777", process.stderr.readline())
        self.assertIsNone(process.poll())
        process.terminate()
        self.assertEqual(process.wait(60), 0)

    def test_refuses_nonsense(self):
        box = self.run_box()
        for words, complaint in ((("forward", "nobody", "80"), "nobody"), (("forward", box, "0"), "no port"),
                                 (("forward", box), "which port"), (("ports", "nobody"), "nobody")):
            done = self.hearth(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(complaint, done.stderr)


class Ports(SurfaceCase):
    def test_follows_them(self):
        box = self.run_box()
        process = self.start("ports", "-f", box)
        self.assertEqual(process.stdout.readline(), "\n")
        self.hearth("exec", "-d", box, "--", "python3", "-m", "http.server", "7777")
        self.assertEqual(process.stdout.readline(), "7777\n")
        self.inside(box, "pkill -f '[h]ttp.server'")
        self.assertEqual(process.stdout.readline(), "\n")

    def test_surfaces_listen_from_the_beginning(self):
        box = self.run_box("--serve", "all")
        self.assertEqual(json.loads(self.hearth("ports", "-o", "json", box).stdout), [8080, 8888, 49983, 49999])
        told = json.loads(self.hearth("inspect", box).stdout)[0]["surfaces"]
        self.assertEqual(told, {"envd": 49983, "code": 49999, "runtime-api": 8888, "sandboxd": 8080})

    def test_only_those_that_were_asked_for(self):
        box = self.run_box("--serve", "sandboxd:1234")
        self.assertEqual(self.hearth("ports", box).stdout, "1234\n")
        self.assertEqual(self.hearth("ports", self.run_box()).stdout, "")


class Hostile(SurfaceCase):
    """Whatever runs inside, and whoever asks: the surfaces answer, and only whom they should."""

    def serve(self, *words):
        self.box = self.run_box("--serve", "all", *words)
        self.port = {surface: self.forward(self.box, port) for surface, port in
                     (("envd", 49983), ("code", 49999), ("runtime-api", 8888), ("sandboxd", 8080))}

    def ask(self, surface, method, target, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port[surface], timeout=60)
        with contextlib.closing(connection):
            connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def execute(self, command):
        status, body = self.ask("runtime-api", "POST", "/execute", json.dumps({"command": command}),
                                Content_Type="application/json")
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def assert_answers(self):
        self.assertEqual(self.ask("envd", "GET", "/health")[0], 204)
        self.assertEqual(self.ask("code", "GET", "/health")[0], 200)
        self.assertEqual(self.ask("runtime-api", "GET", "/")[0], 200)
        self.assertEqual(self.ask("sandboxd", "GET", "/v1/health")[0], 200)

    def test_kill_everything(self):
        self.serve()
        self.hearth("exec", "-d", self.box, "--", "sleep", "1000")
        self.execute("sh -c 'kill -9 -1'")
        wait_until(lambda: "sleep" not in self.inside(self.box, "ps axo args | grep '[s]leep' || true"), what="the end of the sleeper")
        self.assert_answers()
        self.assertEqual(self.execute("echo alive")["stdout"], "alive\n")

    def test_a_fork_storm(self):
        self.serve("--pids", "64")
        self.hearth("exec", "-d", self.box, "--", "python3", "-c", STORM)
        wait_until(lambda: self.execute("echo no room")["exit_code"] != 0, what="as many as there may be")
        self.assert_answers()

    def test_no_memory(self):
        self.serve("--memory", "64m")
        self.assertEqual(self.execute("python3 -c 'bytearray(10**9)'")["exit_code"], -9)
        self.assert_answers()
        self.assertEqual(self.execute("echo alive")["stdout"], "alive\n")

    def test_a_full_disk(self):
        self.serve("--disk", "8m")
        self.assertNotEqual(self.execute("dd if=/dev/zero of=/fill bs=1M count=20")["exit_code"], 0)
        status, body = self.ask("sandboxd", "PUT", "/v1/files/large", b"x" * 100_000)
        self.assertEqual(status, 500, body)
        self.assertIn(b"ENOSPC", body)
        status, body = self.ask("envd", "POST", "/files?path=/large&username=root", b"x" * 100_000,
                                Content_Type="application/octet-stream")
        self.assertEqual(status, 507, body)
        self.assert_answers()
        self.execute("rm /fill")
        self.assertEqual(self.ask("sandboxd", "PUT", "/v1/files/large", b"x" * 100_000)[0], 204)

    def test_orphans_by_the_thousand(self):
        self.serve("--pids", "0")
        done = self.execute("""python3 -c 'import os
for _ in range(3000):
    if (child := os.fork()) == 0:
        os.fork()
        os._exit(0)
    os.waitpid(child, 0)'""")
        self.assertEqual(done["exit_code"], 0, done)
        wait_until(lambda: self.execute("sh -c 'ps axo stat | grep -c Z'")["stdout"] == "0\n", what="no zombie left")

    def test_a_folder_that_is_gone(self):
        self.serve()
        self.execute("rm -r /app")
        self.assertEqual(self.execute("pwd")["stdout"], "/app\n")

    def test_commands_have_nothing_of_the_guest(self):
        self.serve("-e", "HF_TOKEN=secret", "-e", "SUBPROCESS_ENV_PASSTHROUGH=GOOD", "-e", "GOOD=1")
        said = self.execute("sh -c 'env; ls /proc/self/fd'")["stdout"]
        self.assertNotIn("HF_TOKEN", said)
        self.assertIn("GOOD=1\n", said)
        self.assertEqual(said.split()[-4:], ["0", "1", "2", "3"])  # ls has the folder open

    def test_what_the_guest_may_look_at_in_itself_is_not_served(self):
        """Its descriptors lead out of the root, into what every sandbox of the machine is made of."""
        self.serve()
        self.inside(self.box, "ln -s /proc/1/fd /tmp/way; ln -s /proc/1/task /tmp/tasks")

        def lists(path):
            return self.ask("envd", "POST", "/filesystem.Filesystem/ListDir", json.dumps({"path": path}), Content_Type="application/json")

        self.assertEqual(lists("/proc/1/net")[0], 200)
        for path in ("/proc/self/fd", "/proc/1/fd", "/proc/thread-self/fd", "/proc/self/task", "/tmp/way", "/tmp/tasks"):
            self.assertNotEqual(lists(path)[0], 200, path)
            for number in range(64):
                self.assertNotEqual(lists(f"{path}/{number}")[0], 200, (path, number))
        for path in ("/proc/self/mem", "/proc/1/mem", "/proc/self/task/1/mem"):
            self.assertNotEqual(self.ask("envd", "GET", f"/files?path={path}")[0], 200, path)
        self.assert_answers()

    def test_a_token(self):
        with tempfile.NamedTemporaryFile("w") as token:
            token.write("sesame\n")
            token.flush()
            self.serve("--token-file", token.name)
        doors = (("envd", "GET", "/envs"), ("runtime-api", "GET", "/exists/x"), ("sandboxd", "GET", "/v1/metadata"))
        for surface, method, target in doors:
            self.assertEqual(self.ask(surface, method, target)[0], 401, surface)
            self.assertEqual(self.ask(surface, method, target, X_Access_Token="wrong")[0], 401, surface)
            self.assertEqual(self.ask(surface, method, target, X_Access_Token="sesame")[0], 200, surface)
        cell = json.dumps({"code": "1"})
        self.assertEqual(self.ask("code", "POST", "/execute", cell, Content_Type="application/json")[0], 401)
        self.assert_answers()
        self.assertNotIn("sesame", self.hearth("exec", self.box, "--", "env").stdout)
        self.assertNotIn("sesame", self.hearth("inspect", self.box).stdout)


class Configure(SurfaceCase):
    def test_makes_a_sandbox_somebodys_once(self):
        box = self.run_box()
        with tempfile.NamedTemporaryFile("w") as secret:
            secret.write("sesame")
            secret.flush()
            done = self.hearth("configure", box, "-e", "TENANT=alice", "-w", "/tmp", "--hostname", "alices",
                               "--secret", f"/run/secrets/key={secret.name}")
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = self.inside(box, "echo $TENANT; pwd; hostname; cat /run/secrets/key; stat -c %a /run/secrets/key")
        self.assertEqual(seen, "alice\n/tmp\nalices\nsesame400\n")
        again = self.hearth("configure", box, "-e", "TENANT=bob")
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("somebody's", again.stderr)

    def test_all_of_it_or_nothing(self):
        box = self.run_box()
        name = self.inside(box, "hostname")
        for words in (("-u", "nobody-of-that-name"), ("--hostname", "no name"), ("-w", "relative")):
            done = self.hearth("configure", box, "-e", "TENANT=alice", "--hostname", "alices", *words)
            self.assertNotEqual(done.returncode, 0, words)
        self.assertEqual(self.inside(box, "hostname; echo $TENANT"), name + "\n")


if __name__ == "__main__":
    unittest.main()
