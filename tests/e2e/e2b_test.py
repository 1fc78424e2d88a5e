"""The E2B API on a real engine: teams, keys, who reaches what, and what survives."""
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import unittest
import urllib.parse

from e2b import E2b
from hearth import Engine, expect_host_as_before, host_state, need_root, wait_until


class E2bCase(unittest.TestCase):
    options = ("--e2b-warm", "4", "--warm", "4")

    @classmethod
    def setUpClass(cls):
        need_root()
        before = host_state()
        cls.engine = Engine().start(*cls.options)
        cls.addClassCleanup(expect_host_as_before, before)
        cls.addClassCleanup(cls.engine.remove)
        cls.url = cls.engine.endpoints()["e2b"]
        cls.mine = E2b(cls.url, cls.first_key())

    @classmethod
    def first_key(cls):
        return pathlib.Path(cls.engine.state_dir, "e2b.key").read_text().strip()

    @classmethod
    def run_ok(cls, *words):
        result = cls.engine.hearth(*words)
        assert result.returncode == 0, (words, result.stderr)
        return result.stdout

    @classmethod
    def team(cls, name, *limits):
        """A team and somebody who has a key of it."""
        cls.run_ok("team", "create", name, *limits)
        return cls.holder(name)

    @classmethod
    def holder(cls, team, *options):
        one = E2b(cls.url, cls.run_ok("key", "create", "--team", team, "--name", "test", *options).strip())
        wait_until(lambda: one.ask("GET", "/sandboxes").status == 200, what="a key that works")
        return one

    def restart(self, sig):
        os.kill(self.engine.process.pid, sig)
        self.engine.process.wait(30)
        self.engine.start(*self.options)
        type(self).url = self.engine.endpoints()["e2b"]
        type(self).mine = E2b(self.url, self.first_key())

    def fails(self, part, *words):
        result = self.engine.hearth(*words)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn(part, result.stderr)

    def kill_all(self, of):
        for sandbox in of.ids():
            of.ask("DELETE", f"/sandboxes/{sandbox}")


class FirstStart(E2bCase):
    def test_the_shell_gets_what_the_sdks_read(self):
        lines = dict(line.removeprefix("export ").split("=", 1) for line in self.run_ok("env").splitlines())
        self.assertEqual(lines["E2B_API_URL"], self.url)
        self.assertEqual(lines["E2B_SANDBOX_URL"], self.url)
        self.assertRegex(lines["E2B_API_KEY"], r"^e2b_[0-9a-f]{40}$")
        self.assertEqual(self.mine.ask("GET", "/sandboxes").status, 200)

    def test_a_port_has_a_name_and_a_path(self):
        """What getHost says, as browsers and curl ask for it, and the way for programs that cannot look up such names."""
        lines = dict(line.removeprefix("export ").split("=", 1) for line in self.run_ok("env").splitlines())
        box = self.mine.create()
        self.addCleanup(self.kill_all, self.mine)
        self.mine.run(box, "mkdir -p /tmp/www/sub; echo page > /tmp/www/sub/index.html; cd /tmp/www; "
                      "setsid python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 </dev/null &")
        host = f"8000-{box['sandboxID']}.{lines['E2B_DOMAIN']}"
        answer = wait_until(lambda: (got := self.mine.send("GET", "/sub/", headers={"Host": host})).status == 200 and got, what="a server inside")
        self.assertEqual(answer.body, b"page\n")
        if shutil.which("curl"):
            said = subprocess.run(["curl", "-sS", "--noproxy", "*", f"http://{host}/sub/"], capture_output=True, text=True, timeout=60)
            self.assertEqual(said.stdout, "page\n", said.stderr)
        folder = f"/sandboxes/{box['sandboxID']}/8000"
        moved = self.mine.send("GET", folder + "/sub")
        self.assertEqual((moved.status, moved.headers["Location"]), (301, folder + "/sub/"), "a browser stays below it")
        self.assertEqual(self.mine.send("GET", moved.headers["Location"]).body, b"page\n")

    def test_the_key_is_its_owners_alone_and_nowhere_else(self):
        key = pathlib.Path(self.engine.state_dir, "engine/e2b.key")
        token = pathlib.Path(self.engine.state_dir, "engine/admin.token")
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        self.assertEqual(key.stat().st_uid, token.stat().st_uid)
        self.assertNotIn(self.first_key()[4:], self.engine.said())
        secrets = self.run_ok("get", "secrets", "-n", "hearth-system", "-o", "json")
        self.assertNotIn(self.first_key()[4:], secrets)
        self.assertIn("api-key-", secrets)

    def test_a_first_program(self):
        box = self.mine.create()
        self.addCleanup(self.kill_all, self.mine)
        self.assertRegex(box["sandboxID"], r"^i[a-z0-9]{20}$")
        self.assertEqual(self.mine.run(box, "whoami; pwd; echo $((6*7))"), "user\n/home/user\n42\n")
        self.assertEqual(self.mine.run(box, "id -u", user="root"), "0\n")
        self.assertEqual(self.mine.run(box, "touch /code/x && echo yes"), "yes\n")

    def test_templates_are_there_and_pools_fill(self):
        names = self.run_ok("template", "ls", "-o", "name")
        self.assertIn("/base\n", names)
        self.assertIn("/code-interpreter-v1\n", names)

        def ready():
            pool = json.loads(self.run_ok("get", "pool", "base", "-o", "json"))
            return pool.get("status", {}).get("readyReplicas") == 4
        wait_until(ready, 30, "a full pool")

    def test_code_cells(self):
        box = self.mine.create(templateID="code-interpreter-v1")
        self.addCleanup(self.kill_all, self.mine)
        answer = self.mine.inside(box, "POST", "/execute", json.dumps({"code": "6 * 7"}), port=49999,
                                  headers={"Content-Type": "application/json"})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIn(b'"42"', answer.body)


