#include <gtest/gtest.h>

#include "apiserver/cluster_ip.h"
#include "apiserver/kinds_testing_internal.h"

namespace hearth::apiserver {
namespace {

const Strategy& of(std::string_view kind, std::string_view group = "") {
  return *find_strategy(group, "v1", kind);
}

TEST(Strategies, SayWhoMayOverwrite) {
  EXPECT_TRUE(of("Pod").allows_unconditional_update());
  EXPECT_TRUE(of("ConfigMap").allows_unconditional_update());
  EXPECT_TRUE(of("ServiceAccount").allows_unconditional_update());
  EXPECT_FALSE(of("Lease", "coordination.k8s.io").allows_unconditional_update());
  EXPECT_FALSE(
      of("CustomResourceDefinition", "apiextensions.k8s.io").allows_unconditional_update());
  EXPECT_FALSE(of("Sandbox", "agents.x-k8s.io").allows_unconditional_update());
}

TEST(Strategies, SayWhoHasAGeneration) {
  EXPECT_TRUE(of("Pod").has_generation());
  EXPECT_TRUE(of("NetworkPolicy", "networking.k8s.io").has_generation());
  EXPECT_TRUE(of("EndpointSlice", "discovery.k8s.io").has_generation());
  EXPECT_TRUE(of("Sandbox", "agents.x-k8s.io").has_generation());
  for (const std::string_view kind : {"ConfigMap", "Secret", "Event", "Node", "Namespace",
                                      "Service", "PersistentVolumeClaim", "ServiceAccount"})
    EXPECT_FALSE(of(kind).has_generation()) << kind;
  EXPECT_FALSE(of("Lease", "coordination.k8s.io").has_generation());
}

TEST(Strategies, SurviveWhateverIsSent) {
  for (const std::string_view kind :
       {"Pod", "Service", "ConfigMap", "Secret", "Namespace", "PersistentVolumeClaim",
        "PersistentVolume", "Event", "Node", "Endpoints"})
    for (const std::string_view text :
         {"null", "3", "[]", "{}", R"({"metadata":[],"spec":"x","status":7})",
          R"({"spec":{"ports":[[]],"clusterIPs":[null],"accessModes":[1],"capacity":[]}})",
          R"({"data":[],"stringData":{"a":1},"subsets":[{"ports":[3],"addresses":{}}]})"}) {
      Json object = created(of(kind), text);
      of(kind).validate(object, &object, "");
      of(kind).prepare_update(object, json(text));
    }
}

TEST(ServiceStrategy, FillsInAHeadlessOne) {
  const Json service = created(of("Service"), R"({"metadata":{"name":"hl"},
    "spec":{"clusterIP":"None","selector":{"a":"b"}}})");
  EXPECT_TRUE(model::is_same(service, json(R"({"metadata":{"name":"hl"},
    "spec":{"selector":{"a":"b"},"clusterIP":"None","clusterIPs":["None"],"type":"ClusterIP",
      "sessionAffinity":"None","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack",
      "internalTrafficPolicy":"Cluster"},"status":{"loadBalancer":{}}})")))
      << model::to_text(service);
  EXPECT_FALSE(needs_cluster_ip(service));
  EXPECT_EQ(refusals(of("Service"), R"({"spec":{"clusterIP":"None"}})"), Sentences{});
}

TEST(ServiceStrategy, FillsInPorts) {
  const Json service = created(of("Service"), R"({"spec":{"ports":[{"port":80}]}})");
  EXPECT_EQ(model::to_text(service.at("spec").at("ports")),
            R"([{"port":80,"protocol":"TCP","targetPort":80}])");
  EXPECT_TRUE(needs_cluster_ip(service));
}

TEST(ServiceStrategy, ReadsAddressesToTheirEnd) {
  const std::string service = R"({"spec":{"clusterIP":"10.96.0.9\u0000x","ports":[{"port":80}]}})";
  EXPECT_EQ(
      refusals(of("Service"), service),
      Sentences{R"(spec.clusterIPs[0]: Invalid value: "10.96.0.9\u0000x": must be a valid IP )"
                "address, (e.g. 10.9.8.7 or 2001:db8::ffff)"});
}

TEST(ServiceStrategy, RefusesPortsThatAreMissingOrWrong) {
  EXPECT_EQ(refusals(of("Service"), R"({"spec":{"selector":{"a":"b"}}})"),
            Sentences{"spec.ports: Required value"});
  EXPECT_EQ(refusals(of("Service"), R"({"spec":{"ports":[{"port":80},{"port":0,"name":"b"}]}})"),
            (Sentences{"spec.ports[0].name: Required value",
                       "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, "
                       "inclusive",
                       "spec.ports[1].targetPort: Invalid value: 0: must be between 1 and 65535, "
                       "inclusive"}));
  EXPECT_EQ(refusals(of("Service"), R"({"spec":{"type":"X","ports":[{"port":80}]}})"),
            Sentences{R"(spec.type: Unsupported value: "X": supported values: "ClusterIP", )"
                      R"("ExternalName", "LoadBalancer", "NodePort")"});
}

TEST(ServiceStrategy, KeepsItsAddress) {
  const std::string old = R"({"spec":{"clusterIP":"10.96.0.9","ports":[{"port":80}]}})";
  EXPECT_EQ(
      refusals(of("Service"), old, R"({"spec":{"clusterIP":"10.96.0.8","ports":[{"port":80}]}})"),
      Sentences{R"(spec.clusterIPs[0]: Invalid value: ["10.96.0.8"]: may not change once )"
                "set"});
  Json next = json(R"({"spec":{"ports":[{"port":81}]}})");
  of("Service").prepare_update(next, created(of("Service"), old));
  EXPECT_EQ(model::text_at(next, {"spec", "clusterIP"}), "10.96.0.9");
}

TEST(ClusterIp, IsPickedFromTheRangeAndFree) {
  EXPECT_EQ(pick_cluster_ip({}, 0), "10.96.0.2");
  EXPECT_EQ(pick_cluster_ip({"10.96.0.2"}, 1), "10.96.0.3");
  EXPECT_EQ(pick_cluster_ip({}, (1U << 20) - 1), "10.96.0.2");
  EXPECT_EQ(pick_cluster_ip({}, 256), "10.96.1.0");
  EXPECT_TRUE(is_cluster_ip("10.111.255.254"));
  EXPECT_FALSE(is_cluster_ip("10.111.255.255"));
  EXPECT_FALSE(is_cluster_ip("10.112.0.1"));
  EXPECT_FALSE(is_cluster_ip("None"));
  Json service = json("{}");
  set_cluster_ip(service, "10.96.0.2");
  EXPECT_EQ(model::to_text(service), R"({"spec":{"clusterIP":"10.96.0.2",)"
                                     R"("clusterIPs":["10.96.0.2"]}})");
}

TEST(SecretStrategy, EncodesTextAndForgetsIt) {
  const Json secret = created(of("Secret"), R"({"data":{"c":"ZA=="},"stringData":{"a":"b"}})");
  EXPECT_EQ(model::to_text(secret), R"({"data":{"c":"ZA==","a":"Yg=="},"type":"Opaque"})");
}

TEST(SecretStrategy, WantsTheKeysOfItsType) {
  EXPECT_EQ(refusals(of("Secret"), R"({"type":"kubernetes.io/tls","data":{"tls.crt":""}})"),
            Sentences{"data[tls.key]: Required value"});
  EXPECT_EQ(refusals(of("Secret"), R"({"type":"kubernetes.io/basic-auth"})"),
            (Sentences{"data[username]: Required value", "data[password]: Required value"}));
  EXPECT_EQ(refusals(of("Secret"), R"({"type":"kubernetes.io/basic-auth",
    "stringData":{"password":"x"}})"),
            Sentences{});
  EXPECT_EQ(refusals(of("Secret"), R"({"type":"kubernetes.io/dockerconfigjson",
    "stringData":{".dockerconfigjson":"{}"}})"),
            Sentences{});
  const Sentences told = refusals(of("Secret"), R"({"type":"kubernetes.io/dockerconfigjson",
    "stringData":{".dockerconfigjson":"secret words"}})");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("redacted"), std::string::npos);
}

