"""NetworkPolicies and Services on a real engine, through kubectl: who reaches whom, by which address and name."""
import json
import os
import subprocess
import unittest

from hearth import Engine, host_state, need_root, wait_until

SERVER = """
import http.server, sys, threading
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(sys.argv[1].encode())
    def log_message(self, *words): pass
servers = [http.server.ThreadingHTTPServer(("", port), Answer) for port in (8000, 8001)]
for server in servers: threading.Thread(target=server.serve_forever).start()
"""
# Prints what the other side says, or the kind of failure.
ASK = """
import sys, urllib.request, urllib.error
try: print(urllib.request.urlopen(sys.argv[1], timeout=3).read().decode())
except urllib.error.URLError as error: print(type(error.reason).__name__)
except OSError as error: print(type(error).__name__)
"""
# What the controller of SandboxTemplates makes of a template that says nothing.
DEFAULT_SPEC = {
    "podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Ingress", "Egress"],
    "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "sandbox-router"}}}]}],
    "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
                                                                   "169.254.0.0/16"]}},
                       {"ipBlock": {"cidr": "::/0", "except": ["fc00::/7", "fe80::/10"]}}]}]}


def pod(name, app, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "main", "image": "host", "ports": [{"name": "web", "containerPort": 8000}],
                 "command": ["python3", "-c", SERVER, name]}], **spec}}


def service(name, app, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": "web"}], **spec}}


def policy(name, spec):
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec}


class ServicesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        if subprocess.run(["which", "kubectl"], capture_output=True).returncode:
            raise unittest.SkipTest("needs kubectl")
        cls.before = host_state()
        cls.engine = Engine().start("--warm", "4", "--node-name", "here")

    @classmethod
    def tearDownClass(cls):
        cls.engine.remove()
        after = host_state()
        for kind in ("processes", "cgroups", "folders", "links"):
            assert not after[kind] - cls.before[kind], (kind, after[kind] - cls.before[kind])

    def tearDown(self):
        self.kubectl("delete", "pods,networkpolicies", "--all", "--grace-period=0", "--force", "--wait=false")
        self.kubectl("delete", "services", "-l", "component!=apiserver")
        wait_until(lambda: not self.engine.sandboxes(), 20, "the end of all sandboxes")

    def kubectl(self, *words, stdin=None, check=True):
        config = os.path.join(self.engine.state_dir, "admin.kubeconfig")
        result = subprocess.run(["kubectl", "--kubeconfig", config, *words], input=stdin, capture_output=True, text=True,
                                timeout=120)
        if check:
            self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def create(self, *objects):
        self.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def address(self, name):
        def find():
            seen = json.loads(self.kubectl("get", "pod", name, "-o", "json"))["status"]
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in seen.get("conditions", []))
            return ready and seen["podIP"]
        return wait_until(find, 30, f"{name} ready")

    def ask(self, name, url):
        return self.kubectl("exec", name, "--", "python3", "-c", ASK, url).strip()

    def expect(self, name, url, answer, seconds=10):
        """Changes take effect soon, not at once."""
        last = []

        def is_so():
            last[:] = [self.ask(name, url)]
            return last[0] == answer
        try:
            wait_until(is_so, seconds)
        except AssertionError:
            self.fail(f"{name} asked {url}: {last[0]}, not {answer}")