class Planes(E2bCase):
    """The data plane knows what the control plane has answered, not a moment later."""

    options = ("--e2b-warm", "4", "--warm", "4")

    def misses(self):
        url = urllib.parse.urlsplit(self.engine.endpoints()["metrics"])
        lines = E2b(url.geturl()).send("GET", "/metrics").body.decode().splitlines()
        name = "hearth_gateway_route_misses_total"
        return {what: int(line.rpartition(" ")[2]) for line in lines for what in ("gone", "unknown")
                if line.startswith(f'{name}{{sandbox="{what}"}}')}

    def expect_gone(self, box):
        answer = self.mine.inside(box, "GET", "/health")
        self.assertEqual((answer.status, answer.json["message"]), (502, "The sandbox was not found"))

    def test_births_and_deaths(self):
        before = self.misses()
        for _ in range(10):
            box = self.mine.create()
            self.assertEqual(self.mine.inside(box, "GET", "/health").status, 204)
            self.assertEqual(self.mine.ask("DELETE", f"/sandboxes/{box['sandboxID']}").status, 204)
            self.expect_gone(box)
        # Nobody was held to see whether the watch brings the sandbox.
        self.assertEqual(self.misses(), {"gone": before["gone"] + 10, "unknown": before["unknown"]})

    def test_pauses(self):
        box = self.mine.create()
        self.addCleanup(self.kill_all, self.mine)
        path = f"/sandboxes/{box['sandboxID']}"
        for _ in range(5):
            self.assertEqual(self.mine.ask("POST", path + "/pause").status, 204)
            self.expect_gone(box)
            self.assertEqual(self.mine.ask("POST", path + "/connect", {"timeout": 60}).status, 201)
            self.assertEqual(self.mine.inside(box, "GET", "/health").status, 204)
        self.assertEqual(self.mine.ask("POST", path + "/timeout", {"timeout": 0}).status, 204)
        self.expect_gone(box)