TEST(SecretStrategy, StaysAsItIsWhenFrozen) {
  EXPECT_EQ(refusals(of("Secret"), R"({"immutable":true,"data":{"a":"Yg=="}})",
                     R"({"data":{"a":"Yw=="},"type":"other"})"),
            (Sentences{R"(type: Invalid value: "other": field is immutable)",
                       "immutable: Forbidden: field is immutable when `immutable` is set",
                       "data: Forbidden: field is immutable when `immutable` is set"}));
}

TEST(ConfigMapStrategy, ChecksKeysAndFrozenOnes) {
  EXPECT_EQ(refusals(of("ConfigMap"), R"({"data":{"a/b":""},"binaryData":{"..x":""}})"),
            (Sentences{R"(data[a/b]: Invalid value: "a/b": a valid config key must consist of )"
                       "alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
                       "'KEY_NAME',  or 'key-name', regex used for validation is "
                       "'[-._a-zA-Z0-9]+')",
                       R"(binaryData[..x]: Invalid value: "..x": must not start with '..')"}));
  EXPECT_EQ(refusals(of("ConfigMap"), R"({"data":{"a":"1"},"immutable":true})",
                     R"({"data":{"a":"2"},"immutable":true})"),
            Sentences{"data: Forbidden: field is immutable when `immutable` is set"});
  EXPECT_EQ(refusals(of("ConfigMap"), R"({"data":{"a":"1"}})", R"({"data":{"a":"2"}})"),
            Sentences{});
}