class PolicyTest(ServicesTest):
    def test_neighbours_meet_where_a_service_leads(self):
        self.create(pod("client", "client"), pod("server", "server"))
        self.address("client")
        server = self.address("server")
        self.expect("client", f"http://{server}:8000", "ConnectionRefusedError")
        self.create(service("web", "server", clusterIP="None"))
        self.expect("client", f"http://{server}:8000", "server")
        self.assertEqual(self.ask("client", f"http://{server}:8001"), "ConnectionRefusedError")
        self.create(policy("closed", {"podSelector": {"matchLabels": {"app": "server"}}, "policyTypes": ["Ingress"]}))
        self.expect("client", f"http://{server}:8000", "ConnectionRefusedError")
        self.kubectl("delete", "networkpolicy", "closed")
        self.expect("client", f"http://{server}:8000", "server")
        self.kubectl("delete", "service", "web")
        self.expect("client", f"http://{server}:8000", "ConnectionRefusedError")

    def test_the_default_of_templates_holds_from_the_first_moment(self):
        self.create(pod("server", "server"), service("web", "server"), policy("default", DEFAULT_SPEC))
        server = self.address("server")
        first = f"import urllib.request as r, time\ntry: print(r.urlopen('http://{server}:8000', timeout=3).status)\n" \
                "except OSError as e: print(e.reason)\ntime.sleep(1000)"
        client = pod("client", "client")
        client["spec"]["containers"][0]["command"] = ["python3", "-uc", first]
        self.create(client)
        self.address("client")
        wait_until(lambda: "refused" in self.kubectl("logs", "client"), 10)
        # Labels are what policies go by.
        self.kubectl("label", "pod", "client", "app=other", "--overwrite")
        self.expect("client", f"http://{server}:8000", "server")

    def test_a_list_of_ones_own_holds(self):
        self.create(policy("own", {
            "podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"],
            "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "server"}}}], "ports": [{"port": 8001}]}]}))
        self.create(pod("client", "client"), pod("server", "server"))
        self.address("client")
        server = self.address("server")
        self.expect("client", f"http://{server}:8001", "server")
        self.assertEqual(self.ask("client", f"http://{server}:8000"), "ConnectionRefusedError")
        self.assertEqual(self.ask("client", "http://203.0.113.9:80"), "ConnectionRefusedError")

    def test_a_cluster_ip_leads_to_ready_pods(self):
        self.create(pod("client", "client"), pod("server", "server"), service("web", "server"), service("empty", "nobody"))
        self.address("client")
        self.address("server")
        web, empty = (self.kubectl("get", "service", name, "-o", "jsonpath={.spec.clusterIP}") for name in ("web", "empty"))
        self.expect("client", f"http://{web}", "server")
        self.assertEqual(self.ask("client", f"http://{web}:81"), "ConnectionRefusedError")
        self.assertEqual(self.ask("client", f"http://{empty}"), "ConnectionRefusedError")
        self.assertEqual(self.ask_from_host(f"http://{web}"), "server")
        self.assertEqual(self.ask_from_host(f"http://{empty}"), "ConnectionRefusedError")
        slices = json.loads(self.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "json"))
        self.assertEqual(slices["items"][0]["endpoints"][0]["targetRef"]["name"], "server")
        # The address is no way around a policy.
        self.create(policy("closed", {"podSelector": {"matchLabels": {"app": "server"}}, "policyTypes": ["Ingress"]}))
        self.expect("client", f"http://{web}", "ConnectionRefusedError")
        self.assertEqual(self.ask_from_host(f"http://{web}"), "server")

    def test_names_lead_to_services(self):
        self.create(pod("client", "client"), pod("server", "server", hostname="one", subdomain="deep"),
                    service("web", "server"), service("deep", "server", clusterIP="None"))
        self.address("client")
        self.address("server")
        for url in ("http://web", "http://web.default", "http://web.default.svc.cluster.local", "http://deep:8000",
                    "http://one.deep.default.svc.cluster.local:8000"):
            self.expect("client", url, "server")
        self.assertEqual(self.ask("client", "http://nobody.default.svc.cluster.local"), "gaierror")
        self.assertIn("search default.svc.cluster.local", self.kubectl("exec", "client", "--", "cat", "/etc/resolv.conf"))
        own = pod("own", "client", dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.53"]})
        self.create(own)
        self.address("own")
        self.assertEqual(self.kubectl("exec", "own", "--", "cat", "/etc/resolv.conf"), "nameserver 192.0.2.53\n")

    def ask_from_host(self, url):
        return subprocess.run(["python3", "-c", ASK, url], capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    unittest.main()
