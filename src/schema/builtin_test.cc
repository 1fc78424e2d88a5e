#include "schema/builtin.h"

#include <set>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/error.h"

namespace hearth::schema {
namespace {

using Texts = std::vector<std::string>;

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

const Schema* property(const Schema* schema, std::initializer_list<std::string_view> path) {
  for (const auto name : path) {
    if (schema && schema->items) schema = schema->items.get();
    schema = schema ? member_schema(*schema, name) : nullptr;
  }
  return schema;
}

TEST(BuiltinKindsTest, SayWhatDiscoveryNeeds) {
  std::set<std::string> seen;
  for (const BuiltinKind& kind : builtin_kinds()) {
    EXPECT_TRUE(seen.insert(kind.group + "/" + kind.plural).second);
    EXPECT_TRUE(kind.schema && !kind.version.empty() && !kind.singular.empty());
    EXPECT_FALSE(kind.schema->description.empty()) << kind.kind;
    EXPECT_TRUE(property(kind.schema.get(), {"metadata", "labels"})) << kind.kind;
    EXPECT_TRUE(property(kind.schema.get(), {"kind"})) << kind.kind;
    if (kind.kind != "Pod") continue;
    EXPECT_EQ(kind.plural, "pods");
    EXPECT_EQ(kind.short_names, Texts{"po"});
    EXPECT_EQ(kind.categories, Texts{"all"});
    EXPECT_TRUE(kind.namespaced && kind.has_status);
  }
  EXPECT_EQ(seen.size(), 22U);
  EXPECT_FALSE(find_builtin("v1", "Deployment"));
  EXPECT_FALSE(find_builtin("v2", "Pod"));
  EXPECT_TRUE(find_builtin("policy/v1", "Eviction"));
  EXPECT_TRUE(find_builtin("anything/v1", "DeleteOptions"));
}

TEST(BuiltinKindsTest, SayHowListsMerge) {
  const SchemaPtr pod = find_builtin("v1", "Pod");
  const Schema* containers = property(pod.get(), {"spec", "containers"});
  ASSERT_TRUE(containers);
  EXPECT_EQ(containers->grain, Grain::keyed);
  EXPECT_EQ(containers->list_keys, Texts{"name"});
  EXPECT_EQ(containers->patch_strategy, "merge");
  EXPECT_EQ(containers->patch_merge_key, "name");
  EXPECT_EQ(containers->items->name, "io.k8s.api.core.v1.Container");
  const Schema* ports = property(containers, {"ports"});
  ASSERT_TRUE(ports);
  EXPECT_EQ(ports->list_keys, (Texts{"containerPort", "protocol"}));
  EXPECT_EQ(ports->patch_merge_key, "containerPort");
  const Schema* volumes = property(pod.get(), {"spec", "volumes"});
  ASSERT_TRUE(volumes);
  EXPECT_EQ(volumes->patch_strategy, "merge,retainKeys");
  EXPECT_TRUE(property(volumes, {"emptyDir", "medium"}));  // inline in the Go type
  EXPECT_EQ(property(pod.get(), {"metadata", "finalizers"})->grain, Grain::set);
  EXPECT_EQ(property(pod.get(), {"metadata", "finalizers"})->patch_strategy, "merge");
  EXPECT_EQ(property(pod.get(), {"spec", "tolerations"})->grain, Grain::atomic);
  EXPECT_EQ(property(pod.get(), {"spec", "nodeSelector"})->grain, Grain::atomic);
}

TEST(BuiltinKindsTest, PodsAreDefaultedPrunedAndValidated) {
  const SchemaPtr schema = find_builtin("v1", "Pod");
  Json pod =
      json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":null},
      "spec":{"foo":1,"hostNetwork":false,"containers":[{"name":"main","image":"x","args":[],
      "resources":{"limits":{"cpu":0.5,"memory":"1Gi"}},"ports":[{"containerPort":80}]}],
      "securityContext":{},"terminationGracePeriodSeconds":0},"status":{}})");
  Texts unknown;
  prune(pod, *schema, &unknown);
  EXPECT_EQ(unknown, Texts{"spec.foo"});
  drop_zero_values(pod, *schema);
  apply_defaults(pod, *schema);
  EXPECT_EQ(model::to_text(pod),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":)"
            R"([{"name":"main","image":"x","resources":{"limits":{"cpu":0.5,"memory":"1Gi"}},)"
            R"("ports":[{"containerPort":80,"protocol":"TCP"}]}],"securityContext":{},)"
            R"("terminationGracePeriodSeconds":0},"status":{}})");
  EXPECT_TRUE(validate(pod, *schema, nullptr).empty());

