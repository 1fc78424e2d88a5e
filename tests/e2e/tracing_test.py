"""Spans of the controllers, as a collector of OpenTelemetry gets them, and the context that travels from a client to its sandbox."""
import http.server
import json
import os
import threading
import unittest
import urllib.parse

from cluster import ClusterTest, claim, pool, sandbox, template
from hearth import wait_until

CONTEXT = "opentelemetry.io/trace-context"
KEY = "it is mine, all of it"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector:
    """Takes what is posted to /v1/traces, as OTLP over HTTP has it, with the key that it asks for."""

    def __init__(self):
        collector = self
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_customer = self.headers["api-key"] == KEY
                if is_customer:
                    collector.requests.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(200 if is_customer else 401)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *words):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def spans(self):
        return [span for _, _, body in self.requests for resource in body["resourceSpans"]
                for scope in resource["scopeSpans"] for span in scope["spans"]]


def attributes(thing):
    return {it["key"]: it["value"]["stringValue"] for it in thing.get("attributes", [])}


def context_of(thing):
    text = thing["metadata"].get("annotations", {}).get(CONTEXT)
    return json.loads(text)["traceparent"].split("-") if text else None


class TracingTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        if os.environ.get("HEARTH_E2E_KUBECONFIG"):
            raise unittest.SkipTest("needs an engine that is told to trace")
        cls.collector = Collector()
        cls.addClassCleanup(cls.collector.stop)
        for name, value in (("ENDPOINT", cls.collector.url), ("HEADERS", "api-key=" + urllib.parse.quote(KEY))):
            os.environ["OTEL_EXPORTER_OTLP_" + name] = value
            cls.addClassCleanup(os.environ.pop, "OTEL_EXPORTER_OTLP_" + name)
        super().setUpClass()

    engine_options = ("--warm", "4", "--enable-tracing")

    def wait_span(self, name, **wanted):
        """The first of that name with these attributes, dots for underscores."""
        def matches():
            return [span for span in self.collector.spans() if span["name"] == name and
                    all(attributes(span).get(key.replace("_", ".")) == value for key, value in wanted.items())]
        wait_until(matches, 30, f"a span {name} of {wanted}: {sorted({it['name'] for it in self.collector.spans()})}")
        return matches()[0]

    def test_a_sandbox(self):
        self.create(sandbox("box"))
        box = self.wait_ready("Sandbox", "box")
        version, trace, first, flags = context_of(box)
        self.assertEqual((version, flags), ("00", "01"))
        span = self.wait_span("ReconcileSandbox", sandbox_name="box", sandbox_namespace=self.namespace)
        self.assertEqual((span["traceId"], span["spanId"]), (trace, first))
        self.assertLess(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))

        def pod_spans():
            return [it for it in self.collector.spans() if it["name"] == "reconcilePod" and it["traceId"] == trace]
        wait_until(lambda: any(attributes(event).get("pod.Phase") == "Running" for it in pod_spans() for event in it.get("events", [])),
                   30, f"a span that saw the pod run: {pod_spans()}")
        self.assertEqual({attributes(event)["pod.Name"] for it in pod_spans() for event in it.get("events", [])}, {"box"})
        path, kind, body = self.collector.requests[0]
        self.assertEqual((path, kind), ("/v1/traces", "application/json"))
        self.assertEqual(attributes(body["resourceSpans"][0]["resource"]), {"service.name": "hearth"})

    def test_a_clients_trace_goes_on_to_its_sandbox(self):
        self.create(template("traced"), pool("traced", "traced", 1))
        self.wait("SandboxWarmPool", "traced", lambda it: it.get("status", {}).get("readyReplicas") == 1, "full")
        self.wait_span("ReconcileSandboxTemplate", sandbox_template_name="traced")
        wanted = claim("asked", "traced")
        wanted["metadata"]["annotations"] = {CONTEXT: json.dumps({"traceparent": f"00-{TRACE}-{PARENT}-01"})}
        self.create(wanted, claim("unasked", "traced"))
        made = self.wait_ready("SandboxClaim", "asked")
        span = self.wait_span("ReconcileSandboxClaim", sandbox_claim_name="asked")
        self.assertEqual((span["traceId"], span["parentSpanId"]), (TRACE, PARENT))
        name = made["status"]["sandbox"]["name"]
        self.assertEqual(context_of(self.get("Sandbox", name)), ["00", TRACE, PARENT, "01"])
        # And what is done to it from now on is of that trace.
        self.patch("Sandbox", name, {"spec": {"podTemplate": {"metadata": {"labels": {"color": "red"}}}}})
        wait_until(lambda: any(it["name"] == "ReconcileSandbox" and it["traceId"] == TRACE for it in self.collector.spans()), 30, "its span")

        # A claim without one begins its own, and is told so.
        box = self.get("Sandbox", self.wait_ready("SandboxClaim", "unasked")["status"]["sandbox"]["name"])
        other = self.wait("SandboxClaim", "unasked", context_of, "annotated")
        self.assertEqual(context_of(other), context_of(box))
        self.assertNotEqual(context_of(other)[1], TRACE)


if __name__ == "__main__":
    unittest.main()
