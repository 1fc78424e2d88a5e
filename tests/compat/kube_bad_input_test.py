"""Requests that are wrong, huge, slow or hostile: each gets an answer or loses its connection, and the next one is served."""
import base64
import json
import socket
import threading
import time
import unittest

from kube_server import (APPLY, JSON_PATCH, MERGE, TOKEN, TRUSTING, ServedCase, Server, config_map, sandbox, send)

LIMIT = 3 << 20
PROTOBUF = "application/vnd.kubernetes.protobuf"
HEAD = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"


class RawCase(ServedCase):
    def tls(self, timeout=60):
        plain = socket.create_connection(("127.0.0.1", self.server.port), timeout)
        secure = TRUSTING.wrap_socket(plain)
        self.addCleanup(secure.close)
        return secure

    def raw(self, data, timeout=60):
        """Everything that comes back until the server closes."""
        secure = self.tls(timeout)
        secure.sendall(data if isinstance(data, bytes) else data.encode())
        return self.drain(secure)

    def drain(self, secure):
        got = b""
        try:
            while piece := secure.recv(65536):
                got += piece
        except OSError:
            pass
        return got.decode(errors="replace")

    def alive(self):
        self.assertEqual(self.ask("GET", "/readyz").text, "ok")

    def tearDown(self):
        self.alive()


