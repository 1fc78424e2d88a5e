#include "apiserver/open_api.h"

#include <gtest/gtest.h>

#include "apiserver/views_testing.h"

namespace hearth::apiserver {
namespace {

using schema::Grain;
using schema::Schema;
using schema::Type;

schema::SchemaPtr text(std::string description = {}) {
  Schema schema;
  schema.type = Type::string;
  schema.description = std::move(description);
  return make_schema(std::move(schema));
}

const Schema& object_meta() {
  static const schema::SchemaPtr kMeta = [] {
    Schema meta;
    meta.type = Type::object;
    meta.name = "meta.ObjectMeta";
    meta.description = "Metadata of an object";
    meta.properties["name"] = text();
    return make_schema(std::move(meta));
  }();
  return *kMeta;
}

schema::SchemaPtr pod_schema() {
  Schema container;
  container.type = Type::object;
  container.name = "core.Container";
  container.description = "A container";
  container.properties["name"] = text("Its name");
  container.required = {"name"};
  Schema containers;
  containers.type = Type::array;
  containers.grain = Grain::keyed;
  containers.list_keys = {"name"};
  containers.patch_strategy = "merge";
  containers.patch_merge_key = "name";
  containers.items = make_schema(std::move(container));
  Schema spec;
  spec.type = Type::object;
  spec.name = "core.PodSpec";
  spec.description = "What is to run";
  spec.properties["containers"] = make_schema(std::move(containers));
  Schema pod;
  pod.type = Type::object;
  pod.name = "core.Pod";
  pod.description = "Containers that run together";
  pod.properties["metadata"] = make_schema(object_meta());
  pod.properties["spec"] = make_schema(std::move(spec));
  return make_schema(std::move(pod));
}

std::vector<Catalogue::Group> groups() {
  Resource pod = pods();
  pod.schema = pod_schema();
  Resource sandbox = sandboxes();
  Schema schema;
  schema.type = Type::object;
  schema.source = model::parse_json(R"({"type":"object","description":"A sandbox","properties":{
      "metadata":{"type":"object"},"spec":{"type":"object","properties":{"replicas":{
      "type":"integer","format":"int32","minimum":0}}}}})")
                      .value;
  sandbox.schema = make_schema(std::move(schema));
  return {{"", {{"v1", {shared(std::move(pod))}, false}}},
          {"agents.x-k8s.io", {{"v1beta1", {shared(std::move(sandbox))}, true}}}};
}

Json document(std::size_t group) {
  const auto all = groups();
  return open_api_document(all[group], all[group].versions[0], object_meta());
}

const Json& at(const Json& value, model::Path path) {
  static const Json kNothing;
  const Json* found = model::find(value, path);
  return found ? *found : kNothing;
}

TEST(OpenApiTest, IndexNamesEveryDocument) {
  const OpenApi api(groups(), "digest", object_meta());
  const Json index = model::parse_json(api.index()).value;
  EXPECT_EQ(model::text_at(index, {"paths", "api/v1", "serverRelativeURL"}),
            "/openapi/v3/api/v1?hash=" + api.hash("api/v1"));
  ASSERT_TRUE(model::find(index, {"paths", "apis/agents.x-k8s.io/v1beta1"}));
  EXPECT_EQ(api.document("apis/other/v1"), nullptr);
  EXPECT_EQ(api.hash("apis/other/v1"), "");
  EXPECT_EQ(api.document("api/v1"), api.document("api/v1"));  // made once
  EXPECT_NE(api.hash("api/v1"), OpenApi(groups(), "other", object_meta()).hash("api/v1"));
  model::parse_json(*api.document("api/v1"));
}

