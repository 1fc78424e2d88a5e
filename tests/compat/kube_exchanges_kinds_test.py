"""The last part of kube_exchanges_test.py: who may ask, and the kinds with doors of their own."""
import base64
import json
import unittest

from kube_server import APPLY, JSON_PATCH, MERGE, ServedCase, config_map, wait_until

EXTENSIONS = "extensions.agents.x-k8s.io"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"


def pod(name, *containers, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": dict(spec, containers=[{"name": one, "image": "x"} for one in containers or ("main",)])}


class Access(ServedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ask(cls, "POST", f"{cls.core}/serviceaccounts",
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "alice"}})
        issued = cls.ask(cls, "POST", f"{cls.core}/serviceaccounts/alice/token",
                         {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        assert issued.status == 201, issued.text
        cls.issued = issued.json["status"]
        cls.alice = f"system:serviceaccount:{cls.ns}:alice"

    def test_tokens_nobody_knows(self):
        answer = self.ask("GET", "/api/v1/namespaces", token="nope")
        self.refused(answer, 401, "Unauthorized", "Unauthorized")
        self.assertNotIn("details", answer.json)
        self.assertIsNone(answer.headers["WWW-Authenticate"])
        self.assertEqual(self.ask("GET", "/healthz", token="nope").status, 401)

    def test_nobody_in_particular(self):
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            self.assertEqual(self.ask("GET", path, token=None).status, 200, path)
        answer = self.ask("GET", "/api", token=None)
        self.refused(answer, 403, "Forbidden", 'forbidden: User "system:anonymous" cannot get path "/api"')
        self.assertEqual(answer.json["details"], {})
        answer = self.ask("GET", self.pods, token=None)
        self.refused(answer, 403, "Forbidden", 'pods is forbidden: User "system:anonymous" cannot list resource "pods" '
                     f'in API group "" in the namespace "{self.ns}"', kind="pods")

    def test_accounts_without_a_role(self):
        token = self.issued["token"]
        where = f'in API group "" in the namespace "{self.ns}"'
        for method, path, verb, resource, name in [
                ("GET", self.pods, "list", "pods", ""), ("GET", f"{self.pods}?watch=1", "watch", "pods", ""),
                ("GET", f"{self.pods}/p", "get", "pods", "p"), ("DELETE", f"{self.pods}/p", "delete", "pods", "p"),
                ("DELETE", self.pods, "deletecollection", "pods", ""),
                ("GET", f"{self.pods}/p/log", "get", "pods/log", "p"),
                ("GET", f"{self.pods}/p/exec", "create", "pods/exec", "p")]:
            with self.subTest(method=method, path=path):
                about = f'pods "{name}"' if name else "pods"
                self.refused(self.ask(method, path, token=token), 403, "Forbidden",
                             f'{about} is forbidden: User "{self.alice}" cannot {verb} resource "{resource}" {where}',
                             kind="pods", name=name or None)
        answer = self.ask("GET", "/apis/agents.x-k8s.io/v1beta1/sandboxes", token=token)
        self.refused(answer, 403, "Forbidden", f'sandboxes.agents.x-k8s.io is forbidden: User "{self.alice}" cannot '
                     'list resource "sandboxes" in API group "agents.x-k8s.io" at the cluster scope')
        self.assertEqual(self.ask("GET", "/api", token=token).status, 200)

    def test_a_role_opens_the_door(self):
        token = self.issued["token"]
        self.make(f"{RBAC}/namespaces/{self.ns}/roles", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]})
        self.make(f"{RBAC}/namespaces/{self.ns}/rolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "alice"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": self.ns}]})
        self.assertEqual(self.ask("GET", self.config_maps, token=token).status, 200)
        self.assertEqual(self.ask("POST", self.config_maps, config_map("a"), token=token).status, 403)
        self.assertEqual(self.ask("GET", "/api/v1/namespaces/default/configmaps", token=token).status, 403)

    def test_nobody_grants_what_he_does_not_have(self):
        token, roles, bindings = self.issued["token"], f"{RBAC}/namespaces/{self.ns}/roles", f"{RBAC}/namespaces/{self.ns}/rolebindings"
        kind = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        own = {**kind, "kind": "Role", "metadata": {"name": "clerk"}, "rules": [
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"],
             "verbs": ["create", "get", "patch", "update"]}]}
        bound = {**kind, "kind": "RoleBinding", "metadata": {"name": "clerk"},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "clerk"},
                 "subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": self.ns}]}
        role = self.make(roles, own)
        self.make(bindings, bound)
        admin = {**bound, "metadata": {"name": "admin"}, "roleRef": {**bound["roleRef"], "kind": "ClusterRole", "name": "cluster-admin"}}
        for method, path, body, type in [
                ("POST", roles, {**own, "metadata": {"name": "new"}, "rules": everything}, None),
                ("PUT", f"{roles}/clerk", {**role, "rules": everything}, None),
                ("PATCH", f"{roles}/clerk", {"rules": everything}, MERGE),
                ("PATCH", f"{roles}/clerk", [{"op": "replace", "path": "/rules", "value": everything}], JSON_PATCH),
                ("PATCH", f"{roles}/clerk?fieldManager=x&force=1", {**own, "rules": everything}, APPLY),
                ("PATCH", f"{roles}/applied?fieldManager=x", {**own, "metadata": {"name": "applied"}, "rules": everything}, APPLY),
                ("POST", bindings, admin, None),
                ("PATCH", f"{bindings}/admin?fieldManager=x", admin, APPLY)]:
            with self.subTest(method=method, path=path, type=type):
                answer = self.ask(method, path, body, type=type, token=token)
                self.assertEqual((answer.status, answer.json["reason"]), (403, "Forbidden"), answer.text)
                self.assertIn("is attempting to grant RBAC permissions not currently held", answer.json["message"])
        # What gives away nothing new is his to change.
        labelled = self.ask("PATCH", f"{roles}/clerk", {"metadata": {"labels": {"a": "b"}}}, type=MERGE, token=token)
        self.assertEqual(self.got(labelled)["rules"], role["rules"])

    def give(self, name, *rules):
        """alice may do that, here."""
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}
        self.make(f"{RBAC}/namespaces/{self.ns}/roles", role)
        self.make(f"{RBAC}/namespaces/{self.ns}/rolebindings", {
            **role, "kind": "RoleBinding", "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": self.ns}]})

    def test_an_apply_that_makes_something_is_a_create(self):
        self.give("patcher", {"apiGroups": [""], "resources": ["secrets"], "verbs": ["patch"]})
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "applied"}, "stringData": {"a": "b"}}
        path, token = f"{self.core}/secrets/applied?fieldManager=x", self.issued["token"]
        self.refused(self.ask("PATCH", path, secret, type=APPLY, token=token), 403, "Forbidden",
                     f'secrets "applied" is forbidden: User "{self.alice}" cannot create resource "secrets" in API group "" '
                     f'in the namespace "{self.ns}"', kind="secrets", name="applied")
        self.got(self.ask("PATCH", path, secret, type=APPLY), 201)
        self.got(self.ask("PATCH", path, dict(secret, stringData={"a": "c"}), type=APPLY, token=token, agent="x/1"))

    def test_who_may_see_one_object_may_watch_it(self):
        self.make(f"{self.core}/endpoints", {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "one"}})
        self.give("watcher", {"apiGroups": [""], "resources": ["endpoints"], "resourceNames": ["one"], "verbs": ["list", "watch"]})
        token, path = self.issued["token"], f"{self.core}/endpoints?fieldSelector=metadata.name"
        self.assertEqual([each["metadata"]["name"] for each in self.got(self.ask("GET", f"{path}%3Done", token=token))["items"]], ["one"])
        self.assertEqual(self.ask("GET", f"{path}%3Done&watch=1&timeoutSeconds=1", token=token).status, 200)
        for other in (f"{path}%3Dtwo", f"{path}%21%3Done", f"{self.core}/endpoints"):
            self.assertEqual(self.ask("GET", other, token=token).status, 403, other)

    def test_reviews(self):
        def may(verb, resource, token=None):
            body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                    "spec": {"resourceAttributes": {"namespace": self.ns, "verb": verb, "resource": resource}}}
            made = self.make(f"{REVIEWS}/selfsubjectaccessreviews", body, **({"token": token} if token else {}))
            self.assertEqual(made["spec"], body["spec"])
            return made["status"]["allowed"]

        self.assertTrue(may("get", "pods"))
        self.assertFalse(may("get", "secrets", self.issued["token"]))
        rules = self.make(f"{REVIEWS}/selfsubjectrulesreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": self.ns}})
        self.assertEqual(rules["status"]["incomplete"], False)
        self.assertIn({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, rules["status"]["resourceRules"])
        who = self.make("/apis/authentication.k8s.io/v1/selfsubjectreviews", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, token=self.issued["token"])
        self.assertEqual(who["status"]["userInfo"]["username"], self.alice)
        self.assertIn(f"system:serviceaccounts:{self.ns}", who["status"]["userInfo"]["groups"])

    def test_issued_tokens(self):
        self.assertRegex(self.issued["expirationTimestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        payload = self.issued["token"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        self.assertEqual(claims["sub"], self.alice)
        other = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self.refused(self.ask("POST", f"{self.core}/serviceaccounts/none/token", other), 404, "NotFound",
                     'serviceaccounts "none" not found')
        head, body, signature = self.issued["token"].split(".")
        forged = ".".join((head, body, signature[:-2] + ("AA" if signature[-2:] != "AA" else "BB")))
        self.assertEqual(self.ask("GET", "/api", token=forged).status, 401)


class Events(ServedCase):
    def test_two_views_of_one_event(self):
        made = self.make(f"{self.core}/events", {
            "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "e-"},
            "involvedObject": {"kind": "Sandbox", "name": "sb1", "namespace": self.ns}, "reason": "X",
            "message": "hello", "type": "Normal", "source": {"component": "me"}, "count": 1,
            "firstTimestamp": "2026-11-15T03:00:00Z", "lastTimestamp": "2026-11-15T03:00:00Z"})
        self.assertEqual((made["eventTime"], made["reportingComponent"], made["reportingInstance"]), (None, "", ""))
        path = f"/apis/events.k8s.io/v1/namespaces/{self.ns}/events/{made['metadata']['name']}"
        view = self.got(self.ask("GET", path))
        self.assertEqual(view["apiVersion"], "events.k8s.io/v1")
        self.assertEqual((view["regarding"], view["note"]), (made["involvedObject"], "hello"))
        self.assertEqual((view["deprecatedSource"], view["deprecatedCount"]), ({"component": "me"}, 1))
        self.assertEqual(view["deprecatedFirstTimestamp"], "2026-11-15T03:00:00Z")
        more = self.got(self.ask("PATCH", f"{self.core}/events/{made['metadata']['name']}", {"count": 2}, type=MERGE))
        self.assertEqual(more["count"], 2)
        found = self.got(self.ask("GET", f"{self.core}/events?fieldSelector=involvedObject.name%3Dsb1,reason%3DX"))
        self.assertEqual(len(found["items"]), 1)

    def test_the_newer_api(self):
        made = self.make(f"/apis/events.k8s.io/v1/namespaces/{self.ns}/events", {
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new"},
            "eventTime": "2026-11-15T03:00:00.123456Z", "reportingController": "c", "reportingInstance": "i",
            "action": "Do", "reason": "Y", "type": "Warning", "note": "n",
            "regarding": {"kind": "Sandbox", "name": "s", "namespace": self.ns}})
        self.assertEqual(made["eventTime"], "2026-11-15T03:00:00.123456Z")
        old = self.got(self.ask("GET", f"{self.core}/events/new"))
        self.assertEqual((old["message"], old["reportingComponent"], old["involvedObject"]["name"]), ("n", "c", "s"))
        answer = self.ask("POST", f"/apis/events.k8s.io/v1/namespaces/{self.ns}/events", {
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "bad"}, "type": "Warning",
            "regarding": {"kind": "Sandbox", "name": "s", "namespace": self.ns}})
        self.assertEqual((answer.status, answer.json["reason"]), (422, "Invalid"))


class Pods(ServedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for body in (pod("p1", "main", "side", nodeName="n"), pod("free")):
            made = cls.ask(cls, "POST", cls.pods, body)
            assert made.status == 201, made.text

    def test_what_is_filled_in(self):
        spec = self.got(self.ask("GET", f"{self.pods}/p1"))["spec"]
        self.assertEqual((spec["restartPolicy"], spec["dnsPolicy"], spec["terminationGracePeriodSeconds"],
                          spec["schedulerName"], spec["containers"][0]["imagePullPolicy"]),
                         ("Always", "ClusterFirst", 30, "default-scheduler", "Always"))

    def test_what_is_wrong_is_said_once(self):
        body = pod("wrong")
        body["spec"].update(restartPolicy="Sometimes", dnsPolicy="Never")
        self.assertEqual([cause["field"] for cause in self.ask("POST", self.pods, body).json["details"]["causes"]],
                         ["spec.restartPolicy", "spec.dnsPolicy"])

    def test_logs_that_cannot_be(self):
        self.refused(self.ask("GET", f"{self.pods}/p1/log"), 400, "BadRequest",
                     "a container name must be specified for pod p1, choose one of: [main side]")
        self.refused(self.ask("GET", f"{self.pods}/p1/log?container=zzz"), 400, "BadRequest",
                     "container zzz is not valid for pod p1")
        self.refused(self.ask("GET", f"{self.pods}/none/log"), 404, "NotFound", 'pods "none" not found', kind="pods")
        said = "Invalid value: -1: must be greater than or equal to 0"
        self.refused(self.ask("GET", f"{self.pods}/p1/log?container=main&tailLines=-1"), 422, "Invalid",
                     f'PodLogOptions "p1" is invalid: tailLines: {said}', [("FieldValueInvalid", said, "tailLines")],
                     kind="PodLogOptions")
        said = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        query = "container=main&sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z"
        self.refused(self.ask("GET", f"{self.pods}/p1/log?{query}"), 422, "Invalid",
                     f'PodLogOptions "p1" is invalid: []: {said}', [("FieldValueForbidden", said, "[]")])

    def test_streams_that_cannot_be(self):
        for path, message in [("p1/exec?command=ls&stdout=true", "a container name must be specified for pod p1, choose "
                                                                 "one of: [main side]"),
                              ("p1/exec?container=zz&command=ls&stdout=true", "container zz is not valid for pod p1"),
                              ("p1/exec?container=main&command=ls&stdout=true", "Upgrade request required"),
                              ("p1/exec?container=main&command=ls", "Upgrade request required"),
                              ("p1/attach?container=main&stdout=true", "Upgrade request required"),
                              ("p1/portforward", "Upgrade request required")]:
            with self.subTest(path=path):
                self.refused(self.ask("POST", f"{self.pods}/{path}"), 400, "BadRequest", message)
        self.refused(self.ask("POST", f"{self.pods}/none/exec?command=ls&stdout=true"), 404, "NotFound",
                     'pods "none" not found', name="none", kind="pods")

    def test_eviction(self):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1", "namespace": self.ns},
                "deleteOptions": {"dryRun": ["All"]}}
        answer = self.got(self.ask("POST", f"{self.pods}/p1/eviction", body), 201)
        self.assertEqual(answer, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                                  "code": 201})
        self.assertNotIn("deletionTimestamp", self.got(self.ask("GET", f"{self.pods}/p1"))["metadata"])
        self.make(self.pods, pod("evicted"))
        del body["deleteOptions"]
        self.got(self.ask("POST", f"{self.pods}/evicted/eviction", dict(body, metadata={"name": "evicted"})), 201)
        self.assertEqual(self.ask("GET", f"{self.pods}/evicted").status, 404)

    def test_what_is_posted_to_a_pod_names_it(self):
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
        binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n9"}}
        for sub, body in (("eviction", eviction), ("binding", binding)):
            for metadata in ({"name": "another"}, {}):
                self.refused(self.ask("POST", f"{self.pods}/p1/{sub}", dict(body, metadata=metadata)), 400, "BadRequest",
                             f"name in URL does not match name in {body['kind']} object")
            self.refused(self.ask("POST", f"{self.pods}/p1/{sub}", dict(body, metadata={"name": "p1", "namespace": "x"})),
                         400, "BadRequest",
                         "the namespace of the provided object does not match the namespace sent on the request")
        self.assertNotIn("deletionTimestamp", self.got(self.ask("GET", f"{self.pods}/p1"))["metadata"])

    def test_binding(self):
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "free"},
                "target": {"kind": "Node", "name": "n1"}}
        self.assertEqual(self.got(self.ask("POST", f"{self.pods}/free/binding", body), 201)["status"], "Success")
        self.assertEqual(self.got(self.ask("GET", f"{self.pods}/free"))["spec"]["nodeName"], "n1")
        self.assertEqual(self.ask("POST", f"{self.pods}/free/binding", body).status, 409)

    def test_status(self):
        patch = {"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}],
                            "conditions": [{"type": "Ready", "status": "True"}]}}
        changed = self.got(self.ask("PATCH", f"{self.pods}/p1/status", patch, type=MERGE))
        self.assertEqual((changed["status"]["phase"], changed["status"]["podIP"]), ("Running", "10.1.2.3"))
        found = self.got(self.ask("GET", f"{self.pods}?fieldSelector=status.phase%3DRunning,spec.nodeName%3Dn"))
        self.assertEqual([one["metadata"]["name"] for one in found["items"]], ["p1"])