class Bodies(RawCase):
    def test_too_large(self):
        for path, type in ((self.config_maps, "application/json"), (self.config_maps, "application/yaml")):
            answer = self.ask("POST", path, b" " * (LIMIT + 1), type=type)
            self.refused(answer, 413, "RequestEntityTooLarge", f"Request entity too large: limit is {LIMIT}")

    def test_too_large_in_chunks(self):
        secure = self.tls()
        secure.sendall(f"POST {self.config_maps} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16))
        try:
            for _ in range(80):
                secure.sendall(chunk)
            secure.sendall(b"0\r\n\r\n")
        except OSError:
            pass
        self.assertIn("413", self.drain(secure).split("\r\n")[0] or "413")

    def test_as_large_as_may_be(self):
        made = self.make(self.config_maps, config_map("large", {"a": "x" * (1000 << 10)}))
        self.assertEqual(len(made["data"]["a"]), 1000 << 10)
        answer = self.ask("POST", self.config_maps, config_map("larger", {"a": "x" * (1100 << 10)}))
        self.assertEqual((answer.status, answer.json["reason"]), (422, "Invalid"))

    def test_json_that_is_none(self):
        for body in (b"", b"null", b"[]", b'"text"', b"1", b"{", b'{"a":}', b'{"a":1,}', b"{'a':1}", b"\xef\xbb\xbf{}",
                     b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}} trailing',
                     b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"\xff\xfe"}}',
                     b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"\x01"}}',
                     b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":NaN}}',
                     b"[" * 100000, b'{"a":' * 100000, b"[" * 5000 + b"]" * 5000):
            with self.subTest(body=body[:60]):
                answer = self.ask("POST", self.config_maps, body)
                self.assertEqual((answer.status, answer.json["reason"]), (400, "BadRequest"))
                self.assertLess(len(answer.bytes), 2000)

    def test_members_of_the_wrong_type(self):
        for change in ({"metadata": 1}, {"metadata": []}, {"metadata": {"name": 5}}, {"metadata": {"name": ["a"]}},
                       {"metadata": {"name": "a", "labels": {"a": 1}}}, {"metadata": {"name": "a", "labels": "x"}},
                       {"metadata": {"name": "a", "finalizers": {"a": 1}}}, {"data": {"a": {"b": 1}}}, {"data": [1]},
                       {"metadata": {"name": "a", "ownerReferences": [1]}},
                       {"apiVersion": 1}, {"kind": {}}, {"metadata": None}):
            with self.subTest(change=change):
                answer = self.ask("POST", self.config_maps, dict(config_map("a"), **change))
                self.assertIn(answer.status, (400, 422), answer.text)
        for spec in (1, [], "x", None, {"podTemplate": 1}, {"podTemplate": {"spec": {"containers": [1]}}},
                     {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "x", "ports": [{
                         "containerPort": 10 ** 30}]}]}}}):
            with self.subTest(spec=spec):
                answer = self.ask("POST", self.sandboxes, dict(sandbox("a"), spec=spec))
                self.assertIn(answer.status, (400, 422), answer.text)

    def test_many_errors_make_a_short_answer(self):
        body = sandbox("many")
        body["spec"]["podTemplate"]["spec"]["containers"] = [{"name": i, "image": i} for i in range(20000)]
        answer = self.ask("POST", self.sandboxes, body)
        self.assertEqual(answer.status, 422)
        self.assertLess(len(answer.bytes), 1 << 20)

    def test_many_unknown_fields(self):
        body = sandbox("unknown")
        body["spec"].update({f"f{i}": 1 for i in range(20000)})
        answer = self.ask("POST", f"{self.sandboxes}?fieldValidation=Strict", body)
        self.assertEqual(answer.status, 400)
        self.assertLess(len(answer.bytes), 1 << 16)
        warned = self.ask("POST", f"{self.sandboxes}?dryRun=All", body)
        self.assertEqual(warned.status, 201)

    def test_yaml(self):
        bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12))
        for body in (bomb, "a: *nowhere", "a: &a [*a]", "a: b: c", "- 1\n- 2", "a: [", "\t a: 1", "{", "%YAML 9.9\n--- a",
                     "a: !!binary x\n", "x: " + "[" * 20000, b"a: \xff\xfe", "--- {}\n--- {}\n", "a: 'x"):
            with self.subTest(body=body[:40]):
                began = time.monotonic()
                answer = self.ask("POST", self.sandboxes, body, type="application/yaml")
                self.assertEqual((answer.status, answer.json["reason"]), (400, "BadRequest"))
                applied = self.ask("PATCH", f"{self.config_maps}/y?fieldManager=m", body, type=APPLY)
                self.assertIn(applied.status, (400, 422, 500))
                self.assertLess(time.monotonic() - began, 20)

    def test_protobuf(self):
        magic = b"k8s\0"
        for body in (b"", b"k8", magic, b"json" + b"{}", magic + b"\x0a", magic + b"\x0a\xff\xff\xff\xff\x0f",
                     magic + b"\xff" * 40, magic + b"\x0a\x02\x0a\x00", magic + b"\x0b" * 1000,
                     magic + b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\xff\xff\xff\xff"):
            with self.subTest(body=body[:20]):
                answer = self.ask("POST", self.config_maps, body, type=PROTOBUF)
                self.assertIn((answer.status, answer.json["reason"]),
                              ((400, "BadRequest"), (415, "UnsupportedMediaType")))
        answer = self.ask("POST", self.sandboxes, b"k8s\0\x0a\x00", type=PROTOBUF)
        self.assertIn(answer.status, (400, 415))

    def test_content_types(self):
        accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        for type in ("text/plain", "application/x-www-form-urlencoded", "application/cbor", "nonsense", "a/b/c"):
            with self.subTest(type=type):
                self.refused(self.ask("POST", self.config_maps, "x", type=type), 415, "UnsupportedMediaType",
                             "the body of the request was in an unknown format - accepted media types include: " +
                             accepted)
        for name, type in (("charset", "application/json; charset=utf-8"), ("upper", "Application/JSON")):
            self.got(self.ask("POST", self.config_maps, config_map(name), type=type), 201)

    def test_patches(self):
        self.make(self.config_maps, config_map("patched", {"a": "1"}))
        path = f"{self.config_maps}/patched"
        for type, body in [(MERGE, "{"), (MERGE, "[]"), (MERGE, '"x"'), (JSON_PATCH, "{}"),
                           (JSON_PATCH, "[1]"), (JSON_PATCH, '[{"op":"nope","path":"/a"}]'), (JSON_PATCH, "["),
                           (JSON_PATCH, '[{"op":"add","path":"a","value":1}]'), (JSON_PATCH, '[{"op":"add"}]'),
                           (JSON_PATCH, '[{"op":"replace","path":"","value":1}]'),
                           (JSON_PATCH, '[{"op":"copy","from":"/x","path":"/y"}]'),
                           (APPLY, "[]"), (APPLY, "x"), (MERGE, '{"metadata":{"managedFields":1}}'),
                           (MERGE, '{"data":1}'), (MERGE, "[" * 100000)]:
            with self.subTest(type=type, body=body[:40]):
                answer = self.ask("PATCH", f"{path}?fieldManager=m", body, type=type)
                self.assertIn(answer.status, (400, 422), answer.text)
        grow = [{"op": "add", "path": "/data/x0", "value": "x" * 1000}] + [
            {"op": "copy", "from": "/data", "path": f"/data/y{i}"} for i in range(60)]
        began = time.monotonic()
        self.assertGreaterEqual(self.ask("PATCH", path, grow, type=JSON_PATCH).status, 400)
        many = [{"op": "add", "path": "/data/x", "value": "1"}] * 20000
        self.assertIn(self.ask("PATCH", path, many, type=JSON_PATCH).status, (200, 413, 422))
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(self.got(self.ask("GET", path))["data"]["a"], "1")

    def test_delete_options(self):
        self.make(self.config_maps, config_map("kept"))
        for body in ("{", "[]", '{"gracePeriodSeconds":"x"}', '{"propagationPolicy":1}', '{"preconditions":"x"}',
                     '{"dryRun":["Some"]}', '{"kind":"Pod","apiVersion":"v1"}', "\xff"):
            with self.subTest(body=body):
                answer = self.ask("DELETE", f"{self.config_maps}/kept", body)
                self.assertIn(answer.status, (400, 422), answer.text)
        self.assertEqual(self.ask("GET", f"{self.config_maps}/kept").status, 200)


class Targets(RawCase):
    def test_queries(self):
        for query in ("limit=abc", "limit=-1", "limit=99999999999999999999", "watch=maybe&timeoutSeconds=1", "pretty=maybe", "%zz", "a=%",
                      "&&&", "=", "unknown=1", "timeoutSeconds=x", "resourceVersion=-1", "continue=%00",
                      "labelSelector=%ff%fe", "fieldSelector=%00"):
            with self.subTest(query=query):
                answer = self.ask("GET", f"{self.config_maps}?{query}")
                self.assertIn(answer.status, (200, 400, 410), answer.text)
        self.assertEqual(self.ask("GET", f"{self.config_maps}?unknown=1&timeout=32s").status, 200)
        for query in ("resourceVersion=-1", "resourceVersion=1x", "resourceVersion=99999999999999999999999"):
            self.assertEqual(self.ask("GET", f"{self.config_maps}?{query}").status, 400, query)

    def test_continue_tokens(self):
        def token(text):
            return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

        for bad in ("xxx", "%00", "a" * 5000, token("{}"), token("[]"), token('{"v":"meta.k8s.io/v1","rv":-1,"start":"a/b"}'),
                    token('{"v":"meta.k8s.io/v1","rv":"1","start":"a/b"}'), token('{"v":"meta.k8s.io/v1","rv":1}'),
                    token('{"v":"meta.k8s.io/v1","rv":1,"start":"../../x"}').replace("=", ""),
                    token('{"v":"meta.k8s.io/v1","rv":99999999,"start":"a/b"}')):
            with self.subTest(token=bad[:40]):
                answer = self.ask("GET", f"{self.config_maps}?limit=1&continue={bad}")
                self.assertIn(answer.status, (200, 400, 410), answer.text)
                if answer.status == 200:
                    self.assertEqual([one["metadata"]["namespace"] for one in answer.json["items"]],
                                     [self.ns] * len(answer.json["items"]))

    def test_paths(self):
        for path in ("/api//v1", "/api/v1/../../etc/passwd", "/api/v1/namespaces//pods", "/%2e%2e/%2e%2e/x",
                     f"{self.config_maps}/a%2fb", f"{self.config_maps}/%00", f"{self.config_maps}/%ff",
                     f"{self.config_maps}/a/b/c/d/e", "/apis/", "/apis//v1/x", "/api/v2/pods", f"{self.pods}/p/nosuch",
                     f"{self.config_maps}/x/status", "/" + "a/" * 3000):
            with self.subTest(path=path[:60]):
                answer = self.ask("GET", path)
                self.assertIn(answer.status, (200 if path == "/apis/" else 404, 400, 404), answer.text)
        self.assertEqual(self.ask("GET", "/" + "a" * 20000).status, 414)

    def test_methods(self):
        head = self.ask("HEAD", self.config_maps)
        self.assertEqual((head.status, head.bytes), (200, b""))
        for method in ("OPTIONS", "TRACE", "PROPFIND", "LIST", "GETT"):
            with self.subTest(method=method):
                self.assertIn(self.ask(method, self.config_maps).status, (404, 405, 501))
        self.assertGreaterEqual(self.ask("CONNECT", self.config_maps).status, 400)

    def test_names(self):
        for name in ("a" * 254, "A", "a_b", "-a", "a-", "..", "a..b", "ä", "a/b", " ", "a b", "a%b", "%2e"):
            with self.subTest(name=name[:20]):
                answer = self.ask("POST", self.config_maps, config_map(name))
                self.assertEqual((answer.status, answer.json["reason"]), (422, "Invalid"))
        self.make(self.config_maps, config_map("a" * 253))
        self.assertEqual(self.ask("GET", f"{self.config_maps}/{'b' * 5000}").status, 404)
        answer = self.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                                         "metadata": {"name": "n" * 64}})
        self.assertEqual(answer.status, 422)

    def test_labels(self):
        many = {f"label-{i}": "v" for i in range(2000)}
        self.assertEqual(len(self.make(self.config_maps, config_map("labelled", labels=many))["metadata"]["labels"]), 2000)
        for labels in ({"a" * 64: "v"}, {"a": "v" * 64}, {"a b": "v"}, {"": "v"}, {"a/b/c": "v"}, {"a": "-v"}):
            with self.subTest(labels=labels):
                answer = self.ask("POST", self.config_maps, config_map("l", labels=labels))
                self.assertEqual((answer.status, answer.json["details"]["causes"][0]["field"]),
                                 (422, "metadata.labels"))
        answer = self.ask("POST", self.config_maps, config_map("n", annotations={"a": "x" * (257 << 10)}))
        self.assertEqual((answer.status, answer.json["details"]["causes"][0]["field"]), (422, "metadata.annotations"))

    def test_selectors(self):
        long = ",".join(f"label-{i}%3Dv" for i in range(700))
        found = self.got(self.ask("GET", f"{self.config_maps}?labelSelector={long}"))
        self.assertLessEqual(len(found["items"]), 1)
        for selector in ("a%20in", "a%20in%20(", "%21%21a", "a%3D%3D%3Db", "(", "a,,b", "a%20b", "a%3E1x",
                         "-a%3Db", "a%3Db%20c", "a" * 400 + "%3D1"):
            with self.subTest(selector=selector[:30]):
                answer = self.ask("GET", f"{self.config_maps}?labelSelector={selector}")
                self.assertEqual((answer.status, answer.json.get("reason")), (400, "BadRequest"), answer.text)

    def test_field_managers(self):
        answer = self.ask("POST", f"{self.config_maps}?fieldManager={'m' * 129}", config_map("m"))
        self.assertEqual((answer.status, answer.json["details"]["causes"][0]["field"]), (422, "fieldManager"))


