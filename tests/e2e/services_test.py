"""NetworkPolicies, Services and names on our node, through kubectl: who reaches whom, by which address and name."""
import json
import signal
import socket
import struct
import subprocess
import sys
import unittest

from cluster import ClusterTest, claim, pool, sandbox, template
from hearth import wait_until

# Says its own name on two ports.
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
try: print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except urllib.error.URLError as error: print(type(error.reason).__name__)
except OSError as error: print(type(error).__name__)
"""
# Prints what a name means, or that it means nothing.
RESOLVE = """
import socket, sys
try: print(sorted({found[4][0] for found in socket.getaddrinfo(sys.argv[1], 80, socket.AF_INET)}))
except socket.gaierror as error: print(error.errno)
"""
REFUSED = "ConnectionRefusedError"


def server_pod(name, **spec):
    return {"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "main", "image": "host", "ports": [{"name": "web", "containerPort": 8000}],
         "readinessProbe": {"tcpSocket": {"port": "web"}}, "command": ["python3", "-c", SERVER, name]}], **spec}


def pod(name, app, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}}, "spec": server_pod(name, **spec)}


def service(name, app, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": "web"}], **spec}}


def policy(name, app, **spec):
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name},
            "spec": {"podSelector": {"matchLabels": {"app": app}}, **spec}}


def run_here(script, word):
    return subprocess.run([sys.executable, "-c", script, word], capture_output=True, text=True, timeout=60).stdout.strip()


def ask_name_server(address, name):
    """The addresses of a name, as the name server at this address says."""
    question = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0)
    question += b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0" + struct.pack(">HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(30)
        asking.sendto(question, (address, 53))
        answer = asking.recv(4096)
    count = struct.unpack(">H", answer[6:8])[0]
    return [socket.inet_ntoa(answer[len(question) + 16 * i + 12:len(question) + 16 * i + 16]) for i in range(count)]


class NetworkTest(ClusterTest):
    engine_options = ("--warm", "4")

    def setUp(self):
        self.need_our_node("what leads to pods")

    def tearDown(self):
        for kind in ("SandboxClaim", "SandboxWarmPool", "SandboxTemplate", "Sandbox", "Pod", "Service", "NetworkPolicy"):
            for thing in self.list(kind):
                self.delete(kind, thing["metadata"]["name"], gracePeriodSeconds=0)
        wait_until(lambda: not self.cluster.engine.sandboxes(), 30, "the end of all sandboxes")

    def start(self, *objects):
        """The addresses of all pods among them, once they are ready."""
        self.create(*objects)
        names = [thing["metadata"]["name"] for thing in objects if thing["kind"] == "Pod"]
        return [self.wait_ready("Pod", name)["status"]["podIP"] for name in names]

    def run_python(self, name, script, word):
        return self.kubectl("exec", name, "--", "python3", "-c", script, word).strip()

    def reach(self, name, url):
        return self.run_python(name, ASK, url)

    def expect(self, name, url, answer):
        """Changes take effect soon, not at once."""
        last = []

        def is_so():
            last[:] = [self.reach(name, url)]
            return last[0] == answer
        try:
            wait_until(is_so)
        except AssertionError:
            self.fail(f"{name} asked {url}: {last[0]}, not {answer}")

    def cluster_ip(self, name):
        return self.get("Service", name)["spec"]["clusterIP"]

    def fqdn(self, name):
        return f"{name}.{self.namespace}.svc.cluster.local"


class PolicyTest(NetworkTest):
    def test_neighbours_meet_where_a_service_leads(self):
        _, server = self.start(pod("client", "client"), pod("server", "server"))
        self.expect("client", f"http://{server}:8000", REFUSED)
        self.create(service("web", "server", clusterIP="None"))
        self.expect("client", f"http://{server}:8000", "server")
        self.assertEqual(self.reach("client", f"http://{server}:8001"), REFUSED)
        self.create(policy("closed", "server", policyTypes=["Ingress"]))
        self.expect("client", f"http://{server}:8000", REFUSED)
        self.delete("NetworkPolicy", "closed")
        self.expect("client", f"http://{server}:8000", "server")
        self.delete("Service", "web")
        self.expect("client", f"http://{server}:8000", REFUSED)

    def test_a_list_of_ones_own_holds(self):
        rule = {"to": [{"podSelector": {"matchLabels": {"app": "server"}}}], "ports": [{"port": 8001}]}
        _, server = self.start(policy("own", "client", policyTypes=["Egress"], egress=[rule]), pod("client", "client"),
                               pod("server", "server"))
        self.expect("client", f"http://{server}:8001", "server")
        self.assertEqual(self.reach("client", f"http://{server}:8000"), REFUSED)
        self.assertEqual(self.reach("client", "http://203.0.113.9:80"), REFUSED)
        # Labels are what policies go by.
        self.patch("Pod", "client", {"metadata": {"labels": {"app": "other"}}})
        self.expect("client", f"http://{server}:8001", REFUSED)

    def test_a_policy_holds_from_the_first_moment(self):
        [server] = self.start(pod("server", "server"), service("web", "server"), policy("closed", "client", policyTypes=["Egress"]))
        client = pod("client", "client")
        client["spec"]["containers"][0] |= {"command": ["python3", "-uc", ASK + "\nimport time\ntime.sleep(1000)",
                                                        f"http://{server}:8000"], "readinessProbe": None}
        self.start(client)
        self.wait_log("client", f"{REFUSED}\n")


class TemplateTest(NetworkTest):
    def start_sandbox(self):
        """The pod of a sandbox of a template that says nothing of networks."""
        self.create(template("tool", pod={"spec": server_pod("tool")}), pool("tools", "tool", 1))
        self.wait("SandboxWarmPool", "tools", lambda it: it.get("status", {}).get("readyReplicas") == 1, "full")
        self.patch("SandboxWarmPool", "tools", {"spec": {"replicas": 0}})
        self.create(claim("mine", "tools"))
        name = self.wait_ready("SandboxClaim", "mine")["status"]["sandbox"]["name"]
        return self.wait_ready("Pod", name)

    def test_sandboxes_of_templates_are_behind_walls_until_the_template_says_otherwise(self):
        [other] = self.start(pod("other", "other"), service("web", "other"))
        box = self.start_sandbox()
        name, address = box["metadata"]["name"], box["status"]["podIP"]
        hash_label = "agents.x-k8s.io/sandbox-template-ref-hash"
        mine = {hash_label: box["metadata"]["labels"][hash_label]}
        self.create(service("tool", "", selector=mine))
        self.expect("other", f"http://{address}:8000", REFUSED)
        self.assertEqual(self.reach(name, f"http://{other}:8000"), REFUSED)
        self.assertEqual(run_here(ASK, f"http://{address}:8000"), "tool", "the router of the engine is no neighbour")

        others = [{"podSelector": {"matchLabels": {"app": "other"}}}]
        self.patch("SandboxTemplate", "tool", {"spec": {"networkPolicy": {"ingress": [{"from": others}], "egress": [{"to": others}]}}})
        self.expect("other", f"http://{address}:8000", "tool")
        self.expect(name, f"http://{other}:8000", "other")
        self.assertEqual(self.reach(name, f"http://{other}:8001"), "other", "a rule without ports means all of them")
        self.patch("SandboxTemplate", "tool", {"spec": {"networkPolicy": {"egress": None}}})
        self.expect(name, f"http://{other}:8000", REFUSED)
        self.assertEqual(self.reach("other", f"http://{address}:8000"), "tool")
        self.assertEqual(self.get("Pod", name)["metadata"]["uid"], box["metadata"]["uid"], "it ran all the time")


class ServiceTest(NetworkTest):
    def test_a_cluster_ip_leads_to_ready_pods(self):
        self.start(pod("client", "client"), pod("server", "server"), service("web", "server"), service("empty", "nobody"))
        web, empty = self.cluster_ip("web"), self.cluster_ip("empty")
        self.expect("client", f"http://{web}", "server")
        self.assertEqual(self.reach("client", f"http://{web}:81"), REFUSED)
        self.expect("client", f"http://{empty}", REFUSED)
        self.assertEqual(run_here(ASK, f"http://{web}"), "server")
        self.assertEqual(run_here(ASK, f"http://{empty}"), REFUSED)
        slices = json.loads(self.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "json"))["items"]
        self.assertEqual([(it["targetRef"]["name"], it["conditions"]["ready"]) for it in slices[0]["endpoints"]], [("server", True)])
        # The address is no way around a policy.
        self.create(policy("closed", "server", policyTypes=["Ingress"]))
        self.expect("client", f"http://{web}", REFUSED)
        self.assertEqual(run_here(ASK, f"http://{web}"), "server")
        self.delete("Pod", "server", gracePeriodSeconds=0)
        wait_until(lambda: run_here(ASK, f"http://{web}") == REFUSED, 30, "the end of the address")

    def test_names_lead_to_services_and_pods(self):
        self.start(pod("client", "client"), pod("server", "server", hostname="one", subdomain="deep"), service("web", "server"),
                   service("deep", "server", clusterIP="None"))
        for url in ("http://web", f"http://web.{self.namespace}", f"http://{self.fqdn('web')}", "http://deep:8000",
                    f"http://one.{self.fqdn('deep')}:8000"):
            self.expect("client", url, "server")
        self.assertEqual(self.reach("client", f"http://{self.fqdn('nobody')}"), "gaierror")
        self.assertIn(f"search {self.namespace}.svc.cluster.local", self.run_in("client", "cat /etc/resolv.conf"))
        self.start(pod("own", "client", dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.53"]}))
        self.assertEqual(self.run_in("own", "cat /etc/resolv.conf"), "nameserver 192.0.2.53\n")

    def test_names_of_elsewhere_mean_what_they_mean_to_the_host(self):
        self.start(pod("client", "client"))
        for name in ("example.com", "localhost", "no-such-name.invalid"):
            # Names of the world may mean something else a moment later.
            wait_until(lambda: self.run_python("client", RESOLVE, name) == run_here(RESOLVE, name), what=f"the same answer for {name}")

    def test_a_sandbox_is_found_by_its_name(self):
        self.start(pod("client", "client"))
        self.create(sandbox("agent", service=True, pod={"spec": server_pod("agent")}))
        made = self.wait_ready("Sandbox", "agent")
        fqdn = made["status"]["serviceFQDN"]
        self.expect("client", f"http://{fqdn}:8000", "agent")
        self.assertEqual(self.reach("client", "http://agent:8000"), "agent")
        gateway = self.run_in("client", "cat /etc/resolv.conf").split()[1]
        self.assertEqual(ask_name_server(gateway, fqdn), made["status"]["podIPs"], "from the host")
        # It keeps its name when it comes back with another address.
        self.patch("Sandbox", "agent", {"spec": {"operatingMode": "Suspended"}})
        self.wait_gone("Pod", "agent")
        self.expect("client", f"http://{fqdn}:8000", "gaierror")
        self.patch("Sandbox", "agent", {"spec": {"operatingMode": "Running"}})
        self.expect("client", f"http://{fqdn}:8000", "agent")


class RestartTest(NetworkTest):
    def test_an_engine_that_was_killed_takes_up_where_it_was(self):
        _, server = self.start(pod("client", "client"), pod("server", "server"), service("web", "server"),
                               policy("closed", "client", policyTypes=["Egress"]))
        web = self.cluster_ip("web")
        self.expect("client", f"http://{web}", REFUSED)
        self.assertEqual(run_here(ASK, f"http://{web}"), "server")
        before = self.get("Pod", "client")["metadata"]["uid"]
        self.cluster.engine.end(signal.SIGKILL)
        self.assertEqual(run_here(ASK, f"http://{web}"), "server", "addresses are the kernel's business")
        self.cluster.start()
        self.assertEqual(self.wait_ready("Pod", "client")["metadata"]["uid"], before)
        self.assertEqual(self.reach("client", f"http://{server}:8000"), REFUSED)
        self.delete("NetworkPolicy", "closed")
        self.expect("client", f"http://{self.fqdn('web')}", "server")


if __name__ == "__main__":
    unittest.main()
