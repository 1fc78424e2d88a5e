"""What listens in a sandbox, how to reach it from outside, and how a sandbox becomes somebody's."""
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
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
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
            with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
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
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            self.assertEqual(s.recv(1), b"")
        self.assertIn("nobody listens on port 7777", process.stderr.readline())
        self.assertIsNone(process.poll())
        process.terminate()
        self.assertEqual(process.wait(10), 0)

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