TEST(NamespaceStrategy, LabelsAndKeepsTheFinalizer) {
  const Json ns = created(of("Namespace"), R"({"metadata":{"name":"nn1"}})");
  EXPECT_TRUE(model::is_same(ns, json(R"({"metadata":{"name":"nn1",
    "labels":{"kubernetes.io/metadata.name":"nn1"}},"spec":{"finalizers":["kubernetes"]},
    "status":{"phase":"Active"}})")));
  Json next = json(R"({"metadata":{"name":"nn1"},"spec":{"finalizers":[]}})");
  of("Namespace").prepare_update(next, ns);
  EXPECT_EQ(model::to_text(next.at("spec")), R"({"finalizers":["kubernetes"]})");
}

TEST(ClaimStrategy, FillsInAndProtects) {
  const std::string text = R"({"metadata":{"name":"pvc1"},"spec":{"accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"1Gi"}}}})";
  EXPECT_TRUE(model::is_same(created(of("PersistentVolumeClaim"), text), json(R"({
    "metadata":{"name":"pvc1","finalizers":["kubernetes.io/pvc-protection"]},
    "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},
      "volumeMode":"Filesystem"},"status":{"phase":"Pending"}})")));
  EXPECT_EQ(refusals(of("PersistentVolumeClaim"), text), Sentences{});
}

TEST(ClaimStrategy, WantsModesAndASize) {
  EXPECT_EQ(refusals(of("PersistentVolumeClaim"), R"({"spec":{}})"),
            (Sentences{"spec.accessModes: Required value: at least 1 access mode is required",
                       "spec.resources[storage]: Required value"}));
}

TEST(ClaimStrategy, GrowsOnceBoundAndNothingElse) {
  const Strategy& claims = of("PersistentVolumeClaim");
  const std::string text = R"({"spec":{"accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"1Gi"}}}})";
  Json old = created(claims, text);
  Json next = old;
  next.at("spec").at("resources").at("requests").as_object()["storage"] = "2Gi";
  EXPECT_EQ(claims.validate(next, &old, "").size(), 1U);
  old.at("status").as_object()["phase"] = "Bound";
  EXPECT_EQ(sentences(claims.validate(next, &old, "")), Sentences{});
  next.at("spec").as_object()["accessModes"] = json(R"(["ReadWriteMany"])");
  EXPECT_EQ(sentences(claims.validate(next, &old, "")),
            Sentences{"spec: Forbidden: spec is immutable after creation except "
                      "resources.requests and volumeAttributesClassName for bound claims"});
}