TEST(OpenApiTest, TypesAreReferredTo) {
  const Json schemas = at(document(0), {"components", "schemas"});
  EXPECT_EQ(
      model::to_text(at(schemas, {"core.Pod"})),
      R"({"description":"Containers that run together","type":"object","properties":{"metadata":{"allOf":[{"$ref":"#/components/schemas/meta.ObjectMeta"}],"description":"Metadata of an object"},"spec":{"allOf":[{"$ref":"#/components/schemas/core.PodSpec"}],"description":"What is to run"}},"x-kubernetes-group-version-kind":[{"group":"","kind":"Pod","version":"v1"}]})");
  EXPECT_EQ(
      model::to_text(at(schemas, {"core.PodSpec", "properties", "containers"})),
      R"({"type":"array","items":{"$ref":"#/components/schemas/core.Container"},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"x-kubernetes-patch-strategy":"merge","x-kubernetes-patch-merge-key":"name"})");
  EXPECT_EQ(
      model::to_text(at(schemas, {"core.Container"})),
      R"({"description":"A container","type":"object","properties":{"name":{"description":"Its name","type":"string"}},"required":["name"]})");
}

TEST(OpenApiTest, CustomKindsHaveMetadata) {
  const Json schemas = at(document(1), {"components", "schemas"});
  const Json& sandbox = at(schemas, {"io.x-k8s.agents.v1beta1.Sandbox"});
  EXPECT_EQ(model::to_text(at(sandbox, {"properties", "spec", "properties", "replicas"})),
            R"({"type":"integer","format":"int32","minimum":0})");
  EXPECT_EQ(model::to_text(at(sandbox, {"properties", "metadata", "allOf"})),
            R"([{"$ref":"#/components/schemas/meta.ObjectMeta"}])");
  EXPECT_EQ(model::text_at(sandbox, {"properties", "kind", "type"}), "string");
  EXPECT_EQ(model::to_text(at(sandbox, {"x-kubernetes-group-version-kind"})),
            R"([{"group":"agents.x-k8s.io","kind":"Sandbox","version":"v1beta1"}])");
  EXPECT_TRUE(model::find(schemas, {"meta.ObjectMeta", "properties", "name"}));
}

// What kubectl apply looks for before it leaves validation to the server.
TEST(OpenApiTest, PatchTellsWhatItTakes) {
  const auto patch = [](std::size_t group, std::string_view path) {
    return at(document(group), {"paths", path, "patch"});
  };
  const Json pod = patch(0, "/api/v1/namespaces/{namespace}/pods/{name}");
  const Json sandbox =
      patch(1, "/apis/agents.x-k8s.io/v1beta1/namespaces/{namespace}/sandboxes/{name}");
  for (const Json& operation : {pod, sandbox}) {
    bool has_validation = false;
    for (const Json& parameter : *model::array_at(operation, {"parameters"}))
      has_validation |= model::text_at(parameter, {"name"}) == "fieldValidation" &&
                        model::text_at(parameter, {"in"}) == "query";
    EXPECT_TRUE(has_validation);
  }
  EXPECT_EQ(model::to_text(at(sandbox, {"x-kubernetes-group-version-kind"})),
            R"({"group":"agents.x-k8s.io","kind":"Sandbox","version":"v1beta1"})");
  constexpr std::string_view kStrategic = "application/strategic-merge-patch+json";
  EXPECT_TRUE(model::find(pod, {"requestBody", "content", kStrategic}));
  EXPECT_FALSE(model::find(sandbox, {"requestBody", "content", kStrategic}));
  EXPECT_TRUE(model::find(sandbox, {"requestBody", "content", "application/merge-patch+json"}));
}

TEST(OpenApiTest, PathsAndOperations) {
  const Json paths = at(document(0), {"paths"});
  EXPECT_TRUE(model::find(paths, {"/api/v1/pods", "get"}));
  EXPECT_FALSE(model::find(paths, {"/api/v1/pods", "post"}));
  for (const char* method : {"get", "post", "delete"})
    EXPECT_TRUE(model::find(paths, {"/api/v1/namespaces/{namespace}/pods", method})) << method;
  for (const char* method : {"get", "put", "patch", "delete"})
    EXPECT_TRUE(model::find(paths, {"/api/v1/namespaces/{namespace}/pods/{name}", method}))
        << method;
  EXPECT_TRUE(model::find(paths, {"/api/v1/namespaces/{namespace}/pods/{name}/status", "patch"}));
}

TEST(OpenApiTest, TheOldDocumentNamesEveryKindThatCanBePatched) {
  const std::string document = OpenApi(sample_groups(), "d", object_meta()).old_document();
  EXPECT_TRUE(
      document.starts_with("\x0a\x03"
                           "2.0"));
  for (const char* part :
       {"/api/v1/namespaces/{namespace}/pods/{name}", "/api/v1/namespaces/{name}",
        "/apis/agents.x-k8s.io/v1beta1/namespaces/{namespace}/sandboxes/{name}",
        R"({group: "agents.x-k8s.io", kind: "Sandbox", version: "v1beta1"})",
        R"({group: "", kind: "Pod", version: "v1"})", "fieldValidation", "dryRun"})
    EXPECT_NE(document.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace hearth::apiserver
