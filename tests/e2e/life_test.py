"""Between a sandbox's beginning and its end: pause, snapshots, volumes, secrets, network; and what an engine leaves."""
import json
import os
import pathlib
import pty
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.request

from hearth import HEARTH, Engine, is_alive, need_root, wait_until
from registry import busybox_layer

# Connects to the address and port it is given; says what came of it.
CONNECT = """import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30) as s:
        print(s.recv(100).decode())
except OSError as error:
    print(type(error).__name__)
"""
GATEWAY = """import socket, struct
for line in open("/proc/net/route").read().splitlines()[1:]:
    words = line.split()
    if words[1] == "00000000":
        print(socket.inet_ntoa(struct.pack("<I", int(words[2], 16))))
"""


class LifeCase(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        need_root()
        cls.shared = tempfile.mkdtemp(prefix="hearth-shared-")
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        os.chown(cls.shared, 1000, 1000)  # what is root's can only be mounted read-only
        cls.engine = Engine()
        cls.addClassCleanup(cls.engine.remove)
        cls.engine.start(*cls.options, *(("--allow-host-path", cls.shared) if not cls.options else ()))

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hearth-life-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.clean)

    def clean(self):
        self.hearth("rm", "--all")
        for name in self.hearth("image", "ls", "-q").stdout.split():
            self.hearth("image", "rm", name)
        for volume in json.loads(self.hearth("volume", "ls", "-o", "json").stdout):
            self.hearth("volume", "rm", volume["name"])

    def hearth(self, *words, **kwargs):
        return self.engine.hearth(*words, **kwargs)

    def done(self, *words, **kwargs):
        result = self.hearth(*words, **kwargs)
        self.assertEqual(result.returncode, 0, (words, result.stderr))
        return result.stdout

    def refused(self, *words, code=None, **kwargs):
        result = self.hearth(*words, **kwargs)
        self.assertNotEqual(result.returncode, 0, (words, result.stdout))
        if code is not None:
            self.assertEqual(result.returncode, code, (words, result.stderr))
        self.assertTrue(result.stderr.startswith("hearth: "), (words, result.stderr))
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        return result.stderr

    def make(self, *options, name="box"):
        return self.done("run", "-d", "--name", name, *options).strip()

    def sh(self, box, script):
        return self.done("exec", box, "--", "sh", "-c", script)

    def inspect(self, box):
        return json.loads(self.done("inspect", box))[0]

    def ids(self):
        return sorted(box["id"] for box in self.engine.sandboxes())

    def file(self, name, content):
        path = pathlib.Path(self.folder, name)
        path.write_bytes(content)
        return str(path)