class Verbs(E2bCase):
    options = ("--e2b-warm", "0", "--warm", "0")

    def test_a_key_works_until_it_is_removed(self):
        one = self.holder("default")
        listed = json.loads(self.run_ok("key", "ls", "-o", "json"))
        ours = next(key for key in listed if key["key"].endswith(one.key[-4:]))
        self.assertEqual(ours["team"], "default")
        self.assertNotIn(one.key[6:], json.dumps(listed))
        self.run_ok("key", "rm", ours["id"])
        wait_until(lambda: one.ask("GET", "/sandboxes").status == 401, what="a key that stops working")
        self.assertEqual(self.mine.ask("GET", "/sandboxes").status, 200)
        self.fails("there is no", "key", "rm", ours["id"])

    def test_an_expired_key_is_none(self):
        one = E2b(self.url, self.run_ok("key", "create", "--expires", "1s").strip())
        wait_until(lambda: one.ask("GET", "/sandboxes").status == 401, 30, "the end of a key")

    def test_teams(self):
        self.run_ok("team", "create", "verbs", "--sandboxes", "3", "--memory", "2g")
        teams = {team["name"]: team for team in json.loads(self.run_ok("team", "ls", "-o", "json"))}
        self.assertEqual(teams["verbs"]["sandboxes"], 3)
        self.assertEqual(teams["verbs"]["memory_mib"], 2048)
        self.assertIn("default", teams)
        self.run_ok("team", "limits", "verbs", "--sandboxes", "4")
        self.assertEqual(json.loads(self.run_ok("team", "limits", "verbs", "-o", "json"))["sandboxes"], 4)
        self.fails("already", "team", "create", "verbs")
        one = self.holder("verbs")
        self.run_ok("team", "rm", "verbs")
        wait_until(lambda: one.ask("GET", "/sandboxes").status == 401, what="the end of its keys")
        self.fails("there is no", "team", "rm", "verbs")
        self.fails("cannot be removed", "team", "rm", "default")
        self.fails("no name for a team", "team", "create", "No Team")
        self.fails("of the system", "team", "create", "hearth-system")
        self.fails("there is no team", "key", "create", "--team", "verbs")

    def test_templates(self):
        self.run_ok("template", "create", "mine", "--image", "host", "--surfaces", "envd", "--memory", "256Mi")
        self.assertIn("surfaces: envd", self.run_ok("template", "show", "mine"))
        box = self.mine.create(templateID="mine")
        self.assertEqual(self.mine.run(box, "echo $((6*7))"), "42\n")
        self.kill_all(self.mine)
        self.run_ok("template", "rm", "mine")
        self.addCleanup(self.kill_all, self.mine)
        wait_until(lambda: self.mine.ask("POST", "/sandboxes", {"templateID": "mine"}).status == 404, what="the end of the template")

    def test_limits_hold(self):
        few = self.team("few", "--sandboxes", "1", "--lifetime", "10m", "--memory", "512m")
        small = {"timeout": 60}
        self.assertEqual(few.ask("POST", "/sandboxes", {"templateID": "base", **small}).status, 400)  # too much memory
        self.run_ok("team", "limits", "few", "--memory", "2g")
        wait_until(lambda: few.ask("POST", "/sandboxes", {"templateID": "base", **small}).status == 201, 30, "room")
        self.assertEqual(few.ask("POST", "/sandboxes", {"templateID": "base", **small}).status, 429)
        self.assertEqual(few.ask("POST", "/sandboxes", {"templateID": "base", "timeout": 6000}).status, 400)
        narrow = self.holder("few", "--sandboxes", "0")
        self.kill_all(few)
        wait_until(lambda: not few.ids(), 30, "the end of its sandbox")
        self.assertEqual(narrow.ask("POST", "/sandboxes", {"templateID": "base", **small}).status, 429)

    def test_no_key_no_answer(self):
        for key in (None, "", "e2b_" + "0" * 40, self.first_key().upper(), self.first_key()[:-1], "x" * 5000):
            with self.subTest(key=key and key[:50]):
                self.assertEqual(E2b(self.url, key).ask("GET", "/sandboxes").status, 401)