  const auto errors =
      validate(json(R"({"spec":{"restartPolicy":"Maybe","containers":[{"image":1,"resources":
           {"limits":{"cpu":"much"}}}]}})"),
               *schema, nullptr);
  Texts texts;
  for (const auto& error : errors) texts.push_back(error.field + ": " + error.detail.substr(0, 40));
  EXPECT_EQ(
      texts,
      (Texts{R"(spec.containers[0].image: Invalid value: "integer": spec.container)",
             R"(spec.containers[0].resources.limits.cpu: Invalid value: "much": spec.containers[0)",
             "spec.containers[0].name: Required value",
             R"(spec.restartPolicy: Unsupported value: "Maybe": supported va)"}));
}

// Bytes of the Go client, and the JSON that it makes of the same object.
constexpr struct {
  std::string_view protobuf;
  std::string_view json;
} kGoObjects[] = {
    {"azhzAAoJCgJ2MRIDUG9kEtECCooBCgNkZW4SABoEdGVhbSIAKgAyADgAQgBaCgoDYXBwEgNkZW5qLgoHU2FuZGJv"
     "eBoDZGVuIgN1LTEqF2FnZW50cy54LWs4cy5pby92MWJldGExMAGKATQKAW0SBlVwZGF0ZRoAIggIgPfE1QYQADII"
     "RmllbGRzVjE6DwoNeyJmOnNwZWMiOnt9fUIAEqwBCgkKAXYSBBICCgASgAEKBG1haW4SBmRlYmlhbhoFc2xlZXAa"
     "ATkqADILCgAQABiQPyIAKgA6BwoBQRICw6Q6BQoBQhIAQg8KDQoDY3B1EgYKBDUwMG1aIAoUEhIKAS8SCQgBEAAa"
     "A3dlYhoAIgAQABgAIAAoADAAagByAHoEEAAgAIABAIgBAJABAKIBABoAIAAyAEIASgBSAFgAYABoAIIBAIoBAJoB"
     "AMIBABoTCgAaACIAKgAyAEoAWgByAIgBABoAIgA=",
     R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"den","namespace":"team","labels":{"app":"den"},"ownerReferences":[{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","name":"den","uid":"u-1","controller":true}],"managedFields":[{"manager":"m","operation":"Update","time":"2026-09-21T14:13:20Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"main","image":"debian","command":["sleep","9"],"ports":[{"containerPort":8080}],"env":[{"name":"A","value":"ä"},{"name":"B"}],"resources":{"limits":{"cpu":"500m"}},"readinessProbe":{"httpGet":{"path":"/","port":"web"}},"securityContext":{"privileged":false,"runAsUser":0}}],"terminationGracePeriodSeconds":0},"status":{}})"},
    {"azhzAAoMCgJ2MRIGU2VjcmV0EiYKEQoBcxIAGgAiACoAMgA4AEIAEggKAWsSAwD/EBoAIgUKAXQSABoAIgA=",
     R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"k":"AP8Q"},"stringData":{"t":""}})"},
    {"azhzAAoNCgJ2MRIHU2VydmljZRJCChMKA3N2YxIAGgAiACoAMgA4AEIAEicKEQoAEgAYUCIHCAAQkD8aACgAGgRO"
     "b25lIgA6AEIAUgBaAGAAaAAaAgoAGgAiAA==",
     R"({"kind":"Service","apiVersion":"v1","metadata":{"name":"svc"},"spec":{"ports":[{"port":80,"targetPort":8080}],"clusterIP":"None"},"status":{"loadBalancer":{}}})"},
    {"azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRImChEKAWwSABoAIgAqADIAOABCABIRCgJtZSIJ"
     "CID3xNUGEIgnKAAaACIA",
     R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"l"},"spec":{"holderIdentity":"me","renewTime":"2026-09-21T14:13:20.000005Z","leaseTransitions":0}})"},
    {"azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxITCAAiCkZvcmVncm91bmQqA0FsbBoAIgA=",
     R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Foreground","dryRun":["All"]})"},
    {"azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPwoQCgASABoA"
     "IgAqADIAOABCABIhCh8KB2RlZmF1bHQSBmNyZWF0ZRoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=",
     R"({"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"resourceAttributes":{"namespace":"default","verb":"create","resource":"pods"}},"status":{"allowed":false}})"},
};