TEST(VolumeStrategy, FillsInAndKeepsItsSource) {
  const std::string text = R"({"spec":{"capacity":{"storage":"1Gi"},
    "accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}})";
  const Json volume = created(of("PersistentVolume"), text);
  EXPECT_EQ(model::text_at(volume, {"spec", "persistentVolumeReclaimPolicy"}), "Retain");
  EXPECT_EQ(model::text_at(volume, {"status", "phase"}), "Pending");
  EXPECT_EQ(model::to_text(volume.at("metadata").at("finalizers")),
            R"(["kubernetes.io/pv-protection"])");
  EXPECT_EQ(refusals(of("PersistentVolume"), text), Sentences{});
  EXPECT_EQ(refusals(of("PersistentVolume"), text,
                     R"({"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],
    "hostPath":{"path":"/y"}}})"),
            Sentences{"spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is "
                      "immutable after creation"});
}

TEST(StorageClassStrategy, FillsInAndFreezes) {
  const Strategy& classes = of("StorageClass", "storage.k8s.io");
  EXPECT_EQ(model::to_text(created(classes, R"({"provisioner":"a/b"})")),
            R"({"provisioner":"a/b","reclaimPolicy":"Delete","volumeBindingMode":"Immediate"})");
  EXPECT_EQ(refusals(classes, R"({"provisioner":"a/b"})", R"({"provisioner":"a/c"})"),
            Sentences{R"(provisioner: Invalid value: "a/c": field is immutable)"});
}

TEST(EventStrategy, ShowsOneEventInTwoShapes) {
  const std::string core = R"({"kind":"Event","apiVersion":"v1","metadata":{"name":"e"},
    "involvedObject":{"kind":"Sandbox","namespace":"default","name":"sb1"},"reason":"X",
    "message":"hello","source":{"component":"me"},"firstTimestamp":"2026-11-15T03:00:00Z",
    "lastTimestamp":"2026-11-15T03:00:00Z","count":1,"type":"Normal","eventTime":null,
    "reportingComponent":"","reportingInstance":""})";
  Json event = json(core);
  of("Event", "events.k8s.io").from_storage(event);
  EXPECT_TRUE(model::is_same(event, json(R"({"kind":"Event","apiVersion":"events.k8s.io/v1",
    "metadata":{"name":"e"},"eventTime":null,"reason":"X",
    "regarding":{"kind":"Sandbox","namespace":"default","name":"sb1"},"note":"hello",
    "type":"Normal","deprecatedSource":{"component":"me"},
    "deprecatedFirstTimestamp":"2026-11-15T03:00:00Z",
    "deprecatedLastTimestamp":"2026-11-15T03:00:00Z","deprecatedCount":1})")))
      << model::to_text(event);
  of("Event", "events.k8s.io").to_storage(event);
  EXPECT_TRUE(model::is_same(event, json(core))) << model::to_text(event);
}

TEST(EventStrategy, IsStrictInTheNewShapeOnly) {
  const Strategy& events = of("Event", "events.k8s.io");
  EXPECT_EQ(refusals(of("Event"), R"({"metadata":{"namespace":"default"},
    "involvedObject":{"namespace":"default"}})"),
            Sentences{});
  EXPECT_EQ(refusals(of("Event"), R"({"metadata":{"namespace":"a"},
    "involvedObject":{"namespace":"b"}})"),
            Sentences{R"(involvedObject.namespace: Invalid value: "b": does not match )"
                      "event.namespace"});
  EXPECT_EQ(refusals(events, R"({"apiVersion":"events.k8s.io/v1","metadata":{"namespace":"a"},
    "regarding":{"namespace":"a"},"type":"Normal","eventTime":"2026-11-15T03:00:00.000000Z",
    "reportingController":"c/d","reportingInstance":"i","action":"Make","reason":"Made",
    "note":"n"})"),
            Sentences{});
  EXPECT_EQ(refusals(events, R"({"apiVersion":"events.k8s.io/v1","metadata":{"namespace":"a"},
    "regarding":{"namespace":"a"},"eventTime":"2026-11-15T03:00:00.000000Z","action":"a",
    "reason":"r","series":{"count":1},"deprecatedCount":1})"),
            (Sentences{"reportingController: Required value", "reportingInstance: Required value",
                       R"(series.count: Invalid value: "": should be at least 2)",
                       "series.lastObservedTime: Required value",
                       R"(type: Invalid value: "": has invalid value: )",
                       R"(count: Invalid value: "": needs to be unset)"}));
}

