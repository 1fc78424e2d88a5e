"""The other half of kube_exchanges_test.py: reads, watches, forms, discovery, and the kinds with doors of their own."""
import json
import unittest

from kube_server import MERGE, ServedCase, config_map, sandbox

GROUP = "agents.x-k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def names(items):
    return [one["metadata"]["name"] for one in items]


class List(ServedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, labels in (("a", {"l": "1"}), ("b", {"l": "2"}), ("c", {"l": "1"})):
            made = cls.ask(cls, "POST", cls.sandboxes, sandbox(name, labels=labels))
            assert made.status == 201, made.text

    def test_the_list(self):
        found = self.got(self.ask("GET", self.sandboxes))
        self.assertEqual((found["kind"], found["apiVersion"]), ("SandboxList", f"{GROUP}/v1beta1"))
        self.assertEqual((names(found["items"]), found["metadata"]["continue"]), (["a", "b", "c"], ""))
        self.assertEqual(found["items"][0]["kind"], "Sandbox")
        pods = self.got(self.ask("GET", "/api/v1/namespaces/nosuch/pods"))
        self.assertEqual((pods["kind"], pods["items"]), ("PodList", []))
        self.assertNotIn("continue", pods["metadata"])

    def test_pages(self):
        first = self.got(self.ask("GET", f"{self.sandboxes}?limit=1"))
        self.assertEqual((names(first["items"]), first["metadata"]["remainingItemCount"]), (["a"], 2))
        rest = self.got(self.ask("GET", f"{self.sandboxes}?limit=5&continue={first['metadata']['continue']}"))
        self.assertEqual(names(rest["items"]), ["b", "c"])
        self.assertEqual(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"])
        self.refused(self.ask("GET", f"{self.sandboxes}?resourceVersion=1&continue={first['metadata']['continue']}"), 400,
                     "BadRequest", "specifying resource version is not allowed when using continue")
        selected = self.got(self.ask("GET", f"{self.sandboxes}?limit=1&labelSelector=l%3D1"))
        self.assertNotIn("remainingItemCount", selected["metadata"])
        again = self.got(self.ask("GET", f"{self.sandboxes}?labelSelector=l%3D1&limit=1&continue="
                                         f"{selected['metadata']['continue']}"))
        self.assertEqual((names(selected["items"]), names(again["items"])), (["a"], ["c"]))

    def test_selectors(self):
        for query, found in [
                ("labelSelector=l%3D1", ["a", "c"]), ("labelSelector=l%21%3D1", ["b"]), ("labelSelector=l", ["a", "b", "c"]),
                ("labelSelector=%21l", []), ("labelSelector=l%20in%20(1,3)", ["a", "c"]),
                ("labelSelector=l%20notin%20(1)", ["b"]), ("fieldSelector=metadata.name%3Da", ["a"]),
                ("fieldSelector=metadata.name%21%3Da", ["b", "c"]), (f"fieldSelector=metadata.namespace%3D{self.ns}",
                                                                      ["a", "b", "c"])]:
            with self.subTest(query=query):
                self.assertEqual(names(self.got(self.ask("GET", f"{self.sandboxes}?{query}"))["items"]), found)

    def test_selectors_that_are_none(self):
        for path, message in [
                (f"{self.sandboxes}?fieldSelector=spec.foo%3Dx", "field label not supported: spec.foo"),
                (f"{self.pods}?fieldSelector=spec.foo%3Dx", "field label not supported: spec.foo"),
                (f"{self.pods}?fieldSelector=spec.foo", "invalid selector: 'spec.foo'; can't understand 'spec.foo'"),
                (f"{self.pods}?labelSelector=a%3D%3D%3Db", "unable to parse requirement: found '=', expected: "
                                                           "identifier")]:
            with self.subTest(path=path):
                self.refused(self.ask("GET", path), 400, "BadRequest", message)

    def test_revisions(self):
        forbidden = "FieldValueForbidden"
        for query, field, message in [
                ("resourceVersionMatch=Exact", "resourceVersionMatch",
                 "resourceVersionMatch is forbidden unless resourceVersion is provided"),
                ("resourceVersion=0&resourceVersionMatch=Exact", "resourceVersionMatch",
                 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
                ("sendInitialEvents=true", "sendInitialEvents", "sendInitialEvents is forbidden for list")]:
            with self.subTest(query=query):
                self.invalid(self.ask("GET", f"{self.sandboxes}?{query}"), "ListOptions", field, forbidden,
                             f"Forbidden: {message}")
        self.refused(self.ask("GET", f"{self.sandboxes}?resourceVersion=abc"), 400, "BadRequest",
                     'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing '
                     '"abc": invalid syntax')
        for query in ("resourceVersion=0", "resourceVersion=1", "resourceVersion=1&resourceVersionMatch=NotOlderThan"):
            self.assertEqual(names(self.got(self.ask("GET", f"{self.sandboxes}?{query}"))["items"]), ["a", "b", "c"])

    def test_an_older_state(self):
        path = self.config_maps
        first = self.make(path, config_map("old-1"))["metadata"]["resourceVersion"]
        self.make(path, config_map("old-2"))
        then = self.got(self.ask("GET", f"{path}?resourceVersion={first}&resourceVersionMatch=Exact"))
        self.assertIn("old-1", names(then["items"]))
        self.assertNotIn("old-2", names(then["items"]))

    def test_a_revision_that_is_still_to_come(self):
        answer = self.ask("GET", f"{self.sandboxes}?resourceVersion=99999999")
        self.assertRegex(answer.json["message"], r"^Timeout: Too large resource version: 99999999, current: \d+$")
        self.refused(answer, 504, "Timeout", answer.json["message"],
                     [("ResourceVersionTooLarge", "Too large resource version", None)], retryAfterSeconds=1)
        self.assertEqual(answer.headers["Retry-After"], "1")

    def test_what_is_not_there(self):
        self.refused(self.ask("GET", f"{self.sandboxes}/none"), 404, "NotFound", f'sandboxes.{GROUP} "none" not found',
                     name="none", group=GROUP, kind="sandboxes")
        self.refused(self.ask("GET", f"{self.core}/foos"), 404, "NotFound",
                     "the server could not find the requested resource")
        for path in ("/nope", "/apis/foo.io/v1/namespaces/default/foos", self.sandboxes.replace("sandboxes", "foos"),
                     "/apis/foo.io", f"/apis/{GROUP}/v9", "/openapi/v2"):
            with self.subTest(path=path):
                self.plain_not_found(self.ask("GET", path))

    def test_methods_that_are_not_served(self):
        message = "the server does not allow this method on the requested resource"
        for method, path, body in [("PUT", self.pods, {}), ("POST", "/api/v1/pods", {}), ("PATCH", self.pods, {}),
                                   ("DELETE", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None)]:
            with self.subTest(method=method, path=path):
                self.refused(self.ask(method, path, body), 405, "MethodNotAllowed", message)
        self.plain_not_found(self.ask("POST", f"/apis/{GROUP}/v1beta1/sandboxes", sandbox("q", namespace="default")))

    def test_a_name_in_the_path_of_a_create_is_taken(self):
        made = self.got(self.ask("POST", f"{self.sandboxes}/posted", sandbox("posted")), 201)
        self.addCleanup(self.ask, "DELETE", f"{self.sandboxes}/posted")
        self.assertEqual(made["metadata"]["name"], "posted")


class Watch(ServedCase):
    def watch(self, query, path=None, **options):
        return self.ask("GET", f"{path or self.sandboxes}?watch=1&{query}", **options)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("a", "b"):
            made = cls.ask(cls, "POST", cls.sandboxes, sandbox(name))
            assert made.status == 201, made.text
        cls.revision = made.json["metadata"]["resourceVersion"]

    def kinds(self, answer):
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/json"))
        return [(kind, one["metadata"].get("name", "")) for kind, one in answer.events]

    def test_from_the_beginning(self):
        for query in ("resourceVersion=0&timeoutSeconds=1", "timeoutSeconds=1",
                      "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"):
            with self.subTest(query=query):
                self.assertEqual(self.kinds(self.watch(query)), [("ADDED", "a"), ("ADDED", "b")])

    def test_streaming_lists(self):
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
        for revision in ("", self.revision):
            answer = self.watch(f"{query}&resourceVersion={revision}")
            self.assertEqual(self.kinds(answer), [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")])
            bookmark = answer.events[-1][1]
            self.assertEqual((bookmark["kind"], bookmark["apiVersion"]), ("Sandbox", f"{GROUP}/v1beta1"))
            self.assertEqual(bookmark["metadata"]["annotations"], {"k8s.io/initial-events-end": "true"})
            self.assertGreaterEqual(int(bookmark["metadata"]["resourceVersion"]), int(self.revision))
        [(kind, status)] = self.watch(f"{query}&resourceVersion=99999999").events
        self.assertEqual((kind, status["code"], status["reason"]), ("ERROR", 504, "Timeout"))
        self.assertEqual(status["details"], {"causes": [{"reason": "ResourceVersionTooLarge",
                                                         "message": "Too large resource version"}],
                                             "retryAfterSeconds": 1})

    def test_how_people_say_yes(self):
        for words, is_watch in (("watch", True), ("watch=", True), ("watch=yes", True), ("watch=TRUE", True), ("watch=1", True),
                                ("watch=0", False), ("watch=False", False), ("watch=false", False)):
            answer = self.ask("GET", f"{self.sandboxes}?{words}&timeoutSeconds=1&limit=1")
            self.assertEqual('"kind":"SandboxList"' not in answer.text, is_watch, words)

    def test_nothing_new(self):
        for query in (f"resourceVersion={self.revision}", "resourceVersion=999999",
                      "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"):
            with self.subTest(query=query):
                self.assertEqual(self.watch(f"{query}&timeoutSeconds=1").events, [])

    def test_options_that_make_no_sense(self):
        for query, message in [
                ("resourceVersionMatch=NotOlderThan",
                 "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
                ("sendInitialEvents=true&allowWatchBookmarks=true",
                 "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
                ("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
                 "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")]:
            with self.subTest(query=query):
                self.invalid(self.watch(query), "ListOptions", "resourceVersionMatch", "FieldValueForbidden",
                             f"Forbidden: {message}")
        self.refused(self.watch("resourceVersion=abc"), 500, "", 'resourceVersion: Invalid value: "abc": '
                     'strconv.ParseUint: parsing "abc": invalid syntax')

    def test_what_enters_and_leaves_a_selection(self):
        path = self.config_maps
        made = self.make(path, config_map("sel", labels={"in": "1"}))
        start = made["metadata"]["resourceVersion"]
        out = self.got(self.ask("PATCH", f"{path}/sel", {"metadata": {"labels": {"in": "2"}}}, type=MERGE))
        self.got(self.ask("PATCH", f"{path}/sel", {"metadata": {"labels": {"in": "1"}}}, type=MERGE))
        self.got(self.ask("PATCH", f"{path}/sel", {"data": {"k": "v"}}, type=MERGE))
        self.got(self.ask("DELETE", f"{path}/sel"))
        events = self.watch(f"labelSelector=in%3D1&resourceVersion={start}&timeoutSeconds=1", path).events
        self.assertEqual([kind for kind, _ in events], ["DELETED", "ADDED", "MODIFIED", "DELETED"])
        self.assertEqual(events[0][1]["metadata"]["labels"], {"in": "1"})
        self.assertEqual(events[0][1]["metadata"]["resourceVersion"], out["metadata"]["resourceVersion"])
        revisions = [int(one["metadata"]["resourceVersion"]) for _, one in events]
        self.assertEqual(revisions, sorted(set(revisions)))
        named = self.watch(f"fieldSelector=metadata.name%3Dsel&resourceVersion={start}&timeoutSeconds=1", path).events
        self.assertEqual(len(named), 4)

    def test_events_come_as_they_happen(self):
        connection = self.server.connect()
        self.addCleanup(connection.close)
        connection.request("GET", f"{self.config_maps}?watch=1&fieldSelector=metadata.name%3Dlive&timeoutSeconds=600",
                           headers={"Authorization": "Bearer exchanges-admin"})
        answer = connection.getresponse()
        self.make(self.config_maps, config_map("live"))
        event = json.loads(answer.readline())  # long before the watch ends
        self.assertEqual((event["type"], event["object"]["metadata"]["name"]), ("ADDED", "live"))

    def test_the_last_finalizer_is_a_deletion(self):
        path = self.config_maps
        start = self.make(path, config_map("fin", finalizers=["x.io/f"]))["metadata"]["resourceVersion"]
        self.got(self.ask("DELETE", f"{path}/fin"))
        self.got(self.ask("PATCH", f"{path}/fin", {"metadata": {"finalizers": None}}, type=MERGE))
        events = self.watch(f"resourceVersion={start}&fieldSelector=metadata.name%3Dfin&timeoutSeconds=1", path).events
        self.assertEqual([kind for kind, _ in events], ["MODIFIED", "DELETED"])

    def test_as_a_table(self):
        answer = self.watch("timeoutSeconds=1", accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
        tables = [one for _, one in answer.events]
        self.assertEqual([one["kind"] for one in tables], ["Table", "Table"])
        self.assertEqual(tables[0]["columnDefinitions"][0]["name"], "Name")
        self.assertFalse(tables[1].get("columnDefinitions"))
        self.assertEqual([one["rows"][0]["cells"][0] for one in tables], ["a", "b"])

    def test_of_one_object_is_that_object(self):
        found = self.got(self.ask("GET", f"{self.sandboxes}/a?watch=1&timeoutSeconds=1"))
        self.assertEqual(found["metadata"]["name"], "a")


class Negotiation(ServedCase):
    def setUp(self):
        self.path = f"{self.config_maps}/n"
        if self.ask("GET", self.path).status == 404:
            self.make(self.config_maps, config_map("n", {"a": "1"}))
            self.make(self.sandboxes, sandbox("n"))

    def test_json_for_everybody_who_takes_it(self):
        for accept in ("application/json", "*/*", "application/*", "application/vnd.kubernetes.protobuf, */*",
                       "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf",
                       "text/html, application/json;q=0.5"):
            with self.subTest(accept=accept):
                answer = self.ask("GET", self.path, accept=accept)
                self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/json"))
                self.assertTrue(answer.text.endswith("}\n"))
                self.assertEqual(answer.text.count("\n"), 1)

    def test_not_acceptable(self):
        answer = self.ask("GET", self.sandboxes, accept="text/html")
        self.refused(answer, 406, "NotAcceptable", "only the following media types are accepted: application/json, "
                     "application/yaml, application/vnd.kubernetes.protobuf")
        self.assertEqual(self.ask("GET", self.path, accept="application/cbor").status, 406)

    def test_yaml(self):
        answer = self.ask("GET", f"{self.sandboxes}/n", accept="application/yaml")
        self.assertEqual(answer.headers["Content-Type"], "application/yaml")
        self.assertTrue(answer.text.startswith(f"apiVersion: {GROUP}/v1beta1\nkind: Sandbox\nmetadata:\n"), answer.text)
        body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-yaml}\ndata:\n  a: |\n    b\n"
        made = self.got(self.ask("POST", self.config_maps, body, type="application/yaml"), 201)
        self.assertEqual(made["data"], {"a": "b\n"})

    def test_pretty(self):
        for options in ({"agent": "curl/8.0"}, {"agent": "Mozilla/5.0 (X11)"}):
            self.assertIn('\n  "kind": "ConfigMap"', self.ask("GET", self.path, **options).text)
        self.assertIn('\n  "kind": "ConfigMap"', self.ask("GET", f"{self.path}?pretty=true").text)
        self.assertNotIn("\n ", self.ask("GET", f"{self.path}?pretty=false", agent="curl/8.0").text)

    def test_metadata_only(self):
        one = self.got(self.ask("GET", f"{self.sandboxes}/n", accept="application/json;as=PartialObjectMetadata;v=v1;"
                                "g=meta.k8s.io,application/json"))
        self.assertEqual((one["kind"], one["apiVersion"], one["metadata"]["name"]),
                         ("PartialObjectMetadata", "meta.k8s.io/v1", "n"))
        self.assertNotIn("spec", one)
        many = self.got(self.ask("GET", self.sandboxes, accept="application/json;as=PartialObjectMetadataList;v=v1;"
                                 "g=meta.k8s.io,application/json"))
        self.assertEqual((many["kind"], names(many["items"])), ("PartialObjectMetadataList", ["n"]))
        self.assertNotIn("continue", many["metadata"])

    def test_tables(self):
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        table = self.got(self.ask("GET", self.config_maps, accept=accept))
        self.assertEqual((table["kind"], table["apiVersion"]), ("Table", "meta.k8s.io/v1"))
        self.assertEqual([one["name"] for one in table["columnDefinitions"]], ["Name", "Data", "Age"])
        row = next(one for one in table["rows"] if one["cells"][0] == "n")
        self.assertEqual((row["cells"][1], row["object"]["kind"]), (1, "PartialObjectMetadata"))
        bare = self.got(self.ask("GET", f"{self.config_maps}?includeObject=None", accept=accept))
        self.assertIsNone(bare["rows"][0].get("object"))
        whole = self.got(self.ask("GET", f"{self.path}?includeObject=Object", accept=accept))
        self.assertEqual(whole["rows"][0]["object"]["data"], {"a": "1"})

    def test_protobuf_bodies(self):
        def field(number, data):
            return bytes([number << 3 | 2, len(data)]) + data

        meta = field(1, b"from-protobuf")
        config = field(1, meta) + field(2, field(1, b"k") + field(2, b"v"))
        body = b"k8s\0" + field(1, field(1, b"v1") + field(2, b"ConfigMap")) + field(2, config)
        made = self.got(self.ask("POST", self.config_maps, body, type="application/vnd.kubernetes.protobuf"), 201)
        self.assertEqual((made["metadata"]["name"], made["data"]), ("from-protobuf", {"k": "v"}))

    def test_old_versions_say_so(self):
        answer = self.ask("GET", self.sandboxes.replace("v1beta1", "v1alpha1"))
        self.assertEqual(answer.headers.get_all("Warning"), [
            f'299 - "{GROUP}/v1alpha1 Sandbox is deprecated; use {GROUP}/v1beta1 Sandbox instead"'])
        self.assertEqual(answer.json["items"][0]["apiVersion"], f"{GROUP}/v1alpha1")


class Discovery(ServedCase):
    def test_health_and_version(self):
        for path in ("/healthz", "/livez", "/readyz"):
            answer = self.ask("GET", path)
            self.assertEqual((answer.status, answer.text, answer.headers["Content-Type"]),
                             (200, "ok", "text/plain; charset=utf-8"))
        self.assertRegex(self.ask("GET", "/readyz?verbose").text, r"^\[\+\]ping ok\n(.*\n)*readyz check passed\n$")
        version = self.got(self.ask("GET", "/version"))
        self.assertEqual((version["major"], version["minor"]), ("1", "36"))
        self.assertTrue(all(isinstance(value, str) for value in version.values()))

    def test_legacy(self):
        api = self.got(self.ask("GET", "/api"))
        self.assertEqual((api["kind"], api["versions"]), ("APIVersions", ["v1"]))
        self.assertEqual(api["serverAddressByClientCIDRs"],
                         [{"clientCIDR": "0.0.0.0/0", "serverAddress": f"127.0.0.1:{self.server.port}"}])
        groups = self.got(self.ask("GET", "/apis"))
        self.assertEqual((groups["kind"], groups["apiVersion"]), ("APIGroupList", "v1"))
        ours = next(one for one in groups["groups"] if one["name"] == GROUP)
        self.assertEqual([one["version"] for one in ours["versions"]], ["v1beta1", "v1alpha1"])
        self.assertEqual(ours["preferredVersion"]["version"], "v1beta1")
        self.assertEqual(self.got(self.ask("GET", f"/apis/{GROUP}")), dict(ours, kind="APIGroup", apiVersion="v1"))
        resources = self.got(self.ask("GET", f"/apis/{GROUP}/v1beta1"))
        self.assertEqual((resources["kind"], resources["groupVersion"]), ("APIResourceList", f"{GROUP}/v1beta1"))
        by_name = {one["name"]: one for one in resources["resources"]}
        self.assertEqual((by_name["sandboxes"]["kind"], by_name["sandboxes"]["namespaced"]), ("Sandbox", True))
        self.assertEqual(sorted(by_name["sandboxes"]["verbs"]), ["create", "delete", "deletecollection", "get", "list",
                                                                 "patch", "update", "watch"])
        self.assertEqual(sorted(by_name["sandboxes/status"]["verbs"]), ["get", "patch", "update"])
        core = {one["name"]: one for one in self.got(self.ask("GET", "/api/v1"))["resources"]}
        self.assertEqual(core["pods"]["shortNames"], ["po"])
        self.assertEqual(core["pods/exec"]["verbs"], ["create", "get"])
        self.assertEqual((core["pods/eviction"]["group"], core["pods/eviction"]["version"]), ("policy", "v1"))
        self.assertNotIn("deletecollection", core["namespaces"]["verbs"])

    def test_aggregated(self):
        for path in ("/api", "/apis"):
            answer = self.ask("GET", path, accept=f"{AGGREGATED},application/json")
            self.assertEqual(answer.headers["Content-Type"], AGGREGATED)
            self.assertEqual((answer.headers["Vary"], answer.headers["Cache-Control"]), ("Accept", "public"))
            self.assertEqual((answer.json["kind"], answer.json["apiVersion"]),
                             ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"))
            again = self.ask("GET", path, accept=AGGREGATED, headers=[("If-None-Match", answer.headers["Etag"])])
            self.assertEqual((again.status, again.bytes), (304, b""))
        ours = next(one for one in answer.json["items"] if one["metadata"]["name"] == GROUP)
        one = ours["versions"][0]["resources"][0]
        self.assertEqual((one["resource"], one["scope"], one["singularResource"], one["responseKind"]["kind"]),
                         ("sandboxes", "Namespaced", "sandbox", "Sandbox"))
        self.assertEqual(ours["versions"][0]["freshness"], "Current")

    def test_open_api(self):
        index = self.got(self.ask("GET", "/openapi/v3"))["paths"]
        document = self.got(self.ask("GET", index[f"apis/{GROUP}/v1beta1"]["serverRelativeURL"]))
        patches = [path["patch"] for path in document["paths"].values() if "patch" in path]
        kinds = [one["x-kubernetes-group-version-kind"]["kind"] for one in patches]
        self.assertIn("Sandbox", kinds)
        self.assertTrue(all("fieldValidation" in [p["name"] for p in one["parameters"]] for one in patches))

    def test_root(self):
        self.assertIn("/apis", self.got(self.ask("GET", "/"))["paths"])


if __name__ == "__main__":
    unittest.main()