class Scale(ServedCase):
    def test_scale(self):
        self.make(self.pools, {"apiVersion": f"{EXTENSIONS}/v1beta1", "kind": "SandboxWarmPool",
                               "metadata": {"name": "wp"}, "spec": {"replicas": 2, "sandboxTemplateRef": {"name": "t"}}})
        path = f"{self.pools}/wp/scale"
        scale = self.got(self.ask("GET", path))
        self.assertEqual((scale["kind"], scale["apiVersion"], scale["spec"], scale["status"]["replicas"]),
                         ("Scale", "autoscaling/v1", {"replicas": 2}, 0))
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "wp", "namespace": self.ns},
                "spec": {"replicas": 5}}
        self.assertEqual(self.got(self.ask("PUT", path, body))["spec"], {"replicas": 5})
        self.assertEqual(self.got(self.ask("PATCH", path, {"spec": {"replicas": 4}}, type=MERGE))["spec"],
                         {"replicas": 4})
        pool = self.got(self.ask("GET", f"{self.pools}/wp"))
        self.assertEqual((pool["spec"]["replicas"], pool["metadata"]["generation"]), (4, 3))
        stale = dict(body, metadata=dict(body["metadata"], resourceVersion="1"))
        self.assertEqual(self.ask("PUT", path, stale).status, 409)
        for wrong in ("many", -4):
            answer = self.ask("PATCH", path, {"spec": {"replicas": wrong}}, type=MERGE)
            self.assertEqual((answer.status, answer.json["reason"]), (422, "Invalid"))
        for metadata in ({"name": "another"}, {}):
            self.assertEqual(self.ask("PUT", path, dict(body, metadata=metadata)).status, 400)
        self.assertEqual(self.got(self.ask("GET", path))["spec"], {"replicas": 4})
        self.assertIn("spec.replicas in body should be greater than or equal to 0", answer.json["message"])
        self.refused(self.ask("GET", f"{self.pools}/none/scale"), 404, "NotFound",
                     f'sandboxwarmpools.{EXTENSIONS} "none" not found', kind="sandboxwarmpools")
        self.plain_not_found(self.ask("GET", f"{self.sandboxes}/x/scale"))