class Crossing(E2bCase):
    """Somebody with a key of another team, and everything that they might try."""

    options = ("--e2b-warm", "2", "--warm", "4")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = cls.team("other")
        cls.box = cls.mine.create(metadata={"secret": "of mine"}, network={"allowPublicTraffic": False})
        cls.mine.run(cls.box, "echo mine > /home/user/note; python3 -m http.server 8000 >/dev/null 2>&1 &")

    def test_the_control_plane(self):
        sandbox = self.box["sandboxID"]
        before = self.mine.ask("GET", f"/sandboxes/{sandbox}").json
        self.assertEqual(self.other.ids(), set())
        self.assertEqual(self.other.ask("GET", "/sandboxes").json, [])
        for method, path, body in (
                ("GET", f"/sandboxes/{sandbox}", None), ("DELETE", f"/sandboxes/{sandbox}", None),
                ("POST", f"/sandboxes/{sandbox}/timeout", {"timeout": 1}), ("POST", f"/sandboxes/{sandbox}/refreshes", {"duration": 1}),
                ("POST", f"/sandboxes/{sandbox}/pause", {}), ("POST", f"/sandboxes/{sandbox}/resume", {}),
                ("POST", f"/sandboxes/{sandbox}/connect", {"timeout": 1}), ("POST", f"/v2/sandboxes/{sandbox}/connect", {"timeout": 1}),
                ("POST", f"/sandboxes/{sandbox}/fork", {}), ("POST", f"/sandboxes/{sandbox}/snapshots", {}),
                ("PUT", f"/sandboxes/{sandbox}/network", {})):
            with self.subTest(method=method, path=path):
                answer = self.other.ask(method, path, body)
                self.assertEqual(answer.status, 404, answer.body)
                self.assertEqual(answer.json["code"], 404)
                unknown = self.other.ask(method, path.replace(sandbox, "i" + "0" * 20), body)
                self.assertEqual(unknown.body.replace(b"i" + b"0" * 20, sandbox.encode()), answer.body)
        for path in (f"/sandboxes/{sandbox}/metrics", f"/sandboxes/{sandbox}/logs", f"/v2/sandboxes/{sandbox}/logs"):
            answer = self.other.ask("GET", path)
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.body, self.other.ask("GET", path.replace(sandbox, "i" + "0" * 20)).body)
            self.assertNotIn(b"timestamp", answer.body)
        metrics = self.other.ask("GET", f"/sandboxes/metrics?sandbox_ids={sandbox}")
        self.assertNotIn(sandbox.encode(), metrics.body)
        self.assertEqual(self.mine.ask("GET", f"/sandboxes/{sandbox}").json, before)

    def test_templates_of_others(self):
        self.run_ok("template", "create", "private", "--image", "host", "--surfaces", "envd")
        self.addCleanup(self.run_ok, "template", "rm", "private")
        for name in ("private", "default/private"):
            self.assertIn(self.other.ask("POST", "/sandboxes", {"templateID": name}).status, (403, 404), name)
        self.assertNotIn(b"private", self.other.ask("GET", "/templates").body)
        self.assertIn(self.other.ask("DELETE", "/templates/private").status, (403, 404))
        self.assertIn(self.other.ask("DELETE", "/templates/base").status, (403, 404))
        self.assertIn("/base\n", self.run_ok("template", "ls", "-o", "name"))

    def test_snapshots_and_paused_sandboxes_of_others(self):
        taken = self.mine.ask("POST", f"/sandboxes/{self.box['sandboxID']}/snapshots", {"name": "kept"})
        self.assertEqual(taken.status, 201, taken.body)
        snapshot, own = taken.json["snapshotID"], "default/kept"
        self.addCleanup(lambda: self.mine.ask("DELETE", f"/templates/{urllib.parse.quote(snapshot, safe='')}"))
        inner = [name.rpartition("/")[2] for name in self.run_ok("template", "ls", "-o", "name").split() if "/s" in name]
        for name in (snapshot, own, "kept", *inner, *("default/" + each for each in inner)):
            with self.subTest(name=name):
                path = "/templates/" + urllib.parse.quote(name, safe="")
                self.assertIn(self.other.ask("POST", "/sandboxes", {"templateID": name}).status, (403, 404))
                for method, body in (("GET", None), ("DELETE", None), ("PATCH", {"public": True})):
                    self.assertIn(self.other.ask(method, path, body).status, (403, 404), method)
        self.assertEqual(self.other.ask("GET", f"/snapshots?sandboxID={self.box['sandboxID']}").json, [])
        self.assertEqual(self.mine.ask("GET", f"/snapshots?sandboxID={self.box['sandboxID']}").json[0]["snapshotID"], snapshot)

        paused = self.mine.create()
        self.addCleanup(lambda: self.mine.ask("DELETE", f"/sandboxes/{paused['sandboxID']}"))
        self.assertEqual(self.mine.ask("POST", f"/sandboxes/{paused['sandboxID']}/pause").status, 204)
        for verb in ("connect", "resume", "pause", "fork", "snapshots"):
            self.assertEqual(self.other.ask("POST", f"/sandboxes/{paused['sandboxID']}/{verb}", {"timeout": 1}).status, 404, verb)
        self.assertEqual(self.mine.ask("GET", f"/sandboxes/{paused['sandboxID']}").json["state"], "paused")

    def test_keys_of_others(self):
        listed = self.other.ask("GET", "/api-keys")
        self.assertNotIn(b'"first"', listed.body)
        ours = next(key["id"] for key in json.loads(self.run_ok("key", "ls", "-o", "json")) if key["name"] == "first")
        self.assertIn(self.other.ask("DELETE", f"/api-keys/{ours}").status, (403, 404))
        self.assertEqual(self.mine.ask("GET", "/sandboxes").status, 200)

    def test_the_data_plane(self):
        theirs = self.other.create()
        self.addCleanup(self.kill_all, self.other)
        for token in ("", "0" * 64, theirs["envdAccessToken"], self.other.key, self.mine.key):
            with self.subTest(token=token[:8]):
                answer = self.other.inside(self.box, "GET", "/files?path=/home/user/note", token=token)
                self.assertEqual(answer.status, 401, answer.body)
                self.assertNotIn(b"mine", answer.body)
        # A key of the team is for the control plane; it opens no sandbox that asks for a token.
        answer = self.other.inside(self.box, "GET", "/files?path=/home/user/note", token="", headers={"X-API-Key": self.mine.key})
        self.assertEqual(answer.status, 401)
        self.assertEqual(self.mine.inside(self.box, "GET", "/files?path=/home/user/note").body, b"mine\n")

    def test_the_traffic_token(self):
        traffic = self.box["trafficAccessToken"]
        ask = lambda **headers: self.mine.inside(self.box, "GET", "/note", port=8000, token="",
                                                 headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.assertEqual(ask().status, 403)
        self.assertEqual(ask(e2b_traffic_access_token="0" * 64).status, 403)
        self.assertEqual(ask(e2b_traffic_access_token=self.box["envdAccessToken"]).status, 403)
        wait_until(lambda: ask(e2b_traffic_access_token=traffic).status == 200, 30, "a server inside")
        self.assertEqual(self.mine.inside(self.box, "GET", "/files?path=/home/user/note", token=traffic).status, 401)

    def test_inner_doors_stay_shut(self):
        answer = self.mine.inside(self.box, "POST", "/init", json.dumps({"accessToken": "mine"}))
        self.assertEqual(answer.status, 404)


@unittest.skipUnless(shutil.which("kubectl"), "needs kubectl")
class Kubectl(E2bCase):
    options = ("--e2b-warm", "2", "--warm", "4")

    def kubectl(self, *words, stdin=None):
        done = subprocess.run(["kubectl", "--kubeconfig", f"{self.engine.state_dir}/admin.kubeconfig", *words],
                              input=stdin, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_shows_what_e2b_made_and_kills_it(self):
        box = self.mine.create(metadata={"app": "web"})
        name = box["sandboxID"]
        self.assertIn(name, self.kubectl("get", "sandboxes", "-l", "hearth.dev/front=e2b"))
        self.assertIn(name, self.kubectl("get", "sandboxes", "-l", "metadata.hearth.dev/app=web"))
        self.kubectl("delete", "sandbox", name)
        # Whoever follows the objects hears of it soon.
        wait_until(lambda: self.mine.ask("GET", f"/sandboxes/{name}").status == 404, what="its end")
        wait_until(lambda: name not in self.mine.ids(), what="its end in the list")
        wait_until(lambda: self.mine.inside(box, "GET", "/health").status == 502, what="its end on the data plane")

    def test_a_template_says_who_gets_in(self):
        """Warm by both kinds of pools, and cold: its rules reach the Sandbox, and the gateway keeps them."""
        kinds = "apiVersion: extensions.agents.x-k8s.io/v1beta1\nkind: "
        objects = f"""{kinds}SandboxTemplate
metadata: {{name: guarded, annotations: {{hearth.dev/access: team-key}}}}
spec: {{podTemplate: {{metadata: {{annotations: {{hearth.dev/surfaces: envd}}}}, spec: {{containers: [{{name: main, image: host}}]}}}}}}
---
{kinds}SandboxWarmPool
metadata: {{name: guarded-ids, annotations: {{hearth.dev/sandbox-names: id}}}}
spec: {{replicas: 1, sandboxTemplateRef: {{name: guarded}}}}
---
{kinds}SandboxWarmPool
metadata: {{name: guarded-plain}}
spec: {{replicas: 1, sandboxTemplateRef: {{name: guarded}}}}
"""
        self.kubectl("apply", "-f", "-", stdin=objects)
        self.addCleanup(self.kubectl, "delete", "-f", "-", stdin=objects)
        self.addCleanup(self.kill_all, self.mine)
        for pool in ("guarded-ids", "guarded-plain"):
            self.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=1", f"sandboxwarmpool/{pool}", "--timeout=60s")
        claim = f"{kinds}SandboxClaim\nmetadata: {{name: mine}}\nspec: {{warmPoolRef: {{name: guarded-plain}}}}\n"
        self.kubectl("apply", "-f", "-", stdin=claim)
        self.addCleanup(self.kubectl, "delete", "-f", "-", stdin=claim)
        self.kubectl("wait", "--for=condition=Ready", "sandboxclaim/mine", "--timeout=60s")
        claimed = self.kubectl("get", "sandboxclaim", "mine", "-o", "jsonpath={.status.sandbox.name}")
        boxes = [self.mine.create(templateID="guarded") for _ in range(2)]
        self.assertEqual([box.get("envdAccessToken") for box in boxes], [None, None])
        ways = [{"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": "49983"} for box in boxes]
        ways.append({"X-Sandbox-ID": claimed, "X-Sandbox-Port": "49983"})
        other = self.team("stranger")
        for way in ways:
            with self.subTest(way=way):
                ask = lambda **more: self.mine.send("GET", "/files?path=/etc/hostname", None, {**way, **more}).status
                self.assertEqual(ask(), 401)
                self.assertEqual(ask(**{"X-API-Key": other.key}), 403)
                self.assertEqual(ask(**{"X-API-Key": self.mine.key}), 200)

    def test_what_e2b_kills_is_gone_there(self):
        name = self.mine.create()["sandboxID"]
        self.assertEqual(self.mine.ask("DELETE", f"/sandboxes/{name}").status, 204)
        wait_until(lambda: name not in self.kubectl("get", "sandboxes"), 30, "its end")
        self.assertEqual(self.mine.ask("DELETE", f"/sandboxes/{name}").status, 404)


class Restart(E2bCase):
    options = ("--e2b-warm", "2", "--warm", "4")

    def test_sandboxes_tokens_and_keys_survive(self):
        box = self.mine.create(metadata={"a": "b"}, envVars={"KEPT": "yes"})
        self.mine.run(box, "echo kept > note")
        key = self.first_key()
        for sig in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=sig):
                self.restart(sig)
                self.assertEqual(self.first_key(), key)
                self.assertEqual(self.mine.ids(), {box["sandboxID"]})
                self.assertEqual(self.mine.run(box, "cat note; echo $KEPT"), "kept\nyes\n")
                again = self.mine.ask("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 120})
                self.assertEqual(again.status, 200, again.body)
                self.assertEqual(again.json["envdAccessToken"], box["envdAccessToken"])
                self.assertEqual(self.mine.ask("GET", f"/sandboxes/{box['sandboxID']}").json["metadata"], {"a": "b"})
        self.kill_all(self.mine)
        self.assertEqual(self.mine.inside(box, "GET", "/health").status, 502)

    def test_what_ended_with_everything_does_not_come_back_empty(self):
        running, paused, away = [self.mine.create(timeout=600) for _ in range(3)]
        self.mine.run(away, "echo kept > note")
        path = lambda box: f"/sandboxes/{box['sandboxID']}"
        self.assertEqual(self.mine.ask("POST", path(paused) + "/pause").status, 204)
        self.assertEqual(self.mine.ask("POST", path(away) + "/pause", {"memory": False}).status, 204)
        self.restart(signal.SIGINT)
        for box in (running, paused):
            wait_until(lambda box=box: self.mine.ask("GET", path(box)).status == 404, what="its end")
            self.assertEqual(self.mine.ask("POST", path(box) + "/connect", {"timeout": 60}).status, 404)
            self.assertEqual(self.mine.inside(box, "GET", "/health").status, 502)
        self.assertEqual(self.mine.ask("POST", path(away) + "/connect", {"timeout": 60}).status, 201)
        self.assertEqual(self.mine.run(away, "cat note"), "kept\n")
        self.kill_all(self.mine)

    def test_a_revoked_first_key_is_replaced(self):
        key = self.first_key()
        ours = next(entry["id"] for entry in json.loads(self.run_ok("key", "ls", "-o", "json")) if entry["key"].endswith(key[-4:]))
        self.run_ok("key", "rm", ours)
        self.restart(signal.SIGTERM)
        self.assertNotEqual(self.first_key(), key)
        self.assertEqual(self.mine.ask("GET", "/sandboxes").status, 200)
        self.assertEqual(E2b(self.url, key).ask("GET", "/sandboxes").status, 401)


class TeamCase(E2bCase):
    options = ("--e2b-warm", "2", "--warm", "4")

    def objects(self, kind, team):
        return json.loads(self.run_ok("get", kind, "-n", team, "-o", "json"))["items"]

    def pools(self, team):
        return {pool["metadata"]["name"]: pool["status"].get("readyReplicas", 0) for pool in self.objects("pools", team)
                if "status" in pool}

    def waiting(self, team):
        """Names of those that nobody has created."""
        return {box["metadata"]["name"] for box in self.objects("sandboxes", team)
                if "hearth.dev/front" not in box["metadata"]["labels"]}

    def wait_for_pool(self, team, name="default.base", ready=2):
        wait_until(lambda: self.pools(team).get(name) == ready, what=f"a full pool of team {team}")

    def launch(self, team, box):
        found = json.loads(self.run_ok("get", "sandbox", box["sandboxID"], "-n", team, "-o", "json"))
        return found["metadata"]["labels"]["agents.x-k8s.io/launch-type"]


class TeamPools(TeamCase):
    """Teams that use a public template of another's: warm from the second create on, each in its own namespace."""

    def test_two_teams(self):
        teams = {name: self.team(name, "--sandboxes", "3") for name in ("red", "blue")}
        for name, holder in teams.items():
            first = holder.create()
            self.assertEqual(self.launch(name, first), "cold")
            self.wait_for_pool(name)
        waiting = {name: self.waiting(name) for name in teams}
        for name, holder in teams.items():
            with self.subTest(team=name):
                box = holder.create(envVars={"MINE": name})
                self.assertIn(box["sandboxID"], waiting[name])
                self.assertEqual(self.launch(name, box), "warm")
                self.assertEqual(box["templateID"], "base")
                self.assertEqual(holder.run(box, "whoami; echo $MINE $E2B_TEMPLATE_ID"), f"user\n{name} base\n")
                self.wait_for_pool(name)
                # Three of its own, whatever waits.
                holder.create()
                self.wait_for_pool(name)
                self.assertEqual(holder.ask("POST", "/sandboxes", {"templateID": "base"}).status, 429)
                self.assertEqual(len(holder.ids()), 3)
                wait_until(lambda: len(self.waiting(name)) == 2, what="two that wait")
        self.assertFalse(teams["red"].ids() & teams["blue"].ids())
        wait_until(lambda: self.pools("default") == {"base": 2}, what="the pool of the first team, as it was")
        self.assertIn("default.base", self.run_ok("pool", "ls", "-n", "red"))
        self.assertRegex(self.run_ok("describe", "pool", "default.base", "-n", "red"),
                         r"(?s)Template: +default/base\n.*SandboxTemplate +base ")
        # With the team everything goes.
        self.run_ok("team", "rm", "red")
        wait_until(lambda: self.engine.hearth("get", "namespace", "red").returncode != 0, what="the end of a namespace")
        self.assertEqual((self.objects("pools", "red"), self.objects("sandboxes", "red")), ([], []))
        wait_until(lambda: self.pools("blue") == {"default.base": 2}, what="the other team's pool, as it was")

    def test_a_template_that_is_public_no_more(self):
        lender, borrower = self.team("lender"), self.team("borrower")
        self.run_ok("template", "create", "lent", "-n", "lender", "--image", "host", "--surfaces", "envd", "--public")
        wait_until(lambda: lender.ask("GET", "/templates/lent").status == 200, what="a template that is known")
        borrower.create(templateID="lender/lent")
        self.wait_for_pool("borrower", "lender.lent")
        self.assertEqual(self.launch("borrower", borrower.create(templateID="lender/lent")), "warm")
        lender.create(templateID="lent")
        self.assertEqual(self.pools("lender"), {}, "who owns the template makes his own pools")
        self.assertEqual(lender.ask("PATCH", "/templates/lent", {"public": False}).status, 200)
        self.assertEqual(borrower.ask("POST", "/sandboxes", {"templateID": "lender/lent"}).status, 404)
        wait_until(lambda: not self.objects("pools", "borrower") and not self.waiting("borrower"), what="the end of its pool")
        self.assertEqual(len(borrower.ids()), 2, "what was created stays")

    def test_a_pool_that_somebody_scales_is_his(self):
        holder = self.team("scaled")
        holder.create()
        self.wait_for_pool("scaled")
        self.run_ok("pool", "scale", "default.base", "1", "-n", "scaled")
        self.wait_for_pool("scaled", ready=1)

    def test_a_pool_of_ones_own_is_enough(self):
        holder = self.team("own")
        said = self.engine.hearth("pool", "create", "ours", "-n", "own", "--template", "default/base", "--e2b")
        self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "ours\n", ""))
        self.wait_for_pool("own", "ours", 1)
        self.assertEqual(self.launch("own", holder.create()), "warm", "the first one too")
        self.wait_for_pool("own", "ours", 1)
        self.assertEqual(set(self.pools("own")), {"ours"})
        said = self.engine.hearth("pool", "create", "none", "-n", "own", "--template", "default/none", "--e2b")
        self.assertIn("no public template 'none' in the namespace 'default'", said.stderr)

    def test_a_restart_keeps_them(self):
        holder = self.team("kept")
        holder.create()
        self.wait_for_pool("kept")
        waiting = self.waiting("kept")
        self.restart(signal.SIGKILL)
        self.wait_for_pool("kept")
        self.assertIn(E2b(self.url, holder.key).create()["sandboxID"], waiting)