TEST(EventStrategy, LetsOnlyTheSeriesChange) {
  const Strategy& events = of("Event", "events.k8s.io");
  const std::string old = R"({"apiVersion":"events.k8s.io/v1","metadata":{"namespace":"a"},
    "regarding":{"namespace":"a"},"type":"Normal","eventTime":"2026-11-15T03:00:00.000000Z",
    "reportingController":"c/d","reportingInstance":"i","action":"Make","reason":"Made"})";
  Json next = json(old);
  next.as_object()["series"] =
      json(R"({"count":2,"lastObservedTime":"2026-11-15T03:00:00.000000Z"})");
  EXPECT_EQ(refusals(events, old, model::to_text(next)), Sentences{});
  next.as_object()["note"] = "other";
  EXPECT_EQ(refusals(events, old, model::to_text(next)),
            Sentences{R"(message: Invalid value: "other": field is immutable)"});
}

TEST(LeaseStrategy, RefusesNoTime) {
  const Strategy& leases = of("Lease", "coordination.k8s.io");
  EXPECT_EQ(refusals(leases, R"({"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}})"),
            (Sentences{"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                       "spec.leaseTransitions: Invalid value: -1: must be greater than or equal "
                       "to 0"}));
  EXPECT_EQ(refusals(leases, R"({"spec":{"leaseDurationSeconds":15,"leaseTransitions":0}})"),
            Sentences{});
}

TEST(NetworkPolicyStrategy, FillsInItsDirections) {
  const Strategy& policies = of("NetworkPolicy", "networking.k8s.io");
  EXPECT_EQ(model::to_text(created(policies, R"({"spec":{"podSelector":{}}})")),
            R"({"spec":{"podSelector":{},"policyTypes":["Ingress"]}})");
  const Json both = created(policies, R"({"spec":{"egress":[{"ports":[{"port":53}]}]}})");
  EXPECT_EQ(model::to_text(both.at("spec").at("policyTypes")), R"(["Ingress","Egress"])");
  EXPECT_EQ(model::to_text(both.at("spec").at("egress")),
            R"([{"ports":[{"port":53,"protocol":"TCP"}]}])");
}

TEST(NetworkPolicyStrategy, ChecksPeersAndBlocks) {
  const Strategy& policies = of("NetworkPolicy", "networking.k8s.io");
  EXPECT_EQ(
      refusals(policies, R"({"spec":{"ingress":[{"from":[{},
      {"ipBlock":{"cidr":"10.0.0.0/8"},"podSelector":{}}],"ports":[{"port":9,"endPort":8}]}],
    "egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/33"}},
      {"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16","11.0.0.0/16","10.0.0.0/8"]}},
      {"ipBlock":{"cidr":"2001:db8::/32","except":["2001:db8:1::/48"]}}]}]}})"),
      (Sentences{
          "spec.ingress[0].ports[0].endPort: Invalid value: 8: must be greater than or equal "
          "to `port`",
          "spec.ingress[0].from[0]: Required value: must specify a peer",
          "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer",
          R"(spec.egress[0].to[0].ipBlock.cidr: Invalid value: "10.0.0.0/33": must be a valid )"
          "CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
          R"(spec.egress[0].to[1].ipBlock.except[1]: Invalid value: "11.0.0.0/16": must be a )"
          "strict subset of `cidr`",
          R"(spec.egress[0].to[1].ipBlock.except[2]: Invalid value: "10.0.0.0/8": must be a )"
          "strict subset of `cidr`"}));
}

TEST(NetworkPolicyStrategy, SelectsWithSelectorsThatMeanSomething) {
  const Strategy& policies = of("NetworkPolicy", "networking.k8s.io");
  EXPECT_EQ(
      refusals(policies, R"({"spec":{"podSelector":{"matchExpressions":[
      {"key":"a","operator":"Near"},{"key":"b","operator":"In"},
      {"key":"c","operator":"Exists","values":["x"]},{"key":"d","operator":"NotIn","values":["x"]}]},
    "egress":[{"to":[{"namespaceSelector":{"matchLabels":{"a":"-"}}},
      {"ipBlock":{"cidr":"10.0.0.1/8"}}]}]}})"),
      (Sentences{
          R"(spec.podSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid )"
          "selector operator",
          "spec.podSelector.matchExpressions[1].values: Required value: must be specified when "
          "`operator` is 'In' or 'NotIn'",
          "spec.podSelector.matchExpressions[2].values: Forbidden: may not be specified when "
          "`operator` is 'Exists' or 'DoesNotExist'",
          R"(spec.egress[0].to[0].namespaceSelector.matchLabels: Invalid value: "-": a valid )"
          "label must be an empty string or consist of alphanumeric characters, '-', '_' or "
          "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
          "'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
          R"(spec.egress[0].to[1].ipBlock.cidr: Invalid value: "10.0.0.1/8": must not have )"
          "bits set beyond the prefix length"}));
}