class LifeTest(LifeCase):
    def test_pause_keeps_everything_still(self):
        self.make("--", "sh", "-c", "i=0; while :; do i=$((i+1)); echo $i > /tmp/new; mv /tmp/new /tmp/count; sleep 0.01; done")
        count = pathlib.Path(f"/proc/{self.inspect('box')['pid']}/root/tmp/count")
        wait_until(count.exists, what="counting")
        self.assertEqual(self.done("pause", "box"), "box\n")
        self.assertEqual(self.inspect("box")["state"], "paused")
        self.assertIn("paused", self.done("ls"))
        stood = count.read_text()
        used = self.inspect("box")["usage"]["cpu_microseconds"]
        with self.assertRaises(AssertionError):
            wait_until(lambda: count.read_text() != stood, 0.5)
        self.assertEqual(self.inspect("box")["usage"]["cpu_microseconds"], used)

        said = self.refused("exec", "box", "--", "true", code=125)
        self.assertIn("paused", said)
        self.assertIn("hearth resume", said)
        self.assertEqual(self.done("pause", "box"), "box\n")  # twice is no mistake

        self.assertEqual(self.done("resume", "box"), "box\n")
        self.assertEqual(self.inspect("box")["state"], "running")
        wait_until(lambda: count.read_text() != stood, what="counting on")
        self.assertEqual(self.sh("box", "echo here"), "here\n")

    def test_a_paused_sandbox_can_be_removed(self):
        self.make("--", "sleep", "1000")
        self.done("pause", "box")
        self.assertEqual(self.done("rm", "box"), "box\n")
        self.assertEqual(self.ids(), [])

    def test_names_that_mean_nothing(self):
        self.make()
        for words in (["pause", "nobody"], ["resume", "nobody"], ["commit", "nobody", "x:1"], ["fork", "nobody"],
                      ["network", "nobody", "--mode", "none"], ["volume", "rm", "nobody"]):
            self.assertIn("nobody", self.refused(*words, code=1), words)
        self.assertIn("nobody", self.hearth("stats", "nobody").stderr)
        self.assertIn("Bad Name", self.refused("commit", "box", "Bad Name"))
        result = self.hearth("pause", "nobody", "box")
        self.assertEqual((result.returncode, result.stdout), (1, "box\n"))
        self.assertIn("nobody", result.stderr)

    def test_commit_makes_an_image_of_the_files(self):
        self.make("-v", "data:/data", "--tmpfs", "/scratch", "--secret", "/run/key=" + self.file("key", b"s3cret"))
        self.sh("box", "echo kept > /root/note; rm /usr/bin/env; echo no > /data/volume; echo no > /scratch/memory")
        image = self.done("commit", "box", "mine:1").strip()
        listed = json.loads(self.done("image", "ls", "-o", "json"))
        self.assertEqual([(one["name"], one["id"]) for one in listed], [("docker.io/library/mine:1", image)])
        self.sh("box", "echo later > /root/note")

        script = "cat /root/note; ls /usr/bin/env /data/volume /scratch/memory; cat /run/key"
        result = self.hearth("run", "--rm", "--image", "mine:1", "--", "sh", "-c", script)
        self.assertEqual(result.stdout, "kept\n")
        for path in ("/usr/bin/env", "/data/volume", "/scratch/memory"):
            self.assertIn(path, result.stderr)
        self.assertNotIn("s3cret", result.stdout)
        self.assertEqual(self.sh("box", "cat /root/note /data/volume"), "later\nno\n")

    def test_fork_gives_independent_copies(self):
        self.make("--memory", "256m")
        self.sh("box", "echo first > /root/note")
        forks = self.done("fork", "box", "-n", "3").split()
        self.assertEqual(len(set(forks)), 3)
        self.assertEqual(self.ids(), sorted(["box", *forks]))
        for fork in forks:
            self.assertEqual(self.sh(fork, "cat /root/note"), "first\n")
            self.assertEqual(self.inspect(fork)["limits"], self.inspect("box")["limits"])
            self.sh(fork, f"echo {fork} > /root/note")
        self.assertEqual([self.sh(box, "cat /root/note").strip() for box in ["box", *forks]], ["first", *forks])
        self.done("rm", "box", forks[0])
        self.assertEqual(self.sh(forks[1], "cat /root/note").strip(), forks[1])

    def test_a_volume_outlives_sandboxes(self):
        self.make("-v", "data:/data")
        self.sh("box", "echo kept > /data/file")
        self.assertIn("data", self.refused("volume", "rm", "data"))
        self.assertIs(json.loads(self.done("volume", "ls", "-o", "json"))[0]["used"], True)
        self.done("rm", "box")

        listed = json.loads(self.done("volume", "ls", "-o", "json"))
        self.assertEqual([(one["name"], one["used"]) for one in listed], [("data", False)])
        self.assertIn("data", self.done("volume", "ls"))
        self.make("-v", "data:/elsewhere:ro", name="second")
        self.assertEqual(self.sh("second", "cat /elsewhere/file"), "kept\n")
        result = self.hearth("exec", "second", "--", "sh", "-c", "echo more > /elsewhere/file")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("Read-only", result.stderr)
        self.done("rm", "second")
        self.assertEqual(self.done("volume", "rm", "data"), "data\n")
        self.assertEqual(json.loads(self.done("volume", "ls", "-o", "json")), [])

    def test_host_paths_are_allowed_by_name(self):
        self.assertIn("--allow-host-path", self.refused("run", "-v", "/etc:/data", "--", "true", code=125))
        self.refused("run", "-v", f"{self.shared}/..:/data", "--", "true", code=125)
        os.symlink("/etc", f"{self.shared}/link")
        self.refused("run", "-v", f"{self.shared}/link:/data", "--", "true", code=125)
        self.assertIn("missing", self.refused("run", "-v", f"{self.shared}/missing:/data", "--", "true", code=125))
        self.assertEqual(self.ids(), [])

        inner = os.path.join(self.shared, "inner")
        os.mkdir(inner)
        os.chown(inner, 12345, 23456)
        pathlib.Path(inner, "given").write_text("from outside\n")
        self.assertEqual(self.done("run", "--rm", "-v", f"{inner}:/data", "--", "sh", "-c", "cat /data/given; echo made > /data/made"),
                         "from outside\n")
        made = pathlib.Path(inner, "made")
        self.assertEqual(made.read_text(), "made\n")
        self.assertEqual((made.stat().st_uid, made.stat().st_gid), (12345, 23456))
        result = self.hearth("run", "--rm", "-v", f"{inner}:/data:ro", "--", "touch", "/data/no")
        self.assertIn("Read-only", result.stderr)

    def test_memory_has_a_bound(self):
        self.make("--tmpfs", "/scratch:1m")
        result = self.hearth("exec", "box", "--", "head", "-c", "2m", "/dev/zero")  # what would not fit
        self.assertEqual(len(result.stdout), 2 << 20)
        result = self.hearth("exec", "box", "--", "sh", "-c", "head -c 2m /dev/zero > /scratch/file; stat -c %s /scratch/file")
        self.assertIn("No space left", result.stderr)
        self.assertEqual(int(result.stdout), 1 << 20)

    def test_secrets_are_for_the_inside_only(self):
        self.make("--secret", "/run/key=" + self.file("key", b"s3cret file"))
        self.assertEqual(self.sh("box", "cat /run/key"), "s3cret file")
        self.assertNotEqual(self.hearth("exec", "box", "--", "sh", "-c", "echo x > /run/key").returncode, 0)
        self.assertNotIn("s3cret", self.done("inspect", "box") + self.done("ls", "-o", "json"))
        found = subprocess.run(["grep", "-rl", "s3cret file", self.engine.state_dir], capture_output=True, text=True)
        self.assertEqual(found.stdout, "")
        piped = self.done("run", "--rm", "--secret", "/run/key=-", "--", "cat", "/run/key", stdin="s3cret input")
        self.assertEqual(piped, "s3cret input")
        self.assertIn("/run/key", self.refused("fork", "box"))

    def test_mounts_that_cannot_be(self):
        for options, why in ((["-v", "data"], "NAME:/target"), (["-v", "Bad_Name:/data"], "Bad_Name"), (["-v", "data:/proc/x"], "/proc/x"),
                             (["-v", "data:/a/../b"], "'..'"), (["-v", "a:/x", "-v", "b:/x"], "two mounts"), (["--tmpfs", "/x:1"], "too small"),
                             (["--secret", "/x=/nowhere"], "/nowhere"), (["--secret", "s3cret"], "/target=FILE"),
                             (["--allow", "example.com"], "example.com"), (["--network", "all"], "none, world, listed")):
            said = self.refused("run", *options, "--", "true", code=125)
            self.assertIn(why, said)
            self.assertNotIn("s3cret", said)
        self.assertEqual(self.ids(), [])

    def test_an_image_and_its_own_command(self):
        root = self.file("root.tar", busybox_layer())
        self.done("image", "import", root, "--name", "speaks", "--", "echo", "of itself")
        self.done("image", "import", root, "--name", "silent")
        self.assertEqual(self.done("run", "--rm", "--image", "speaks"), "of itself\n")
        self.assertEqual(self.done("run", "--rm", "--image", "speaks", "--", "echo", "as told"), "as told\n")
        said = self.refused("run", "--image", "silent", code=125)
        self.assertIn("'silent'", said)
        self.assertIn("--", said)
        self.assertIn("nothing:1", self.refused("run", "--image", "nothing:1", code=125))
        self.assertEqual(self.ids(), [])

        self.assertEqual(self.on_a_terminal("speaks", b""), b"of itself\r\n")
        self.assertIn(b"in a shell\r\n", self.on_a_terminal("silent", b"echo in a shell; exit\n"))
        box = self.done("run", "-d", "--image", "speaks").strip()
        wait_until(lambda: self.hearth("logs", box).stdout == "of itself\n", what="the command's output")
        self.assertEqual(self.inspect(box)["default_command"], ["echo", "of itself"])
        self.assertEqual(self.sh(self.done("run", "-d", "--image", "silent").strip(), "echo there"), "there\n")

    def on_a_terminal(self, image, typed):
        """All that `run -it` without a command shows."""
        master, slave = pty.openpty()
        words = [HEARTH, "run", "--rm", "-it", "--state-dir", self.engine.state_dir, "--image", image]
        client = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        os.write(master, typed)
        seen = b""
        try:
            while piece := os.read(master, 4096):
                seen += piece
        except OSError:  # how a terminal says that nobody is left
            pass
        os.close(master)
        self.assertEqual(client.wait(60), 0, seen)
        return seen

    def test_stats(self):
        self.make("--memory", "128m", "--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; touch /tmp/done; sleep 1000")
        wait_until(lambda: self.hearth("exec", "box", "--", "ls", "/tmp/done").returncode == 0)
        one = json.loads(self.done("stats", "box", "-o", "json"))[0]
        self.assertEqual((one["id"], one["state"], one["limits"]["memory_bytes"]), ("box", "running", 128 << 20))
        usage = one["usage"]
        self.assertGreater(usage["cpu_microseconds"], 10_000)
        self.assertTrue(0 < usage["memory_bytes"] <= usage["memory_peak_bytes"] < 128 << 20, usage)
        self.assertTrue(2 <= usage["pids"] < 20, usage)
        for key in ("read_bytes", "written_bytes", "received_bytes", "sent_bytes"):
            self.assertTrue(0 <= usage[key] < 1 << 30, usage)
        self.make(name="other")
        self.assertEqual(sorted(box["id"] for box in json.loads(self.done("stats", "-o", "json"))), ["box", "other"])
        table = self.done("stats", "box").splitlines()
        self.assertEqual(len(table), 2)
        self.assertIn("128 MiB", table[1])

    def test_warm_shells_are_counted(self):
        self.make()
        with urllib.request.urlopen(self.engine.endpoints()["metrics"] + "/metrics", timeout=60) as answer:
            numbers = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#"))
        self.assertLessEqual(int(numbers["hearth_warm_shells"]), 16)
        self.assertGreater(int(numbers["hearth_warm_hits_total"]) + int(numbers["hearth_warm_misses_total"]), 0)
        self.done("pause", "box")
        with urllib.request.urlopen(self.engine.endpoints()["metrics"] + "/metrics", timeout=60) as answer:
            self.assertIn('hearth_sandboxes{state="paused"} 1\n', answer.read().decode())


