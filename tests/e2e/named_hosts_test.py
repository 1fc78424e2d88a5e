"""Hosts that a sandbox may reach by name, with a world of the test's own: a network namespace with a name server and a
web server, and this process's own view of /etc/resolv.conf, which the engine inherits."""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from e2b import E2b
from hearth import Engine, need_root, wait_until

HOST, DNS, API, OTHER = "198.51.100.1", "198.51.100.53", "198.51.100.80", "198.51.100.81"
NAMES = {"api.example.test": API, "a.pkg.test": API, "b.c.pkg.test": OTHER, "pkg.test": OTHER, "other.test": OTHER, "trap.pkg.test": HOST}
ALL = "0.0.0.0/0"
CLONE_NEWNS = 0x00020000
LINK = "hnames"

WORLD = """
import http.server, socket, struct, sys, threading
names = dict(pair.split("=") for pair in sys.argv[2:])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], 53))
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_):
        pass
threading.Thread(target=http.server.ThreadingHTTPServer(("0.0.0.0", 80), Page).serve_forever, daemon=True).start()
print("ready", flush=True)
while True:
    question, client = server.recvfrom(4096)
    at, labels = 12, []
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode())
        at += 1 + question[at]
    kind = struct.unpack(">H", question[at + 1:at + 3])[0]
    address = names.get(".".join(labels).lower())
    found = address is not None and kind == 1
    head = question[:2] + struct.pack(">HHHHH", 0x8180 | (0 if address else 3), 1, int(found), 0, 0)
    record = b"\\xc0\\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(address) if found else b""
    server.sendto(head + question[12:at + 5] + record, client)
"""

# One word for each host: what came of it.
VISIT = """
import socket, sys, urllib.request
for host in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(f"http://{host}/", timeout=10).read().decode())
    except urllib.error.URLError as error:
        print("no-name" if isinstance(error.reason, socket.gaierror) else "refused")
"""


