"""The E2B API of a real engine, word by word: what its SDKs would send."""
import base64
import contextlib
import http.client
import json
import struct
import urllib.parse

ENVD = 49983
SECONDS = 60


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class E2b:
    """One key's view of an engine. Without a key, nobody's."""

    def __init__(self, url, key=None):
        self.where = urllib.parse.urlsplit(url)
        self.key = key

    def send(self, method, path, body=None, headers=None):
        with contextlib.closing(http.client.HTTPConnection(self.where.hostname, self.where.port, timeout=SECONDS)) as connection:
            connection.request(method, path, body, headers or {})
            return Answer(connection.getresponse())

    def ask(self, method, path, body=None):
        """The control plane."""
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["X-API-Key"] = self.key
        return self.send(method, path, json.dumps(body) if body is not None else None, headers)

    def create(self, **body):
        answer = self.ask("POST", "/sandboxes", {"templateID": "base", "timeout": 120, "secure": True, **body})
        assert answer.status == 201, (answer.status, answer.body)
        return answer.json

    def ids(self):
        answer = self.ask("GET", "/v2/sandboxes")
        assert answer.status == 200, answer.body
        return {box["sandboxID"] for box in answer.json}

    def inside(self, box, method, path, body=None, port=ENVD, token=None, headers=None):
        """The data plane: a port of a sandbox, by the headers that the SDKs send."""
        sent = {"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": str(port), **(headers or {})}
        token = box.get("envdAccessToken") if token is None else token
        if token:
            sent["X-Access-Token"] = token
        return self.send(method, path, body, sent)

    def run(self, box, script, user=None, **kwargs):
        """What a shell command writes, over envd's process service."""
        message = json.dumps({"process": {"cmd": "/bin/bash", "args": ["-c", script]}}).encode()
        headers = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
        answer = self.inside(box, "POST", "/process.Process/Start", b"\0" + struct.pack(">I", len(message)) + message,
                             headers=headers, **kwargs)
        assert answer.status == 200, (answer.status, answer.body)
        output, rest = b"", answer.body
        while rest:
            flags, length = rest[0], struct.unpack(">I", rest[1:5])[0]
            event, rest = json.loads(rest[5:5 + length]), rest[5 + length:]
            assert not (flags & 2 and event.get("error")), event
            data = event.get("event", {}).get("data", {})
            output += base64.b64decode(data.get("stdout", "")) + base64.b64decode(data.get("stderr", ""))
        return output.decode()