TEST(ProtobufTest, DecodesWhatGoWrites) {
  for (const auto& [protobuf, text] : kGoObjects) {
    const Json decoded = decode_protobuf(*base64_decode(protobuf));
    EXPECT_TRUE(model::is_same(decoded, json(text))) << model::to_text(decoded) << "\n" << text;
  }
}

std::string problem_of(std::string_view bytes) {
  try {
    decode_protobuf(bytes);
  } catch (const model::StatusError& error) {
    return error.status().reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return "none";
}

// A Namespace whose message is `raw`.
std::string namespace_of(std::string_view raw) {
  std::string body("k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12", 22);
  body += static_cast<char>(raw.size());
  return body.append(raw);
}

TEST(ProtobufTest, RefusesBytesThatAreNone) {
  EXPECT_EQ(problem_of(""), "protobuf body is not valid: it does not start with 'k8s' and a zero");
  EXPECT_EQ(problem_of(std::string_view("k8s\0", 4)), "UnsupportedMediaType");
  EXPECT_EQ(problem_of(namespace_of("")), "none");
  EXPECT_EQ(problem_of(namespace_of("\x0a\x03\x0a\x01n")), "none");
  EXPECT_EQ(problem_of(namespace_of("\x0a\x7f")),
            "protobuf body is not valid: it ends in the middle of a field");
  EXPECT_EQ(problem_of(namespace_of("\x08\x01")),
            "protobuf body is not valid: field 1 has the wrong type");
  EXPECT_EQ(problem_of(namespace_of("\x0a\x03\x0a\x01\xff")),
            "protobuf body is not valid: a string is not UTF-8");
  EXPECT_EQ(problem_of(namespace_of(std::string(11, '\xff'))),
            "protobuf body is not valid: a number is too long");
  EXPECT_EQ(problem_of(namespace_of("\x63")),
            "protobuf body is not valid: a field's type is not known");
  EXPECT_EQ(problem_of(namespace_of("\x62\x03new\x68\x05")), "none");  // fields of the future
  const auto whole = base64_decode(kGoObjects[0].protobuf);
  for (std::size_t size = 0; size < whole->size(); ++size) problem_of(whole->substr(0, size));
}

TEST(BuiltinCrdsTest, AreWhatTheyShouldBe) {
  Texts names;
  for (const BuiltinCrd& crd : builtin_crds()) {
    names.emplace_back(crd.name);
    const Json object = json(crd.json);
    EXPECT_EQ(model::text_at(object, {"metadata", "name"}), crd.name);
    const SchemaPtr kind = find_builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    Json copy = object;
    Texts unknown;
    prune(copy, *kind, &unknown);
    EXPECT_EQ(unknown, Texts{}) << crd.name;
    EXPECT_TRUE(validate(object, *kind, nullptr).empty()) << crd.name;
    for (const Json& version : *model::array_at(object, {"spec", "versions"}))
      EXPECT_TRUE(parse_schema(*model::find(version, {"schema", "openAPIV3Schema"})));
  }
  EXPECT_EQ(names, (Texts{"sandboxclaims.extensions.agents.x-k8s.io", "sandboxes.agents.x-k8s.io",
                          "sandboxpools.agents.navix.sh", "sandboxtemplates.agents.navix.sh",
                          "sandboxtemplates.extensions.agents.x-k8s.io",
                          "sandboxwarmpools.extensions.agents.x-k8s.io"}));
}

// Of the first version.
SchemaPtr crd_schema(std::string_view name) {
  for (const BuiltinCrd& crd : builtin_crds())
    if (crd.name == name)
      return parse_schema(
          *model::find(model::array_at(json(crd.json), {"spec", "versions"})->front(),
                       {"schema", "openAPIV3Schema"}));
  return nullptr;
}

Texts errors_of(const Json& object, const Schema& schema, const Json* old = nullptr) {
  Texts texts;
  for (const auto& error : validate(object, schema, old))
    texts.push_back(error.field + ": " + error.detail);
  return texts;
}

constexpr std::string_view kUnchecked =
    "<nil>: Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation";

// Inputs and answers as a real server has them with the CRDs of agent-sandbox.
TEST(BuiltinCrdsTest, SandboxesAreHeldToTheirSchema) {
  const SchemaPtr schema = crd_schema("sandboxes.agents.x-k8s.io");
  ASSERT_TRUE(schema);
  EXPECT_EQ(errors_of(json(R"({"spec":{"podTemplate":{"spec":{"containers":"x"}}}})"), *schema),
            (Texts{R"(spec.podTemplate.spec.containers: Invalid value: "string": )"
                   R"(spec.podTemplate.spec.containers in body must be of type array: "string")",
                   std::string(kUnchecked)}));
  EXPECT_EQ(errors_of(json(R"({"spec":{}})"), *schema),
            (Texts{"spec.podTemplate: Required value", std::string(kUnchecked)}));
  EXPECT_EQ(
      errors_of(json(R"({"spec":{"operatingMode":"Nope","podTemplate":{"spec":{"containers":
                           [{"name":"main","image":"x"}]}}}})"),
                *schema),
      (Texts{
          R"(spec.operatingMode: Unsupported value: "Nope": supported values: "Running", "Suspended")",
          std::string(kUnchecked)}));
}