class IdleTeams(TeamCase):
    """A pool goes when its team creates nothing for a while."""

    options = (*TeamCase.options, "--e2b-team-warm", "1", "--e2b-team-idle", "8s")

    def test_it_goes_and_comes_back(self):
        holder = self.team("idle")
        for _ in range(2):
            self.assertEqual(self.launch("idle", holder.create()), "cold")
            wait_until(lambda: self.waiting("idle"), what="one that waits")
            wait_until(lambda: not self.objects("pools", "idle") and not self.waiting("idle"), what="the end of its pool")
        self.assertEqual(len(holder.ids()), 2, "what was created stays")


class AccessLog(E2bCase):
    path = os.path.join(tempfile.gettempdir(), f"hearth-e2e-{os.getpid()}-access.log")
    options = ("--e2b-warm", "1", "--warm", "4", "--access-log", path)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.addClassCleanup(os.unlink, cls.path)

    def lines(self):
        return [json.loads(line) for line in pathlib.Path(self.path).read_text().splitlines()]

    def test_tells_of_both_planes_and_no_secrets(self):
        box = self.mine.create(metadata={"secret": "metadata"})
        self.assertEqual(self.mine.run(box, "echo $((6*7))"), "42\n")
        self.mine.inside(box, "GET", "/files?path=secret&signature=v1_secret")
        self.kill_all(self.mine)
        wait_until(lambda: len(self.lines()) >= 5, 30, "the last line")
        create, command, file, _, kill = self.lines()
        key = json.loads(self.run_ok("key", "ls", "-o", "json"))[0]["id"]
        self.assertEqual([create[name] for name in ("route", "method", "path", "status", "key")],
                         ["api", "POST", "/sandboxes", 201, key])
        self.assertEqual([command[name] for name in ("route", "sandbox", "port", "method", "path", "status")],
                         ["e2b", box["sandboxID"], 49983, "POST", "/process.Process/Start", 200])
        self.assertEqual(command["namespace"], create["namespace"])
        self.assertGreater(command["bytes_out"], 20)
        self.assertEqual((file["path"], kill["method"], kill["status"]), ("/files", "DELETE", 204))
        text = pathlib.Path(self.path).read_text()
        for secret in ("secret", self.mine.key[4:], box["envdAccessToken"], "?"):
            self.assertNotIn(secret, text)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)


class Without(unittest.TestCase):
    def test_an_engine_without_it(self):
        need_root()
        engine = Engine().start("--no-e2b", "--warm", "0")
        self.addCleanup(engine.remove)
        self.assertNotIn("e2b", engine.endpoints())
        self.assertNotIn("E2B", engine.hearth("env").stdout)
        self.assertEqual(engine.hearth("get", "templates", "-o", "name").stdout, "")


if __name__ == "__main__":
    unittest.main()