class Connections(RawCase):
    def test_heads_that_are_none(self):
        for head in ("nonsense\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n",
                     "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "\0\0\0\0\r\n\r\n",
                     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nab",
                     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: nonsense\r\n\r\n"):
            with self.subTest(head=head):
                self.assertRegex(self.raw(head), r"^(HTTP/1\.1 (4|5)\d\d |$)")

    def test_heads_too_large(self):
        self.assertIn(" 431 ", self.raw(f"GET /version HTTP/1.1\r\n{HEAD}X: {'x' * 70000}\r\n\r\n").split("\r\n")[0])
        fields = "".join(f"X-{i}: y\r\n" for i in range(200))
        self.assertIn(" 431 ", self.raw(f"GET /version HTTP/1.1\r\n{HEAD}{fields}\r\n").split("\r\n")[0])

    def test_slow_heads_are_cut_off(self):
        secure = self.tls()
        began = time.monotonic()
        secure.settimeout(1)
        text = f"GET /version HTTP/1.1\r\n{HEAD}".encode()
        answer = b""
        for at in range(60):
            try:
                secure.sendall(text[at:at + 1])
                answer += secure.recv(1000)
                break
            except TimeoutError:
                continue
            except OSError:
                break
        self.assertLess(time.monotonic() - began, 50)
        self.assertRegex(answer.decode(), r"^(HTTP/1\.1 408 |$)")

    def test_a_body_that_never_comes_is_not_waited_for_for_ever(self):
        secure = self.tls(90)
        secure.sendall(f"POST {self.config_maps} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
                       "Content-Length: 1000\r\n\r\n{".encode())
        self.assertEqual(self.ask("GET", "/readyz").text, "ok")
        began = time.monotonic()
        self.assertRegex(self.drain(secure), r"^(HTTP/1\.1 408 |$)")
        self.assertLess(time.monotonic() - began, 80)

    def test_clients_that_leave_in_the_middle(self):
        for _ in range(50):
            secure = self.tls()
            secure.sendall(f"POST {self.config_maps} HTTP/1.1\r\n{HEAD}Content-Length: 1000\r\n\r\n{{".encode())
            secure.close()

    def test_requests_one_after_the_other_and_at_once(self):
        request = f"GET /version HTTP/1.1\r\n{HEAD}\r\n"
        last = f"GET /version HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n"
        self.assertEqual(self.raw(request * 9 + last).count("HTTP/1.1 200 OK"), 10)


class Watchers(RawCase):
    def test_one_that_stops_reading_holds_up_nobody(self):
        stuck = self.tls()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.sendall(f"GET {self.config_maps}?watch=1 HTTP/1.1\r\n{HEAD}\r\n".encode())
        seen = []
        reader = self.server.connect(60)
        self.addCleanup(reader.close)
        reader.request("GET", f"{self.config_maps}?watch=1&timeoutSeconds=60",
                       headers={"Authorization": f"Bearer {TOKEN}"})
        stream = reader.getresponse()

        def read():
            while len(seen) < 100:
                seen.append(json.loads(stream.readline())["object"]["metadata"]["name"])

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        for number in range(100):
            self.make(self.config_maps, config_map(f"w{number:03}", {"a": "x" * (64 << 10)}))
        thread.join(60)
        mine = [name for name in seen if name.startswith("w")]
        self.assertEqual(mine, [f"w{number:03}" for number in range(len(mine))])
        self.assertGreaterEqual(len(mine), 98)


class Restarts(unittest.TestCase):
    def test_revisions_and_objects_stay(self):
        server = Server()
        self.addCleanup(server.remove)
        path = "/api/v1/namespaces/default/configmaps"
        made = send(server, "POST", path, config_map("kept", {"a": "1"})).json
        other = send(server, "POST", path, config_map("gone")).json
        send(server, "DELETE", f"{path}/gone")
        before = int(send(server, "GET", path).json["metadata"]["resourceVersion"])
        server.stop()
        server.start()
        self.assertEqual(send(server, "GET", f"{path}/kept").json, made)
        self.assertEqual(send(server, "GET", f"{path}/gone").status, 404)
        after = send(server, "POST", path, config_map("later")).json
        self.assertGreater(int(after["metadata"]["resourceVersion"]), before)
        stale = send(server, "PUT", f"{path}/kept", config_map("kept", resourceVersion="1"))
        self.assertEqual(stale.status, 409)
        watch = f"{path}?watch=1&timeoutSeconds=1&resourceVersion="
        events = send(server, "GET", watch + other["metadata"]["resourceVersion"]).events
        kinds = [kind for kind, _ in events]
        # Either everything since then, or the word that it is too long ago.
        if kinds == ["ERROR"]:
            self.assertEqual((events[0][1]["code"], events[0][1]["reason"]), (410, "Expired"))
        else:
            self.assertIn("gone", [one["metadata"]["name"] for kind, one in events if kind == "DELETED"])
            self.assertIn("later", [one["metadata"]["name"] for kind, one in events if kind == "ADDED"])


if __name__ == "__main__":
    unittest.main()