class Namespaces(ServedCase):
    def test_a_namespace_comes_and_goes(self):
        made = self.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "term"}})
        self.assertEqual((made["metadata"]["labels"], made["spec"], made["status"]),
                         ({"kubernetes.io/metadata.name": "term"}, {"finalizers": ["kubernetes"]}, {"phase": "Active"}))
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            wait_until(lambda: self.ask("GET", f"/api/v1/namespaces/term/{path}").status == 200, what=path)
        self.make("/api/v1/namespaces/term/configmaps", config_map("inside"))
        self.got(self.ask("PATCH", "/api/v1/namespaces/term", {"metadata": {"finalizers": ["x.io/hold"]}}, type=MERGE))
        leaving = self.got(self.ask("DELETE", "/api/v1/namespaces/term"))
        self.assertEqual((leaving["kind"], leaving["status"]["phase"]), ("Namespace", "Terminating"))
        answer = self.ask("POST", "/api/v1/namespaces/term/configmaps", config_map("a"))
        self.refused(answer, 403, "Forbidden", 'configmaps "a" is forbidden: unable to create new content in namespace '
                     "term because it is being terminated",
                     [("NamespaceTerminating", "namespace term is being terminated", "metadata.namespace")],
                     name="a", kind="configmaps")
        wait_until(lambda: self.ask("GET", "/api/v1/namespaces/term/configmaps/inside").status == 404, what="emptying")
        self.got(self.ask("PATCH", "/api/v1/namespaces/term", {"metadata": {"finalizers": None}}, type=MERGE))
        wait_until(lambda: self.ask("GET", "/api/v1/namespaces/term").status == 404, what="its end")

    def test_some_stay(self):
        for name in ("default", "kube-system", "kube-public"):
            self.refused(self.ask("DELETE", f"/api/v1/namespaces/{name}"), 403, "Forbidden",
                         f'namespaces "{name}" is forbidden: this namespace may not be deleted', name=name,
                         kind="namespaces")
        self.assertEqual(self.ask("DELETE", "/api/v1/namespaces").status, 405)