def do(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


class NamedHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        for tool in ("ip", "nft"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"needs {tool}")
        cls.make_world()
        cls.engine = Engine()
        cls.addClassCleanup(cls.engine.remove)
        cls.start()

    @classmethod
    def start(cls):
        cls.engine.start("--e2b-warm", "0", "--warm", "2")
        key = pathlib.Path(cls.engine.state_dir, "e2b.key").read_text().strip()
        cls.mine = E2b(cls.engine.endpoints()["e2b"], key)
        wait_until(lambda: cls.mine.ask("GET", "/sandboxes").status == 200, what="a key that works")

    @classmethod
    def make_world(cls):
        cls.world = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        cls.addClassCleanup(cls.world.wait)
        cls.addClassCleanup(cls.world.kill)
        own = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(f"/proc/{cls.world.pid}/ns/net") != own, what="a world")
        inside = ["nsenter", "--net", "-t", str(cls.world.pid)]
        do("ip", "link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", str(cls.world.pid))
        cls.addClassCleanup(subprocess.run, ["ip", "link", "del", LINK], stderr=subprocess.DEVNULL)
        do("ip", "address", "add", HOST + "/24", "dev", LINK)
        do("ip", "link", "set", LINK, "up")
        for address in (DNS, API, OTHER):
            do(*inside, "ip", "address", "add", address + "/24", "dev", "eth0")
        do(*inside, "ip", "link", "set", "eth0", "up")
        do(*inside, "ip", "route", "add", "default", "via", HOST)
        pairs = [f"{name}={address}" for name, address in NAMES.items()]
        server = subprocess.Popen([*inside, sys.executable, "-c", WORLD, DNS, *pairs], stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(server.stdout.close)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.kill)
        assert server.stdout.readline() == "ready\n"
        cls.see_name_server()

    @classmethod
    def see_name_server(cls):
        """From here on, for this process and those that it starts. Nobody else sees it, and it ends with us."""
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        do("mount", "--make-rprivate", "/")
        with tempfile.NamedTemporaryFile("w") as text:
            text.write(f"nameserver {DNS}\n")
            text.flush()
            os.chmod(text.name, 0o644)
            do("mount", "--bind", text.name, os.path.realpath("/etc/resolv.conf"))

    def box(self, *allow, **more):
        return self.make(network={"allowOut": list(allow), "denyOut": [ALL], **more})

    def make(self, **body):
        made = self.mine.create(**body)
        self.addCleanup(lambda: self.mine.ask("DELETE", f"/sandboxes/{made['sandboxID']}"))
        return made

    def visit(self, box, *hosts):
        return self.mine.run(box, f"cat > /tmp/visit.py <<'END'\n{VISIT}END\npython3 /tmp/visit.py {' '.join(hosts)}").split()

    def test_names_that_are_listed_and_no_others(self):
        box = self.box("API.example.test", "*.pkg.test")
        self.assertEqual(self.visit(box, OTHER, API), ["refused", "refused"], "nobody asked for a name yet")
        self.assertEqual(self.visit(box, "api.example.test", "other.test", "pkg.test", OTHER), ["hello", "no-name", "no-name", "refused"])
        self.assertEqual(self.visit(box, "b.c.pkg.test", "nobody.pkg.test"), ["hello", "no-name"])
        detail = self.mine.ask("GET", f"/sandboxes/{box['sandboxID']}").json["network"]
        self.assertEqual(detail["allowOut"], ["api.example.test", "*.pkg.test"])

    def test_a_name_does_not_open_a_wall(self):
        box = self.box("*.pkg.test")
        self.assertEqual(self.visit(box, "trap.pkg.test"), ["refused"])

    def test_others_are_as_before(self):
        self.box("api.example.test")
        free = self.make()
        self.assertEqual(self.visit(free, "other.test", API), ["hello", "hello"])
        closed = self.make(allow_internet_access=False)
        self.assertEqual(self.visit(closed, "other.test", API), ["refused", "refused"])

    def test_rules_change_while_it_runs(self):
        box = self.box("api.example.test")
        path = f"/sandboxes/{box['sandboxID']}/network"
        self.assertEqual(self.visit(box, "api.example.test"), ["hello"])
        self.assertEqual(self.mine.ask("PUT", path, {"allowOut": ["other.test"], "denyOut": [ALL]}).status, 204)
        self.assertEqual(self.visit(box, "api.example.test", API, "other.test"), ["no-name", "refused", "hello"])
        self.assertEqual(self.mine.ask("PUT", path, {"denyOut": [ALL]}).status, 204)
        self.assertEqual(self.visit(box, "other.test"), ["refused"])
        self.assertEqual(self.mine.ask("PUT", path, {}).status, 204)
        self.assertEqual(self.visit(box, "other.test", API), ["hello", "hello"])

    def test_rules_outlive_the_engine(self):
        box = self.box("api.example.test")
        self.engine.end(signal.SIGTERM)
        self.start()
        wait_until(lambda: self.mine.inside(box, "GET", "/health").status == 204, what="a way back in")
        self.assertEqual(self.visit(box, OTHER, "other.test"), ["refused", "no-name"])
        self.assertEqual(self.visit(box, "api.example.test"), ["hello"])

    def test_a_pod_that_asks_others_for_names_is_told_so(self):
        made = self.engine.hearth("template", "create", "guarded", "--image", "host")
        self.assertEqual(made.returncode, 0, made.stderr)
        body = {"templateID": "guarded", "network": {"allowOut": ["api.example.test"], "denyOut": [ALL]}}
        answer = wait_until(lambda: (got := self.mine.ask("POST", "/sandboxes", body)).status != 404 and got, what="a template")
        self.assertEqual(answer.status, 400, answer.body)
        self.assertIn("name servers of its own", answer.json["message"])


if __name__ == "__main__":
    unittest.main()
