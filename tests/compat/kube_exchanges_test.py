"""What kube-apiserver answers, word for word where clients compare words: requests and their answers.

Plain HTTP, so that no client library smooths anything over. Bad input on purpose is in kube_bad_input_test.py.
"""
import json
import unittest

from kube_server import APPLY, JSON_PATCH, MERGE, STRATEGIC, ServedCase, config_map, sandbox, wait_until

GROUP = "agents.x-k8s.io"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
UNCHECKED = ("FieldValueInvalid", "Invalid value: null: some validation rules were not checked because the object "
             "was invalid; correct the existing errors to complete validation", "<nil>")
UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
UNKNOWN_FORMAT = "the body of the request was in an unknown format - accepted media types include: "


class Create(ServedCase):
    def test_the_server_fills_in_what_is_its_own(self):
        made = self.make(self.sandboxes, sandbox(
            "filled", uid="abc", creationTimestamp="2001-01-01T00:00:00Z", generation=77,
            deletionTimestamp="2001-01-01T00:00:00Z"))
        meta = made["metadata"]
        self.assertRegex(meta["uid"], UUID)
        self.assertRegex(meta["creationTimestamp"], r"^20(?!01)\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual((meta["generation"], meta["namespace"]), (1, self.ns))
        self.assertNotIn("deletionTimestamp", meta)
        self.assertEqual(made["spec"]["operatingMode"], "Running")
        self.assertEqual(made["spec"]["shutdownPolicy"], "Retain")
        self.assertEqual([(one["manager"], one["operation"]) for one in meta["managedFields"]], [("tester", "Update")])
        self.assertEqual(made, self.got(self.ask("GET", f"{self.sandboxes}/filled")))

    def test_null_is_the_default_or_nothing_and_status_is_dropped(self):
        body = sandbox("null")
        body["spec"].update(operatingMode=None, shutdownTime=None)
        body["status"] = {"podIPs": ["1.1.1.1"]}
        made = self.make(self.sandboxes, body)
        self.assertEqual(made["spec"]["operatingMode"], "Running")
        self.assertNotIn("shutdownTime", made["spec"])
        self.assertNotIn("status", made)

    def test_whole_numbers_are_whole(self):
        body = sandbox("whole")
        body["spec"]["podTemplate"]["spec"]["securityContext"] = {"runAsUser": 5.0}
        answer = self.ask("POST", self.sandboxes, body)
        self.assertEqual(answer.status, 201, answer.text)
        self.assertIn('"runAsUser":5}', answer.text)

    def test_generated_names(self):
        made = self.make(self.sandboxes, sandbox(generateName="gen-"))
        self.assertRegex(made["metadata"]["name"], r"^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$")
        long = self.make(self.sandboxes, sandbox(generateName="g" * 90 + "-"))
        self.assertRegex(long["metadata"]["name"], r"^g{58}[bcdfghjklmnpqrstvwxz2456789]{5}$")
        both = self.make(self.sandboxes, sandbox("named", generateName="gen-"))
        self.assertEqual(both["metadata"]["name"], "named")

    def test_what_is_refused(self):
        self.make(self.sandboxes, sandbox("there"))
        answer = self.ask("POST", self.sandboxes, sandbox("there"))
        self.refused(answer, 409, "AlreadyExists", f'sandboxes.{GROUP} "there" already exists',
                     name="there", group=GROUP, kind="sandboxes")
        answer = self.ask("POST", self.sandboxes, sandbox("a", namespace="other"))
        self.refused(answer, 400, "BadRequest",
                     "the namespace of the provided object does not match the namespace sent on the request")
        answer = self.ask("POST", self.sandboxes, sandbox("a", resourceVersion="5"))
        self.refused(answer, 500, "", "resourceVersion should not be set on objects to be created")
        answer = self.ask("POST", self.sandboxes.replace(self.ns, "nosuch"), sandbox("a"))
        self.refused(answer, 404, "NotFound", 'namespaces "nosuch" not found', name="nosuch", kind="namespaces")

    def test_names_are_required_and_checked(self):
        answer = self.ask("POST", self.sandboxes, sandbox())
        missing = "Required value: name or generateName is required"
        self.refused(answer, 422, "Invalid", f'Sandbox.{GROUP} "" is invalid: [metadata.name: {missing}, '
                     f"<nil>: {UNCHECKED[1]}]", [("FieldValueRequired", missing, "metadata.name"), UNCHECKED])
        answer = self.ask("POST", self.sandboxes, sandbox("Bad_Name"))
        wrong = ("Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                 "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
                 r"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
        self.refused(answer, 422, "Invalid", f'Sandbox.{GROUP} "Bad_Name" is invalid: metadata.name: {wrong}',
                     [("FieldValueInvalid", wrong, "metadata.name")], name="Bad_Name", group=GROUP, kind="Sandbox")

    def test_bodies_that_are_not_the_object(self):
        unrecognized = "the object provided is unrecognized (must be of type Sandbox): "
        for body, message in [
                ('{"metadata":', f"{unrecognized}couldn't get version/kind; json parse error: unexpected end of JSON "
                                 'input ({"metadata":)'),
                ('{"metadata":{"name":"z"}}', f"{unrecognized}Object 'Kind' is missing in "
                                              '\'{"metadata":{"name":"z"}}\' ({"metadata":{"name":"z"}})'),
                ('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"z"}}',
                 f"the API version in the data (v1) does not match the expected API version ({GROUP}/v1beta1)")]:
            with self.subTest(body=body):
                self.refused(self.ask("POST", self.sandboxes, body), 400, "BadRequest", message)

    def test_what_the_schema_refuses(self):
        def refusal(body, reason, message, field):
            answer = self.ask("POST", self.sandboxes, body)
            self.refused(answer, 422, "Invalid",
                         f'Sandbox.{GROUP} "z" is invalid: [{field}: {message}, <nil>: {UNCHECKED[1]}]',
                         [(reason, message, field), UNCHECKED], name="z", group=GROUP, kind="Sandbox")

        body = sandbox("z")
        body["spec"]["operatingMode"] = "Nope"
        refusal(body, "FieldValueNotSupported",
                'Unsupported value: "Nope": supported values: "Running", "Suspended"', "spec.operatingMode")
        body = sandbox("z")
        body["spec"] = {}
        refusal(body, "FieldValueRequired", "Required value", "spec.podTemplate")
        body = sandbox("z")
        body["spec"]["podTemplate"]["spec"]["containers"] = "x"
        path = "spec.podTemplate.spec.containers"
        refusal(body, "FieldValueTypeInvalid",
                f'Invalid value: "string": {path} in body must be of type array: "string"', path)

    def test_built_in_kinds_are_types_of_a_program(self):
        for part in ({"data": []}, {"data": {"a": 1}}, {"immutable": "yes"}, {"binaryData": {"a": "%"}}):
            answer = self.ask("POST", self.config_maps, {**config_map("typed"), **part})
            self.assertEqual((answer.status, answer.json["reason"]), (400, "BadRequest"), answer.text)
            self.assertIn('ConfigMap in version "v1" cannot be handled as a ConfigMap: ', answer.json["message"])
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "typed"}, "stringData": {"a": 1, "b": "c"}}
        self.assertEqual(self.ask("POST", f"{self.core}/secrets", secret).status, 400)

    def test_addresses_of_services(self):
        def make(name, **spec):
            return self.ask("POST", f"{self.core}/services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
                                                              "spec": {"ports": [{"port": 80}], **spec}})
        taken = self.got(make("1st"), 201)["spec"]["clusterIP"]
        for address, why in (("8.8.8.8", "the provided IP (8.8.8.8) is not in the valid range. The range of valid IPs is 10.96.0.0/12"),
                             (taken, "provided IP is already allocated")):
            message = f'Invalid value: ["{address}"]: failed to allocate IP {address}: {why}'
            self.refused(make("second", clusterIP=address), 422, "Invalid", f'Service "second" is invalid: spec.clusterIPs: {message}',
                         [("FieldValueInvalid", message, "spec.clusterIPs")])
        self.got(make("chosen", clusterIP="10.111.222.33"), 201)

    def test_dry_run_keeps_nothing(self):
        made = self.make(f"{self.sandboxes}?dryRun=All", sandbox("dry"))
        self.assertRegex(made["metadata"]["uid"], UUID)
        self.assertNotIn("resourceVersion", made["metadata"])
        self.assertEqual(self.ask("GET", f"{self.sandboxes}/dry").status, 404)
        # Nor what says "dry run" in words that nobody knows.
        for value in ("foo", ""):
            self.invalid(self.ask("POST", f"{self.sandboxes}?dryRun={value}", sandbox("dry")), "CreateOptions", "dryRun",
                         "FieldValueNotSupported", f'Unsupported value: ["{value}"]: supported values: "All"')
        self.assertEqual(self.ask("GET", f"{self.sandboxes}/dry").status, 404)

    def test_unknown_and_duplicate_fields(self):
        body = json.dumps(sandbox("fv", bogus=1)).replace('"image": "x"', '"image": "x", "image": "y"')
        body = body.replace('"podTemplate"', '"foo": 1, "podTemplate"')
        said = ['duplicate field "spec.podTemplate.spec.containers[0].image"', 'unknown field "metadata.bogus"',
                'unknown field "spec.foo"']
        for mode in ("", "Warn"):
            answer = self.ask("POST", f"{self.sandboxes}?dryRun=All&fieldValidation={mode}", body)
            self.assertNotIn("foo", self.got(answer, 201)["spec"])
            self.assertEqual(answer.headers.get_all("Warning"), ["299 - " + json.dumps(one) for one in said])
        ignored = self.ask("POST", f"{self.sandboxes}?dryRun=All&fieldValidation=Ignore", body)
        self.assertIsNone(ignored.headers.get_all("Warning"))
        strict = self.ask("POST", f"{self.sandboxes}?dryRun=All&fieldValidation=Strict", body)
        self.refused(strict, 400, "BadRequest", 'Sandbox in version "v1beta1" cannot be handled as a Sandbox: strict '
                     "decoding error: " + ", ".join(said))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
               "spec": {"foo": 1, "containers": [{"name": "main", "image": "x"}]}}
        strict = self.ask("POST", f"{self.pods}?dryRun=All&fieldValidation=Strict", pod)
        self.refused(strict, 400, "BadRequest", 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
                     'unknown field "spec.foo"')
        self.invalid(self.ask("POST", f"{self.sandboxes}?fieldValidation=Bogus", body), "CreateOptions",
                     "fieldValidation", "FieldValueNotSupported",
                     'Unsupported value: "Bogus": supported values: "", "Ignore", "Strict", "Warn"')

    def test_managers_have_names_that_can_be_read(self):
        answer = self.ask("POST", f"{self.sandboxes}?fieldManager=a%07b", sandbox("managed"))
        self.assertEqual((answer.status, answer.json["details"]["causes"][0]["field"]), (422, "fieldManager"))

    def test_finalizers_without_a_domain_are_warned_of(self):
        answer = self.ask("POST", self.sandboxes, sandbox("plainfin", finalizers=["nodomain", "x.io/f"]))
        self.assertEqual(answer.headers.get_all("Warning"), [
            '299 - "metadata.finalizers: \\"nodomain\\": prefer a domain-qualified finalizer name to avoid accidental '
            'conflicts with other finalizer writers"'])

    def test_owners(self):
        owner = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Sandbox", "name": "o", "uid": "1", "controller": True}
        answer = self.ask("POST", self.config_maps, config_map("two", ownerReferences=[owner, dict(owner, uid="2")]))
        self.assertEqual((answer.status, answer.json["details"]["causes"][0]["field"]),
                         (422, "metadata.ownerReferences"))
        self.assertIn("Only one reference can have Controller set to true", answer.json["message"])
        for path, thing in ((self.config_maps, config_map), (self.sandboxes, sandbox)):
            answer = self.ask("POST", path, thing("named-twice", ownerReferences=[owner, owner], finalizers=["x.io/f", "x.io/f"]))
            self.assertEqual(self.got(answer, 201)["metadata"]["ownerReferences"], [owner])
            self.assertIn("duplicate UID(s) observed: 1", answer.headers["Warning"])
            missing = self.ask("POST", path, thing("nobodys", ownerReferences=[dict(owner, uid="")]))
            self.assertEqual(missing.json["details"]["causes"][0], {
                "reason": "FieldValueInvalid", "message": 'Invalid value: "": must not be empty',
                "field": "metadata.ownerReferences.uid"})

    def test_kinds_of_their_own(self):
        secret = self.make(f"{self.core}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                                                    "stringData": {"a": "b"}})
        self.assertEqual((secret["data"], secret["type"]), ({"a": "Yg=="}, "Opaque"))
        self.assertNotIn("stringData", secret)
        claim = self.make(f"{self.core}/persistentvolumeclaims", {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
        self.assertEqual((claim["status"], claim["spec"]["volumeMode"]), ({"phase": "Pending"}, "Filesystem"))
        headless = self.make(f"{self.core}/services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "h"},
                                                       "spec": {"clusterIP": "None", "selector": {"a": "b"}}})
        self.assertEqual((headless["spec"]["type"], headless["spec"]["clusterIPs"]), ("ClusterIP", ["None"]))
        answer = self.ask("POST", f"{self.core}/services", {"apiVersion": "v1", "kind": "Service",
                                                            "metadata": {"name": "n"}, "spec": {"selector": {"a": "b"}}})
        self.refused(answer, 422, "Invalid", 'Service "n" is invalid: spec.ports: Required value',
                     [("FieldValueRequired", "Required value", "spec.ports")], kind="Service")
        lease = self.make(f"/apis/coordination.k8s.io/v1/namespaces/{self.ns}/leases", {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
            "spec": {"holderIdentity": "me", "renewTime": "2026-11-15T03:00:00.000000Z"}})
        self.assertEqual(lease["spec"]["renewTime"], "2026-11-15T03:00:00.000000Z")


class Update(ServedCase):
    def setUp(self):
        self.name = self._testMethodName.replace("_", "-")[:40].strip("-")
        self.path = f"{self.sandboxes}/{self.name}"
        self.made = self.make(self.sandboxes, sandbox(self.name))

    def test_revisions_are_compared(self):
        message = "Invalid value: 0: must be specified for an update"
        for unsaid in ({}, {"resourceVersion": "0"}):
            answer = self.ask("PUT", self.path, sandbox(self.name, image="y", **unsaid))
            self.refused(answer, 422, "Invalid", f'sandboxes.{GROUP} "{self.name}" is invalid: metadata.resourceVersion: '
                         f"{message}", [("FieldValueInvalid", message, "metadata.resourceVersion")],
                         name=self.name, group=GROUP, kind="sandboxes")
        answer = self.ask("PUT", self.path, sandbox(self.name, image="y", resourceVersion="1"))
        self.refused(answer, 409, "Conflict", f'Operation cannot be fulfilled on sandboxes.{GROUP} "{self.name}": '
                     f"{MODIFIED}", name=self.name, group=GROUP, kind="sandboxes")

    def test_the_name_and_uid_stay(self):
        answer = self.ask("PUT", self.path, sandbox("other"))
        self.refused(answer, 400, "BadRequest",
                     f"the name of the object (other) does not match the name on the URL ({self.name})")
        answer = self.ask("PUT", self.path, sandbox(self.name, uid="11111111-2222-3333-4444-555555555555"))
        self.assertEqual((answer.status, answer.json["reason"]), (409, "Conflict"))
        self.assertIn("Precondition failed: UID in precondition: 11111111-2222-3333-4444-555555555555, UID in object "
                      f"meta: {self.made['metadata']['uid']}", answer.json["message"])

    def test_what_is_not_there_is_not_made(self):
        answer = self.ask("PUT", f"{self.sandboxes}/none", sandbox("none"))
        self.refused(answer, 404, "NotFound", f'sandboxes.{GROUP} "none" not found', name="none", group=GROUP,
                     kind="sandboxes")
        answer = self.ask("PUT", f"{self.config_maps}/none", config_map("none"))
        self.refused(answer, 404, "NotFound", 'configmaps "none" not found', name="none", kind="configmaps")

    def test_generation_follows_the_spec_only(self):
        body = sandbox(self.name, image="y", resourceVersion=self.made["metadata"]["resourceVersion"])
        body["status"] = {"podIPs": ["1.2.3.4"]}
        changed = self.got(self.ask("PUT", self.path, body))
        self.assertEqual(changed["metadata"]["generation"], 2)
        self.assertNotIn("status", changed)
        again = self.got(self.ask("PUT", self.path, sandbox(
            self.name, image="y", resourceVersion=changed["metadata"]["resourceVersion"])))
        self.assertEqual(again["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"])
        labelled = self.got(self.ask("PUT", self.path, sandbox(
            self.name, image="y", labels={"l": "1"}, resourceVersion=changed["metadata"]["resourceVersion"])))
        self.assertEqual(labelled["metadata"]["generation"], 2)
        self.assertGreater(int(labelled["metadata"]["resourceVersion"]), int(changed["metadata"]["resourceVersion"]))

    def test_status_has_its_own_door(self):
        body = sandbox(self.name, image="zzz", labels={"l": "1"},
                       resourceVersion=self.made["metadata"]["resourceVersion"])
        body["status"] = {"podIPs": ["1.2.3.4"]}
        changed = self.got(self.ask("PUT", f"{self.path}/status", body))
        self.assertEqual(changed["status"]["podIPs"], ["1.2.3.4"])
        self.assertEqual(changed["spec"], self.made["spec"])
        self.assertNotIn("labels", changed["metadata"])
        self.assertEqual(changed["metadata"]["generation"], 1)
        self.assertIn(("tester", "status"), [(one["manager"], one.get("subresource"))
                                             for one in changed["metadata"]["managedFields"]])

    def test_most_built_in_kinds_take_the_last_word(self):
        self.make(self.config_maps, config_map(self.name, {"a": "1"}))
        changed = self.got(self.ask("PUT", f"{self.config_maps}/{self.name}", config_map(self.name, {"a": "2"})))
        self.assertEqual(changed["data"], {"a": "2"})

    def test_finalizers_can_be_added(self):
        held = self.got(self.ask("PATCH", self.path, {"metadata": {"finalizers": ["x.io/f"]}}, type=MERGE))
        self.assertEqual(held["metadata"]["finalizers"], ["x.io/f"])


class Patch(ServedCase):
    def setUp(self):
        self.name = self._testMethodName.replace("_", "-")[:40].strip("-")
        self.path = f"{self.sandboxes}/{self.name}"
        self.make(self.sandboxes, sandbox(self.name, labels={"x": "1", "y": "2"}))

    def test_merge(self):
        changed = self.got(self.ask("PATCH", self.path, {"metadata": {"labels": {"m": "1", "x": None}}}, type=MERGE))
        self.assertEqual(changed["metadata"]["labels"], {"m": "1", "y": "2"})
        self.assertEqual(changed["metadata"]["generation"], 1)

    def test_json_patch(self):
        changed = self.got(self.ask("PATCH", self.path, [
            {"op": "test", "path": "/metadata/labels/x", "value": "1"},
            {"op": "add", "path": "/metadata/labels/n", "value": "3"}], type=JSON_PATCH))
        self.assertEqual(changed["metadata"]["labels"]["n"], "3")
        for patch in ([{"op": "test", "path": "/metadata/labels/x", "value": "77"}],
                      [{"op": "remove", "path": "/metadata/labels/nope"}]):
            answer = self.ask("PATCH", self.path, patch, type=JSON_PATCH)
            self.refused(answer, 422, "Invalid", "the server rejected our request due to an error in our request")
            self.assertEqual(answer.json["details"], {})
        answer = self.ask("PATCH", self.path, {"a": 1}, type=JSON_PATCH)
        self.refused(answer, 400, "BadRequest",
                     "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp")

    def test_what_is_refused(self):
        types = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        for type in ("application/json", STRATEGIC, "text/plain"):
            self.refused(self.ask("PATCH", self.path, {}, type=type), 415, "UnsupportedMediaType",
                         UNKNOWN_FORMAT + types)
        answer = self.ask("PATCH", f"{self.sandboxes}/none", {}, type=MERGE)
        self.refused(answer, 404, "NotFound", f'sandboxes.{GROUP} "none" not found')
        answer = self.ask("PATCH", self.path, {"metadata": {"name": "zzz"}}, type=MERGE)
        self.refused(answer, 400, "BadRequest",
                     f"the name of the object (zzz) does not match the name on the URL ({self.name})")
        answer = self.ask("PATCH", self.path, {"metadata": {"resourceVersion": "3", "labels": {"m": "2"}}}, type=MERGE)
        self.refused(answer, 409, "Conflict", f'Operation cannot be fulfilled on sandboxes.{GROUP} "{self.name}": '
                     f"{MODIFIED}")

    def test_it_stays_what_it_is(self):
        self.make(self.config_maps, config_map(self.name, {"a": "1"}))
        for path in (self.path, f"{self.config_maps}/{self.name}"):
            before = self.got(self.ask("GET", path))
            for field, patch in (("kind", {"kind": "Secret"}), ("apiVersion", {"apiVersion": "v9"}),
                                 ("metadata.uid", {"metadata": {"uid": "other"}}),
                                 ("metadata.deletionTimestamp", {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})):
                answer = self.ask("PATCH", path, patch, type=MERGE)
                self.assertEqual((answer.status, answer.json["details"]["causes"][0]["field"]), (422, field), answer.text)
            self.refused(self.ask("PATCH", path, {"metadata": None}, type=MERGE), 400, "BadRequest",
                         f"the name of the object ({self.name} based on URL) was undeterminable: name must be provided")
            self.refused(self.ask("PATCH", path, "null", type=MERGE), 400, "BadRequest", "Invalid JSON Patch")
            self.assertEqual(self.got(self.ask("GET", path)), before)
        # Of built-in kinds the path says it, too.
        nameless = self.ask("PATCH", path, [{"op": "remove", "path": "/kind"}], type=JSON_PATCH)
        self.assertEqual(self.got(nameless), before)

    def test_strict_patches_say_what_they_were(self):
        answer = self.ask("PATCH", f"{self.path}?fieldValidation=Strict", {"spec": {"foo": 1}}, type=MERGE)
        self.assertEqual((answer.status, answer.json["details"]["causes"][0]["field"]), (422, "patch"))
        self.assertIn('strict decoding error: unknown field "spec.foo"', answer.json["message"])

    def test_status_only_through_its_door(self):
        both = {"metadata": {"labels": {"s": "1"}}, "spec": {"operatingMode": "Suspended"},
                "status": {"podIPs": ["9.9.9.9"]}}
        changed = self.got(self.ask("PATCH", f"{self.path}/status", both, type=MERGE))
        self.assertEqual((changed["status"]["podIPs"], changed["spec"]["operatingMode"]), (["9.9.9.9"], "Running"))
        self.assertNotIn("s", changed["metadata"]["labels"])
        main = self.got(self.ask("PATCH", self.path, {"status": {"podIPs": ["8.8.8.8"]}}, type=MERGE))
        self.assertEqual(main["status"]["podIPs"], ["9.9.9.9"])

    def test_rules_of_the_kind(self):
        template = {"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                        "resources": {"requests": {"storage": "1Gi"}}}}
        answer = self.ask("PATCH", self.path, {"spec": {"volumeClaimTemplates": [template]}}, type=MERGE)
        said = "Invalid value: volumeClaimTemplates is immutable"
        self.refused(answer, 422, "Invalid", f'Sandbox.{GROUP} "{self.name}" is invalid: spec: {said}',
                     [("FieldValueInvalid", said, "spec")])

    def test_strategic_patches_know_the_lists_of_pods(self):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.name, "labels": {"app": "p"}},
               "spec": {"containers": [{"name": "main", "image": "x"}, {"name": "side", "image": "z"}]}}
        self.make(self.pods, pod)
        patch = {"spec": {"containers": [{"name": "main", "image": "x9"}]}}
        changed = self.got(self.ask("PATCH", f"{self.pods}/{self.name}", patch, type=STRATEGIC))
        self.assertEqual([one["image"] for one in changed["spec"]["containers"]], ["x9", "z"])
        replaced = self.got(self.ask("PATCH", f"{self.pods}/{self.name}",
                                     {"metadata": {"labels": {"$patch": "replace", "only": "1"}}}, type=STRATEGIC))
        self.assertEqual(replaced["metadata"]["labels"], {"only": "1"})
        answer = self.ask("PATCH", f"{self.pods}/{self.name}", patch, type=MERGE)
        said = "Forbidden: pod updates may not add or remove containers"
        self.refused(answer, 422, "Invalid", f'Pod "{self.name}" is invalid: spec.containers: {said}',
                     [("FieldValueForbidden", said, "spec.containers")], name=self.name, kind="Pod")


class Apply(ServedCase):
    def apply(self, name, body, query="fieldManager=m1", sub=""):
        return self.ask("PATCH", f"{self.sandboxes}/{name}{sub}?{query}", body, type=APPLY)

    def test_ownership(self):
        body = sandbox("a", labels={"k": "v"})
        made = self.got(self.apply("a", body), 201)
        self.assertEqual(made, self.got(self.apply("a", body)))
        fields = made["metadata"]["managedFields"][0]
        self.assertEqual((fields["manager"], fields["operation"], fields["fieldsType"]), ("m1", "Apply", "FieldsV1"))
        self.assertEqual(fields["fieldsV1"], {
            "f:metadata": {"f:labels": {"f:k": {}}},
            "f:spec": {"f:podTemplate": {"f:spec": {"f:containers": {
                'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}}}}}})
        field = '.spec.podTemplate.spec.containers[name="main"].image'
        other = sandbox("a", image="y", labels={"k": "v"})
        self.refused(self.apply("a", other, "fieldManager=m2"), 409, "Conflict",
                     f'Apply failed with 1 conflict: conflict with "m1": {field}',
                     [("FieldManagerConflict", 'conflict with "m1"', field)])
        taken = self.got(self.apply("a", other, "fieldManager=m2&force=true"))
        self.assertEqual(taken["spec"]["podTemplate"]["spec"]["containers"][0]["image"], "y")
        less = sandbox("a")
        del less["spec"]["podTemplate"]["spec"]["containers"][0]["image"]
        left = self.got(self.apply("a", less))
        self.assertEqual((left["metadata"]["labels"], left["spec"]["podTemplate"]["spec"]["containers"]),
                         ({"k": "v"}, [{"name": "main", "image": "y"}]))
        gone = sandbox("a", image="y")
        self.assertNotIn("labels", self.got(self.apply("a", gone, "fieldManager=m2"))["metadata"])

    def test_what_nobody_applies_any_more_goes(self):
        self.got(self.apply("b", sandbox("b", labels={"k": "v"})), 201)
        self.assertNotIn("labels", self.got(self.apply("b", sandbox("b")))["metadata"])

    def test_status_has_its_own_entry(self):
        self.got(self.apply("c", sandbox("c")), 201)
        body = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Sandbox", "metadata": {"name": "c"},
                "status": {"podIPs": ["1.1.1.1"]}}
        changed = self.got(self.apply("c", body, "fieldManager=ctl&force=true", "/status"))
        self.assertEqual(changed["status"]["podIPs"], ["1.1.1.1"])
        self.assertIn(("ctl", "status"), [(one["manager"], one.get("subresource"))
                                          for one in changed["metadata"]["managedFields"]])

    def test_what_is_refused(self):
        self.got(self.apply("d", sandbox("d")), 201)
        self.invalid(self.ask("PATCH", f"{self.sandboxes}/d", sandbox("d"), type=APPLY), "PatchOptions",
                     "fieldManager", "FieldValueRequired", "Required value: is required for apply patch")
        self.refused(self.apply("d", sandbox("d", managedFields=[{"manager": "z"}])), 400, "BadRequest",
                     "metadata.managedFields must be nil")
        self.refused(self.apply("d", {"kind": "Sandbox", "metadata": {"name": "d"}}), 400, "BadRequest",
                     "invalid object type: /, Kind=Sandbox")
        nameless = {**sandbox("x"), "metadata": {}}
        self.refused(self.apply("new", nameless), 400, "BadRequest",
                     "the name of the object (new based on URL) was undeterminable: name must be provided")
        self.refused(self.apply("new", sandbox("new", namespace="other")), 400, "BadRequest",
                     "the namespace of the provided object does not match the namespace sent on the request")
        typed = f"{GROUP}/v1beta1, Kind=Sandbox"
        body = sandbox("d")
        body["spec"] = {"foo": 1}
        self.refused(self.apply("d", body), 500, "", f"failed to create typed patch object (/d; {typed}): .spec.foo: "
                     "field not declared in schema")
        body = sandbox("d")
        body["spec"]["podTemplate"]["spec"]["containers"].append({"name": "main", "image": "z"})
        self.refused(self.apply("d2", dict(body, metadata={"name": "d2"})), 500, "",
                     f"failed to create typed patch object (/d2; {typed}): .spec.podTemplate.spec.containers: "
                     'duplicate entries for key [name="main"]')

    def test_yaml_is_understood(self):
        text = (f"apiVersion: {GROUP}/v1beta1\nkind: Sandbox\nmetadata:\n  name: e\nspec:\n  podTemplate:\n    spec:\n"
                "      containers:\n      - name: main\n        image: from-yaml\n")
        made = self.got(self.apply("e", text), 201)
        self.assertEqual(made["spec"]["podTemplate"]["spec"]["containers"][0]["image"], "from-yaml")


class Delete(ServedCase):
    def test_gone_at_once(self):
        made = self.make(self.sandboxes, sandbox("a"))
        answer = self.got(self.ask("DELETE", f"{self.sandboxes}/a"))
        self.assertEqual(answer, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                                  "details": {"name": "a", "group": GROUP, "kind": "sandboxes",
                                              "uid": made["metadata"]["uid"]}})
        self.refused(self.ask("DELETE", f"{self.sandboxes}/a"), 404, "NotFound", f'sandboxes.{GROUP} "a" not found',
                     name="a", group=GROUP, kind="sandboxes")

    def test_preconditions(self):
        made = self.make(self.sandboxes, sandbox("b"))["metadata"]
        uid = "11111111-1111-1111-1111-111111111111"
        answer = self.ask("DELETE", f"{self.sandboxes}/b", {"preconditions": {"uid": uid}})
        start = f'Operation cannot be fulfilled on Sandbox.{GROUP} "b": the '
        self.refused(answer, 409, "Conflict", f"{start}UID in the precondition ({uid}) does not match the UID in record "
                     f"({made['uid']}). The object might have been deleted and then recreated", kind="Sandbox")
        answer = self.ask("DELETE", f"{self.sandboxes}/b", {"kind": "DeleteOptions", "apiVersion": "v1",
                                                            "preconditions": {"resourceVersion": "1"}})
        self.refused(answer, 409, "Conflict", f"{start}ResourceVersion in the precondition (1) does not match the "
                     f"ResourceVersion in record ({made['resourceVersion']}). The object might have been modified")
        dry = self.got(self.ask("DELETE", f"{self.sandboxes}/b?dryRun=All"))
        self.assertEqual(dry["status"], "Success")
        self.assertEqual(self.ask("GET", f"{self.sandboxes}/b").status, 200)

    def test_options_that_make_no_sense(self):
        self.make(self.sandboxes, sandbox("c"))
        self.invalid(self.ask("DELETE", f"{self.sandboxes}/c?propagationPolicy=Foo"), "DeleteOptions",
                     "propagationPolicy", "FieldValueNotSupported",
                     'Unsupported value: "Foo": supported values: "Foreground", "Background", "Orphan", "nil"')
        self.invalid(self.ask("DELETE", f"{self.sandboxes}/c",
                              {"orphanDependents": True, "propagationPolicy": "Background"}), "DeleteOptions",
                     "propagationPolicy", "FieldValueInvalid",
                     'Invalid value: "Background": orphanDependents and deletionPropagation cannot be both set')

    def test_finalizers_hold_it(self):
        self.make(self.sandboxes, sandbox("d", finalizers=["x.io/f"]))
        leaving = self.got(self.ask("DELETE", f"{self.sandboxes}/d"))
        self.assertEqual((leaving["kind"], leaving["metadata"]["deletionGracePeriodSeconds"],
                          leaving["metadata"]["generation"]), ("Sandbox", 0, 2))
        self.assertEqual(leaving, self.got(self.ask("DELETE", f"{self.sandboxes}/d")))
        answer = self.ask("PATCH", f"{self.sandboxes}/d", {"metadata": {"finalizers": ["x.io/f", "y.io/g"]}}, type=MERGE)
        self.refused(answer, 422, "Invalid", f'Sandbox.{GROUP} "d" is invalid: metadata.finalizers: Forbidden: no new '
                     'finalizers can be added if the object is being deleted, found new finalizers '
                     '[]string{"y.io/g"}')
        last = self.got(self.ask("PATCH", f"{self.sandboxes}/d", {"metadata": {"finalizers": None}}, type=MERGE))
        self.assertEqual(last["metadata"]["resourceVersion"], leaving["metadata"]["resourceVersion"])
        self.assertEqual(self.ask("GET", f"{self.sandboxes}/d").status, 404)

    def test_dependents(self):
        for policy, stays in (("Foreground", False), ("Background", False), ("Orphan", True)):
            with self.subTest(policy=policy):
                name = policy.lower()
                owner = self.make(self.sandboxes, sandbox(name))
                reference = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Sandbox", "name": name,
                             "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}
                self.make(self.config_maps, config_map(name, ownerReferences=[reference]))
                answer = self.got(self.ask("DELETE", f"{self.sandboxes}/{name}", {"propagationPolicy": policy}))
                if policy != "Background":
                    self.assertEqual(answer["metadata"]["finalizers"],
                                     ["foregroundDeletion" if policy == "Foreground" else "orphan"])
                wait_until(lambda: self.ask("GET", f"{self.sandboxes}/{name}").status == 404, what="the owner's end")
                if stays:
                    kept = self.got(self.ask("GET", f"{self.config_maps}/{name}"))
                    self.assertNotIn("ownerReferences", kept["metadata"])
                else:
                    wait_until(lambda: self.ask("GET", f"{self.config_maps}/{name}").status == 404, what="its end")

    def test_collections(self):
        for name in ("e1", "e2"):
            self.make(self.sandboxes, sandbox(name, labels={"dc": "1"}))
            self.make(self.sandboxes, sandbox(f"a-{name}", labels={"page": "1"}))
        page = self.got(self.ask("DELETE", f"{self.sandboxes}?labelSelector=page%3D1&limit=1"))
        self.assertEqual([one["metadata"]["name"] for one in page["items"]], ["a-e1"])
        left = self.got(self.ask("GET", f"{self.sandboxes}?labelSelector=page%3D1"))
        self.assertEqual([one["metadata"]["name"] for one in left["items"]], ["a-e2"])
        none = self.got(self.ask("DELETE", f"{self.sandboxes}?labelSelector=nope%3Dnope"))
        self.assertEqual((none["kind"], none["items"]), ("SandboxList", []))
        some = self.got(self.ask("DELETE", f"{self.sandboxes}?labelSelector=dc%3D1"))
        self.assertEqual([one["metadata"]["name"] for one in some["items"]], ["e1", "e2"])
        self.assertEqual(self.got(self.ask("GET", f"{self.sandboxes}?labelSelector=dc%3D1"))["items"], [])

    def test_pods_are_given_time(self):
        self.make(self.pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                              "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]}})
        leaving = self.got(self.ask("DELETE", f"{self.pods}/p"))
        self.assertEqual((leaving["kind"], leaving["metadata"]["deletionGracePeriodSeconds"]), ("Pod", 30))
        now = self.got(self.ask("DELETE", f"{self.pods}/p", {"gracePeriodSeconds": 0}))
        self.assertEqual((now["kind"], now["metadata"]["name"]), ("Pod", "p"))
        self.refused(self.ask("GET", f"{self.pods}/p"), 404, "NotFound", 'pods "p" not found', name="p", kind="pods")


if __name__ == "__main__":
    unittest.main()