class Definitions(ServedCase):
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def definition(self, **spec):
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 3}, "words": {"type": "array", "items": {"type": "string"}}}}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                   "subresources": {"status": {}}}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.io"},
                "spec": dict({"group": "example.io", "scope": "Namespaced", "versions": [version],
                              "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wi"]}}, **spec)}

    def test_a_kind_comes_and_goes(self):
        self.make(self.crds, self.definition())
        found = self.got(self.ask("GET", f"{self.crds}/widgets.example.io"))
        conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
        self.assertEqual(conditions, {"NamesAccepted": "True", "Established": "True"})
        path = f"/apis/example.io/v1/namespaces/{self.ns}/widgets"
        widget = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"junk": 1}}
        made = self.make(path, widget)
        self.assertEqual(made["spec"], {"size": 3})
        answer = self.ask("POST", path, dict(widget, metadata={"name": "x"}, spec={"size": 0}))
        said = "Invalid value: 0: spec.size in body should be greater than or equal to 1"
        self.refused(answer, 422, "Invalid", f'Widget.example.io "x" is invalid: spec.size: {said}',
                     [("FieldValueInvalid", said, "spec.size")], kind="Widget", group="example.io")
        self.assertIn("apis/example.io/v1", self.got(self.ask("GET", "/openapi/v3"))["paths"])
        self.assertEqual(self.ask("DELETE", f"{self.crds}/widgets.example.io").status, 200)
        wait_until(lambda: self.ask("GET", path).status == 404, what="the end of widgets")
        self.plain_not_found(self.ask("GET", path))

    def test_definitions_that_are_none(self):
        wrong = self.definition()
        wrong["metadata"]["name"] = "wrong.example.io"
        answer = self.ask("POST", self.crds, wrong)
        self.assertEqual((answer.status, answer.json["details"]["causes"][0]["field"]), (422, "metadata.name"))
        answer = self.ask("POST", self.crds, self.definition(versions=[]))
        self.assertEqual((answer.status, answer.json["reason"]), (422, "Invalid"))

    def test_ours_are_there(self):
        found = self.got(self.ask("GET", self.crds))
        names = [one["metadata"]["name"] for one in found["items"]]
        self.assertIn("sandboxes.agents.x-k8s.io", names)
        self.assertIn(f"sandboxwarmpools.{EXTENSIONS}", names)


if __name__ == "__main__":
    unittest.main()
