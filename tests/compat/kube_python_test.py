"""The Python client of Kubernetes, unchanged, against `hearth apiserver`."""
import datetime
import threading
import time
import unittest

from client_venv import run_with

CLIENT = ["kubernetes==35.0.0"]
if __name__ == "__main__":
    run_with(CLIENT)

from api_server import ApiServer, wait_until  # noqa: E402
from kubernetes import client, config, dynamic, watch  # noqa: E402
from kubernetes.client.rest import ApiException  # noqa: E402
from kubernetes.leaderelection import electionconfig, leaderelection  # noqa: E402
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock  # noqa: E402

SERVER = None
GROUP, VERSION = "agents.x-k8s.io", "v1beta1"


def setUpModule():
    global SERVER
    SERVER = ApiServer()
    config.load_kube_config(SERVER.kubeconfig)


def tearDownModule():
    if SERVER:
        SERVER.end()


def sandbox(name, **spec):
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Sandbox", "metadata": {"name": name},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "example.test/app:1"}]}}, **spec}}


def config_map(name, **labels):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels or None), data={"a": "1"})


def pod(name):
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels={"app": "web"}),
                        spec=client.V1PodSpec(node_name="n1", containers=[
                            client.V1Container(name="main", image="example.test/app:1",
                                               ports=[client.V1ContainerPort(container_port=80)])]))


class Case(unittest.TestCase):
    def setUp(self):
        self.core = client.CoreV1Api()
        self.objects = client.CustomObjectsApi()
        self.ns = self.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(generate_name="py-"))).metadata.name
        # It comes by itself, and a watch or a list in pages that begins before would see it.
        wait_until(lambda: self.core.list_namespaced_config_map(self.ns).items, what="the server's own ConfigMap")

    def refused(self, status, act, *args, **kwargs):
        with self.assertRaises(ApiException) as caught:
            act(*args, **kwargs)
        self.assertEqual(caught.exception.status, status, caught.exception)
        return caught.exception