class Greeter:
    """Says hello to whoever connects to this host."""

    def __init__(self):
        self.socket = socket.create_server(("0.0.0.0", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            with peer:
                peer.sendall(b"hello")

    def stop(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


class NetworkTest(LifeCase):
    def setUp(self):
        super().setUp()
        if "sandboxes have addresses of" not in self.engine.said():
            self.skipTest("needs nftables: this engine has no network")
        self.greeter = Greeter()
        self.addCleanup(self.greeter.stop)

    def gateway(self):
        return self.done("exec", "box", "--", "python3", "-c", GATEWAY).strip()

    def connect(self, address, port):
        return self.done("exec", "box", "--", "python3", "-c", CONNECT, address, str(port)).strip()

    def test_the_host_is_out_of_reach_until_it_is_opened(self):
        self.make()
        host, port = self.gateway(), self.greeter.port
        self.assertEqual(self.connect(host, port), "ConnectionRefusedError")
        self.assertEqual(self.done("network", "box", "--mode", "world", "--open", f"{host}:{port}/tcp"), "box\n")
        self.assertEqual(self.connect(host, port), "hello")
        usage = json.loads(self.done("stats", "box", "-o", "json"))[0]["usage"]
        self.assertGreater(usage["received_bytes"], 0)
        self.assertGreater(usage["sent_bytes"], 0)
        self.done("network", "box", "--mode", "world", "--allow", f"{host}:{port}/tcp")  # a wall is a wall
        self.assertEqual(self.connect(host, port), "ConnectionRefusedError")
        self.done("network", "box", "--mode", "none")
        self.assertNotEqual(self.connect(host, port), "hello")

    def test_rules_from_the_start(self):
        self.make()
        host, port = self.gateway(), self.greeter.port
        script = ["--", "python3", "-c", CONNECT, host, str(port)]
        self.assertEqual(self.done("run", "--rm", "--open", f"{host}:{port}", *script), "hello\n")
        self.assertNotEqual(self.done("run", "--rm", "--network", "none", *script), "hello\n")
        self.assertNotEqual(self.done("run", "--rm", "--allow", "192.0.2.1", *script), "hello\n")

    def test_it_has_an_address(self):
        self.make()
        address = self.inspect("box")["address"]
        self.assertRegex(address, r"^\d+\.\d+\.\d+\.\d+$")
        self.assertIn("ADDRESS", self.done("ls").splitlines()[0])
        self.assertIn(address, self.done("ls").splitlines()[1])
        self.hearth("exec", "-d", "box", "--", "python3", "-m", "http.server", "8000", "-d", "/usr/share/doc")

        def answers():
            try:
                with socket.create_connection((address, 8000), timeout=2):
                    return True
            except OSError:
                return False
        wait_until(answers, what="the host's way in")


class NoNetworkTest(LifeCase):
    options = ("--no-network", "--warm", "0")

    def test_no_network_at_all(self):
        self.assertIn("sandboxes have no network", self.engine.said())
        self.make()
        self.assertEqual(self.inspect("box")["address"], "")
        self.assertNotIn("ADDRESS", self.done("ls"))
        self.assertEqual(self.sh("box", "ls /sys/class/net").split(), ["lo"])
        self.assertIn("no network", self.refused("run", "--network", "world", "--", "true", code=125))
        self.assertIn("no network", self.refused("network", "box", "--mode", "world"))
        self.assertEqual(self.done("run", "--rm", "--network", "none", "--", "echo", "fine"), "fine\n")
        self.assertIn("--allow-host-path", self.refused("run", "-v", f"{self.shared}:/data", "--", "true", code=125))


class EndTest(LifeCase):
    """Everything that the engine made carries its tag, or its folder's name."""

    def belongings(self, tag, links, pids):
        left = {f"link {link}" for link in links if os.path.exists(f"/sys/class/net/{link}")}
        left |= {f"process {pid}" for pid in pids if is_alive(pid)}
        for corner in ("/sys/fs/cgroup/hearth", *map(str, pathlib.Path("/sys/fs/cgroup").glob("*/hearth"))):
            if os.path.exists(f"{corner}/{tag}"):
                left.add(f"cgroup {corner}/{tag}")
        left |= {line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                 if self.engine.state_dir in line or tag in line}
        left |= {str(path) for place in ("/run", "/dev/shm") for path in pathlib.Path(place).glob(f"hearth/{tag}*")}
        if shutil.which("nft"):
            tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True).stdout
            left |= {line for line in tables.splitlines() if line.endswith(f"hearth-{tag}")}
        return left

    def processes(self, tag):
        """Of our cgroups, or with our folder on their command line."""
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                cgroup = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
            except OSError:
                continue
            if tag in cgroup or self.engine.state_dir.encode() in words:
                found.add(int(pid))
        return found

    def test_the_end_leaves_nothing(self):
        status = os.stat(f"{self.engine.state_dir}/runtime")
        tag = f"{status.st_dev:x}-{status.st_ino:x}"
        self.make("-v", "data:/data", "--tmpfs", "/scratch", "--secret", "/run/key=" + self.file("key", b"x"), "--", "sleep", "1000")
        self.make("-v", f"{self.shared}:/shared", name="held")
        self.done("fork", "-n", "2", "held")
        self.done("commit", "held", "mine:1")
        self.done("run", "--image", "mine:1", "--name", "third", "--", "true")
        self.done("pause", "held", "third")

        links = set()
        numbers = {pathlib.Path(f"/sys/class/net/{name}/ifindex").read_text().strip(): name for name in os.listdir("/sys/class/net")}
        for box in self.engine.sandboxes():
            if box["address"] and box["state"] == "running":
                links.add(numbers[self.sh(box["id"], "cat /sys/class/net/eth0/iflink").strip()])
        self.assertTrue(links or "no network" in self.engine.said())
        pids = self.processes(tag)
        self.assertGreater(len(pids), 5)
        there = " ".join(self.belongings(tag, links, pids))
        for word in ("process", "cgroup", *(["link"] if links else []), *([f"table inet hearth-{tag}"] if links and shutil.which("nft") else [])):
            self.assertIn(word, there)

        self.assertEqual(self.engine.end(), 0)
        try:
            wait_until(lambda: not self.belongings(tag, links, pids | self.processes(tag)))
        except AssertionError:
            self.fail(f"left behind: {self.belongings(tag, links, pids | self.processes(tag))}")
        self.engine.start()


if __name__ == "__main__":
    unittest.main(verbosity=2)