TEST(RuntimeClassStrategy, KeepsItsHandler) {
  const Strategy& classes = of("RuntimeClass", "node.k8s.io");
  EXPECT_EQ(refusals(classes, "{}"), Sentences{"handler: Required value"});
  EXPECT_EQ(refusals(classes, R"({"handler":"a"})", R"({"handler":"b"})"),
            Sentences{R"(handler: Invalid value: "b": field is immutable)"});
}

TEST(EndpointSliceStrategy, ChecksAddresses) {
  const Strategy& slices = of("EndpointSlice", "discovery.k8s.io");
  EXPECT_EQ(refusals(slices, R"({"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]},
    {"addresses":["x"]},{}],"ports":[{"port":1}]})"),
            (Sentences{R"(endpoints[1].addresses[0]: Invalid value: "x": must be an IPv4 address)",
                       "endpoints[2].addresses: Required value: must contain at least 1 address"}));
}

TEST(NodeStrategy, RefusesTheSameTaintTwice) {
  EXPECT_EQ(refusals(of("Node"), R"({"spec":{"taints":[{"key":"a","effect":"NoSchedule"},
    {"key":"a","effect":"NoSchedule"}]}})"),
            Sentences{R"(spec.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"})"});
}

TEST(RoleStrategy, WantsVerbsAndResources) {
  const Strategy& roles = of("Role", "rbac.authorization.k8s.io");
  EXPECT_EQ(refusals(roles, R"({"rules":[{"verbs":["get"],"apiGroups":[""],
    "resources":["pods"]}]})"),
            Sentences{});
  EXPECT_EQ(
      refusals(roles, R"({"rules":[{},{"verbs":["get"],"nonResourceURLs":["/x"]}]})"),
      (Sentences{"rules[0].verbs: Required value: verbs must contain at least one value",
                 "rules[0].apiGroups: Required value: resource rules must supply at least "
                 "one api group",
                 "rules[0].resources: Required value: resource rules must supply at least "
                 "one resource",
                 R"(rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot )"
                 "apply to non-resource URLs"}));
}

TEST(RoleBindingStrategy, FillsInGroupsAndKeepsTheRole) {
  const Strategy& bindings = of("RoleBinding", "rbac.authorization.k8s.io");
  const std::string text = R"({"roleRef":{"kind":"Role","name":"r"},
    "subjects":[{"kind":"User","name":"u"},{"kind":"ServiceAccount","name":"s"}]})";
  EXPECT_EQ(model::to_text(created(bindings, text)),
            R"({"roleRef":{"kind":"Role","name":"r","apiGroup":"rbac.authorization.k8s.io"},)"
            R"("subjects":[{"kind":"User","name":"u","apiGroup":"rbac.authorization.k8s.io"},)"
            R"({"kind":"ServiceAccount","name":"s"}]})");
  EXPECT_EQ(refusals(bindings, text), Sentences{});
  EXPECT_EQ(refusals(bindings, text, R"({"roleRef":{"kind":"ClusterRole","name":"r"}})"),
            Sentences{R"(roleRef: Invalid value: {"kind":"ClusterRole","name":"r",)"
                      R"("apiGroup":"rbac.authorization.k8s.io"}: field is immutable)"});
  EXPECT_EQ(
      refusals(of("ClusterRoleBinding", "rbac.authorization.k8s.io"), text),
      (Sentences{R"(roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole")",
                 "subjects[1].namespace: Required value"}));
}

}  // namespace
}  // namespace hearth::apiserver