TEST(BuiltinCrdsTest, SandboxesAreDefaultedAndPruned) {
  const SchemaPtr schema = crd_schema("sandboxes.agents.x-k8s.io");
  ASSERT_TRUE(schema);
  Json sandbox = json(R"({"metadata":{"name":"pr","bogus":1},"spec":{"foo":1,"operatingMode":null,
      "shutdownTime":null,"podTemplate":{"spec":{"containers":[{"name":"main","image":"x",
      "ports":[{"containerPort":80}],"resources":{"limits":{"cpu":1,"memory":"1Gi"}}}]}}}})");
  Texts unknown;
  prune(sandbox, *schema, &unknown);
  EXPECT_EQ(unknown, (Texts{"metadata.bogus", "spec.foo"}));
  apply_defaults(sandbox, *schema);
  EXPECT_TRUE(model::is_same(
      sandbox,
      json(R"({"metadata":{"name":"pr"},"spec":{"operatingMode":"Running","podTemplate":{"spec":
           {"containers":[{"image":"x","name":"main","ports":[{"containerPort":80,"protocol":"TCP"}],
           "resources":{"limits":{"cpu":1,"memory":"1Gi"}}}]}},"shutdownPolicy":"Retain"}})")))
      << model::to_text(sandbox);
  EXPECT_EQ(errors_of(sandbox, *schema), Texts{});

  Json changed = sandbox;
  EXPECT_EQ(errors_of(changed, *schema, &sandbox), Texts{});
  model::make_object_at(changed, {"spec"})["volumeClaimTemplates"] = json(
      R"([{"metadata":{"name":"d"},"spec":{"accessModes":["ReadWriteOnce"],"resources":
         {"requests":{"storage":"1Gi"}}}}])");
  EXPECT_EQ(errors_of(changed, *schema, &sandbox),
            Texts{"spec: Invalid value: volumeClaimTemplates is immutable"});
  EXPECT_EQ(errors_of(changed, *schema), Texts{});
}

TEST(BuiltinCrdsTest, WarmPoolsHaveNoNegativeSize) {
  const SchemaPtr schema = crd_schema("sandboxwarmpools.extensions.agents.x-k8s.io");
  ASSERT_TRUE(schema);
  EXPECT_EQ(
      errors_of(json(R"({"spec":{"replicas":-4,"sandboxTemplateRef":{"name":"t"}}})"), *schema),
      Texts{"spec.replicas: Invalid value: -4: spec.replicas in body should be greater than or "
            "equal to 0"});
}

}  // namespace
}  // namespace hearth::schema