class Typed(Case):
    def test_pods(self):
        made = self.core.create_namespaced_pod(self.ns, pod("web"))
        self.assertEqual((made.spec.restart_policy, made.status.phase, made.status.qos_class), ("Always", "Pending", "BestEffort"))
        self.assertIsInstance(made.metadata.creation_timestamp, datetime.datetime)
        self.assertEqual([p.metadata.name for p in self.core.list_namespaced_pod(self.ns, label_selector="app=web").items], ["web"])
        self.assertEqual(self.core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName=n1,metadata.namespace={self.ns}").items[0].metadata.name, "web")
        made.status.phase = "Running"
        made.status.conditions = [client.V1PodCondition(type="Ready", status="True")]
        self.assertEqual(self.core.replace_namespaced_pod_status("web", self.ns, made).status.phase, "Running")
        patched = self.core.patch_namespaced_pod("web", self.ns, {"spec": {"containers": [{"name": "main", "image": "example.test/app:2"}]}})
        self.assertEqual((patched.spec.containers[0].image, patched.spec.containers[0].ports[0].container_port), ("example.test/app:2", 80))
        evicted = self.core.create_namespaced_pod_eviction("web", self.ns, client.V1Eviction(metadata=client.V1ObjectMeta(name="web")))
        self.assertIsNotNone(evicted)
        self.assertIsNotNone(self.core.read_namespaced_pod("web", self.ns).metadata.deletion_timestamp)
        self.core.delete_namespaced_pod("web", self.ns, grace_period_seconds=0)
        self.assertEqual(self.refused(404, self.core.read_namespaced_pod, "web", self.ns).reason, "Not Found")

    def test_config_maps_and_conflicts(self):
        made = self.core.create_namespaced_config_map(self.ns, config_map("cm"))
        self.refused(409, self.core.create_namespaced_config_map, self.ns, config_map("cm"))
        made.data["a"] = "2"
        replaced = self.core.replace_namespaced_config_map("cm", self.ns, made)
        self.assertNotEqual(replaced.metadata.resource_version, made.metadata.resource_version)
        conflict = self.refused(409, self.core.replace_namespaced_config_map, "cm", self.ns, made)
        self.assertIn("the object has been modified", conflict.body)
        self.assertEqual(self.core.delete_namespaced_config_map("cm", self.ns).status, "Success")
        self.core.create_namespaced_config_map(self.ns, config_map("x", a="b"))
        self.core.delete_collection_namespaced_config_map(self.ns, label_selector="a=b")
        self.assertEqual(self.core.list_namespaced_config_map(self.ns, label_selector="a=b").items, [])

    def test_services_secrets_and_claims(self):
        made = self.core.create_namespaced_service(self.ns, client.V1Service(
            metadata=client.V1ObjectMeta(name="svc"), spec=client.V1ServiceSpec(selector={"a": "b"}, ports=[client.V1ServicePort(port=80)])))
        self.assertEqual((made.spec.type, made.spec.ports[0].target_port, made.spec.cluster_i_ps), ("ClusterIP", 80, [made.spec.cluster_ip]))
        secret = self.core.create_namespaced_secret(self.ns, client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"p": "q"}))
        self.assertEqual((secret.data, secret.type), ({"p": "cQ=="}, "Opaque"))
        claim = self.core.create_namespaced_persistent_volume_claim(self.ns, client.V1PersistentVolumeClaim(
            metadata=client.V1ObjectMeta(name="c"), spec=client.V1PersistentVolumeClaimSpec(
                access_modes=["ReadWriteOnce"], resources=client.V1VolumeResourceRequirements(requests={"storage": "1Gi"}))))
        self.assertEqual((claim.status.phase, claim.spec.volume_mode), ("Pending", "Filesystem"))
        self.refused(422, self.core.create_namespaced_service, self.ns, client.V1Service(
            metadata=client.V1ObjectMeta(name="bad"), spec=client.V1ServiceSpec(ports=[])))

    def test_namespace_ends(self):
        self.core.create_namespaced_config_map(self.ns, config_map("cm"))
        ending = self.core.delete_namespace(self.ns)
        self.assertIsNotNone(ending)
        wait_until(lambda: self.ns not in [n.metadata.name for n in self.core.list_namespace().items], what="the end of the namespace")
        self.refused(404, self.core.create_namespaced_config_map, self.ns, config_map("cm"))

    def test_pages(self):
        for number in range(7):
            self.core.create_namespaced_config_map(self.ns, config_map(f"cm-{number}"))
        names, token, revisions = [], None, set()
        while True:
            page = self.core.list_namespaced_config_map(self.ns, limit=3, _continue=token)
            self.assertLessEqual(len(page.items), 3)
            names += [item.metadata.name for item in page.items]
            revisions.add(page.metadata.resource_version)
            token = page.metadata._continue
            if not token:
                break
            self.core.create_namespaced_config_map(self.ns, config_map(f"later-{len(names)}"))
        self.assertEqual(names, [f"cm-{n}" for n in range(7)] + ["kube-root-ca.crt"])
        self.assertEqual(len(revisions), 1)
        self.refused(400, self.core.list_namespaced_config_map, self.ns, limit=3, _continue="nonsense")

    def test_reviews_and_tokens(self):
        review = client.AuthorizationV1Api().create_self_subject_access_review(client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=client.V1ResourceAttributes(verb="list", resource="pods"))))
        self.assertTrue(review.status.allowed)
        self.core.create_namespaced_service_account(self.ns, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="bot")))
        token = self.core.create_namespaced_service_account_token("bot", self.ns, client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600))).status.token
        settings = client.Configuration(host=SERVER.url, api_key={"authorization": f"Bearer {token}"})
        settings.ssl_ca_cert = SERVER.ca
        denied = self.refused(403, client.CoreV1Api(client.ApiClient(settings)).list_namespaced_pod, self.ns)
        self.assertIn(f'User \\"system:serviceaccount:{self.ns}:bot\\" cannot list', denied.body)
        settings.api_key = {"authorization": "Bearer nonsense"}
        self.refused(401, client.CoreV1Api(client.ApiClient(settings)).list_namespaced_pod, self.ns)

    def test_events(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        self.core.create_namespaced_event(self.ns, client.CoreV1Event(
            metadata=client.V1ObjectMeta(name="e"), reason="Started", message="m", type="Normal", count=1,
            first_timestamp=now, last_timestamp=now, event_time=now, action="Start",
            reporting_component="compat", reporting_instance="c-1", source=client.V1EventSource(component="compat"),
            involved_object=client.V1ObjectReference(kind="Pod", name="web", namespace=self.ns)))
        seen = client.EventsV1Api().list_namespaced_event(self.ns).items
        self.assertEqual((seen[0].note, seen[0].regarding.name, seen[0].event_time), ("m", "web", now))
        listed = self.core.list_namespaced_event(self.ns, field_selector="involvedObject.name=web,reason=Started").items
        self.assertEqual(len(listed), 1)


class Custom(Case):
    def place(self, **more):
        return dict(group=GROUP, version=VERSION, namespace=self.ns, plural="sandboxes", **more)

    def test_life(self):
        made = self.objects.create_namespaced_custom_object(body=sandbox("box"), **self.place())
        self.assertEqual((made["metadata"]["generation"], made["spec"]["operatingMode"]), (1, "Running"))
        self.assertNotIn("status", made)
        patched = self.objects.patch_namespaced_custom_object(name="box", body={"spec": {"operatingMode": "Suspended"}}, **self.place())
        self.assertEqual(patched["metadata"]["generation"], 2)
        status = self.objects.patch_namespaced_custom_object_status(name="box", body={"status": {"nodeName": "n1"}, "spec": {"operatingMode": "Running"}}, **self.place())
        self.assertEqual((status["status"], status["spec"]["operatingMode"]), ({"nodeName": "n1"}, "Suspended"))
        status["status"]["nodeName"] = "n2"
        self.objects.replace_namespaced_custom_object_status(name="box", body=status, **self.place())
        self.refused(409, self.objects.replace_namespaced_custom_object, name="box", body=status, **self.place())
        listed = self.objects.list_namespaced_custom_object(**self.place())
        self.assertEqual((listed["kind"], listed["items"][0]["kind"]), ("SandboxList", "Sandbox"))
        self.assertEqual(len(self.objects.list_cluster_custom_object(GROUP, VERSION, "sandboxes", field_selector=f"metadata.namespace={self.ns}")["items"]), 1)
        self.assertEqual(self.objects.delete_namespaced_custom_object(name="box", **self.place())["status"], "Success")
        self.refused(404, self.objects.get_namespaced_custom_object, name="box", **self.place())
        bad = self.refused(422, self.objects.create_namespaced_custom_object, body=sandbox("box", operatingMode="Nope"), **self.place())
        self.assertIn("spec.operatingMode", bad.body)

    def test_patch_types(self):
        self.objects.create_namespaced_custom_object(body=sandbox("box"), **self.place())
        api = client.ApiClient()
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{self.ns}/sandboxes/box"

        def patch(kind, body, **query):
            answer = api.call_api(path, "PATCH", query_params=list(query.items()), body=body, auth_settings=["BearerToken"],
                                  header_params={"Content-Type": f"application/{kind}", "Accept": "application/json"}, response_type="object")
            return answer[0]

        self.assertTrue(patch("json-patch+json", [{"op": "add", "path": "/spec/service", "value": True}])["spec"]["service"])
        self.assertFalse(patch("merge-patch+json", {"spec": {"service": False}})["spec"]["service"])
        applied = patch("apply-patch+yaml", sandbox("box", service=False), fieldManager="me", force="true")
        self.assertIn("me", [entry["manager"] for entry in applied["metadata"]["managedFields"]])
        self.refused(415, patch, "strategic-merge-patch+json", {"spec": {}})
        self.refused(422, patch, "json-patch+json", [{"op": "test", "path": "/spec/service", "value": True}])

    def test_scale(self):
        pools = dict(group="extensions.agents.x-k8s.io", version=VERSION, namespace=self.ns, plural="sandboxwarmpools")
        self.objects.create_namespaced_custom_object(body={
            "apiVersion": f"extensions.agents.x-k8s.io/{VERSION}", "kind": "SandboxWarmPool", "metadata": {"name": "p"},
            "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "t"}}}, **pools)
        self.assertEqual(self.objects.patch_namespaced_custom_object_scale(name="p", body={"spec": {"replicas": 3}}, **pools)["spec"], {"replicas": 3})
        self.assertEqual(self.objects.get_namespaced_custom_object_scale(name="p", **pools)["kind"], "Scale")


class Watches(Case):
    def test_follows_from_a_revision(self):
        self.core.create_namespaced_config_map(self.ns, config_map("before", x="y"))
        revision = self.core.list_namespaced_config_map(self.ns).metadata.resource_version
        made = self.core.create_namespaced_config_map(self.ns, config_map("cm", x="y"))
        self.core.patch_namespaced_config_map("cm", self.ns, {"data": {"b": "2"}})
        self.core.delete_namespaced_config_map("cm", self.ns)
        watcher, seen = watch.Watch(), []
        for event in watcher.stream(self.core.list_namespaced_config_map, self.ns, resource_version=revision, timeout_seconds=60):
            self.assertIsInstance(event["object"], client.V1ConfigMap)
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                self.assertNotEqual(event["object"].metadata.resource_version, made.metadata.resource_version)
                watcher.stop()
        self.assertEqual(seen, [("ADDED", "cm"), ("MODIFIED", "cm"), ("DELETED", "cm")])

    def test_begins_with_what_is_there_and_ends_in_time(self):
        self.objects.create_namespaced_custom_object(GROUP, VERSION, self.ns, "sandboxes", sandbox("box"))
        begin = time.monotonic()
        seen = [event["type"] for event in watch.Watch().stream(
            self.objects.list_namespaced_custom_object, GROUP, VERSION, self.ns, "sandboxes",
            field_selector="metadata.name=box", resource_version="0", timeout_seconds=1)]
        self.assertEqual(seen, ["ADDED"])
        self.assertGreater(time.monotonic() - begin, 0.8)

    def test_too_old_a_revision_is_gone(self):
        first = self.core.create_namespaced_config_map(self.ns, config_map("cm"))
        large = config_map("large")
        large.data["a"] = "x" * 1000_000
        self.core.create_namespaced_config_map(self.ns, large)
        for number in range(140):  # more than the server remembers
            self.core.patch_namespaced_config_map("large", self.ns, {"metadata": {"labels": {"n": str(number)}}}, _preload_content=False)
        with self.assertRaises(ApiException) as caught:
            list(watch.Watch().stream(self.core.list_namespaced_config_map, self.ns,
                                      resource_version=first.metadata.resource_version, timeout_seconds=60))
        self.assertEqual((caught.exception.status, caught.exception.reason.split(":")[0]), (410, "Expired"))

    def test_bookmarks_come_before_the_end(self):
        seen = [event["type"] for event in watch.Watch().stream(
            self.core.list_namespaced_config_map, self.ns, allow_watch_bookmarks=True, timeout_seconds=3,
            resource_version=self.core.list_namespaced_config_map(self.ns).metadata.resource_version)]
        self.assertEqual(set(seen), {"BOOKMARK"})


class Dynamic(Case):
    def setUp(self):
        super().setUp()
        self.dynamic = dynamic.DynamicClient(client.ApiClient())

    def test_finds_and_uses_kinds(self):
        pods = self.dynamic.resources.get(api_version="v1", kind="Pod")
        self.assertEqual((pods.name, pods.namespaced), ("pods", True))
        sandboxes = self.dynamic.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Sandbox")
        self.assertEqual(sandboxes.group_version, f"{GROUP}/{VERSION}")
        made = sandboxes.create(body=sandbox("box"), namespace=self.ns)
        self.assertEqual(made.spec.operatingMode, "Running")
        patched = sandboxes.patch(body={"spec": {"operatingMode": "Suspended"}}, name="box", namespace=self.ns, content_type="application/merge-patch+json")
        self.assertEqual(patched.spec.operatingMode, "Suspended")
        sandboxes.status.patch(body={"status": {"nodeName": "n"}}, name="box", namespace=self.ns, content_type="application/merge-patch+json")
        self.assertEqual(sandboxes.get(name="box", namespace=self.ns).status.nodeName, "n")
        applied = sandboxes.server_side_apply(body=sandbox("box", service=True), name="box", namespace=self.ns, field_manager="dyn", force_conflicts=True)
        self.assertTrue(applied.spec.service)
        seen = [event["type"] for event in sandboxes.watch(namespace=self.ns, timeout=1)]
        self.assertEqual(seen, ["ADDED"])
        self.assertEqual([item.metadata.name for item in sandboxes.get(namespace=self.ns).items], ["box"])
        sandboxes.delete(name="box", namespace=self.ns)
        with self.assertRaises(dynamic.exceptions.NotFoundError):
            sandboxes.get(name="box", namespace=self.ns)

    def test_sees_new_kinds(self):
        names = client.V1CustomResourceDefinitionNames(plural="gadgets", kind="Gadget", singular="gadget", list_kind="GadgetList")
        schema = client.V1JSONSchemaProps(type="object", x_kubernetes_preserve_unknown_fields=True)
        version = client.V1CustomResourceDefinitionVersion(name="v1", served=True, storage=True, schema=client.V1CustomResourceValidation(open_apiv3_schema=schema))
        api = client.ApiextensionsV1Api()
        api.create_custom_resource_definition(client.V1CustomResourceDefinition(
            metadata=client.V1ObjectMeta(name="gadgets.example.test"),
            spec=client.V1CustomResourceDefinitionSpec(group="example.test", names=names, scope="Cluster", versions=[version])))

        def is_established():
            status = api.read_custom_resource_definition("gadgets.example.test").status
            return any(c.type == "Established" and c.status == "True" for c in (status and status.conditions) or [])

        wait_until(is_established, what="Established")
        gadgets = self.dynamic.resources.get(api_version="example.test/v1", kind="Gadget")
        gadgets.create(body={"apiVersion": "example.test/v1", "kind": "Gadget", "metadata": {"name": "g"}, "anything": [1, {"a": None}]})
        self.assertEqual(gadgets.get(name="g").to_dict()["anything"][0], 1)
        api.delete_custom_resource_definition("gadgets.example.test")
        wait_until(lambda: not [d for d in api.list_custom_resource_definition().items if d.metadata.name == "gadgets.example.test"], what="its end")


class Leases(Case):
    def test_lease_times(self):
        api = client.CoordinationV1Api()
        now = datetime.datetime.now(datetime.timezone.utc)
        made = api.create_namespaced_lease(self.ns, client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=client.V1LeaseSpec(
            holder_identity="a", lease_duration_seconds=15, acquire_time=now, renew_time=now)))
        self.assertEqual(made.spec.renew_time, now)
        first, second = api.read_namespaced_lease("l", self.ns), api.read_namespaced_lease("l", self.ns)
        first.spec.holder_identity = "b"
        api.replace_namespaced_lease("l", self.ns, first)
        second.spec.holder_identity = "c"
        self.refused(409, api.replace_namespaced_lease, "l", self.ns, second)

    def test_one_leads_until_another_does(self):
        led, over = threading.Event(), threading.Event()
        settings = electionconfig.Config(ConfigMapLock("lock", self.ns, "me"), lease_duration=30, renew_deadline=20, retry_period=1,
                                         onstarted_leading=led.set, onstopped_leading=over.set)
        threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True).start()
        self.assertTrue(led.wait(60))
        key = "control-plane.alpha.kubernetes.io/leader"
        record = self.core.read_namespaced_config_map("lock", self.ns).metadata.annotations[key]
        self.assertIn('"holderIdentity": "me"', record)
        self.core.patch_namespaced_config_map("lock", self.ns, {"metadata": {"annotations": {key: record.replace('"me"', '"you"')}}})
        self.assertTrue(over.wait(60))


if __name__ == "__main__":
    unittest.main()
