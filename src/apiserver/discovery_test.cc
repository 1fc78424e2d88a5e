#include "apiserver/discovery.h"

#include <gtest/gtest.h>

#include "apiserver/negotiation.h"
#include "apiserver/views_testing.h"
#include "model/status.h"

namespace hearth::apiserver {
namespace {

Json parsed(std::string_view text) {
  return model::parse_json(text).value;
}

TEST(DiscoveryTest, Legacy) {
  const Groups groups = sample_groups();
  EXPECT_EQ(
      model::to_text(api_versions("127.0.0.1:1")),
      R"({"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"127.0.0.1:1"}]})");
  EXPECT_EQ(
      model::to_text(api_group(groups[2])),
      R"({"kind":"APIGroup","apiVersion":"v1","name":"agents.x-k8s.io","versions":[{"groupVersion":"agents.x-k8s.io/v1beta1","version":"v1beta1"},{"groupVersion":"agents.x-k8s.io/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"agents.x-k8s.io/v1beta1","version":"v1beta1"}})");
  const Json list = api_group_list(groups);
  EXPECT_EQ(model::array_at(list, {"groups"})->size(), 2U);  // not the core group
  EXPECT_EQ(
      model::to_text(api_resource_list(groups[2], groups[2].versions[1])),
      R"({"kind":"APIResourceList","apiVersion":"v1","groupVersion":"agents.x-k8s.io/v1alpha1","resources":[{"name":"sandboxes","singularName":"sandbox","namespaced":true,"kind":"Sandbox","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["sandbox"]},{"name":"sandboxes/status","singularName":"","namespaced":true,"kind":"Sandbox","verbs":["get","patch","update"]}]})");
}

TEST(DiscoveryTest, CoreAndItsSubresources) {
  const Groups groups = sample_groups();
  const Json list = api_resource_list(groups[0], groups[0].versions[0]);
  EXPECT_EQ(model::find(list, {"apiVersion"}), nullptr);
  EXPECT_EQ(model::text_at(list, {"groupVersion"}), "v1");
  std::vector<std::string> names;
  for (const Json& entry : *model::array_at(list, {"resources"}))
    names.emplace_back(model::text_at(entry, {"name"}));
  EXPECT_EQ(names,
            (std::vector<std::string>{"namespaces", "namespaces/finalize", "pods", "pods/eviction",
                                      "pods/exec", "pods/log", "pods/status"}));
  const auto& resources = *model::array_at(list, {"resources"});
  EXPECT_EQ(
      resources[0],
      parsed(
          R"({"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["create","delete","get","list","patch","update","watch"]})"));
  EXPECT_EQ(
      resources[3],
      parsed(
          R"({"name":"pods/eviction","singularName":"","namespaced":true,"group":"policy","version":"v1","kind":"Eviction","verbs":["create"]})"));
  EXPECT_EQ(
      resources[4],
      parsed(
          R"({"name":"pods/exec","singularName":"","namespaced":true,"kind":"PodExecOptions","verbs":["create","get"]})"));
  EXPECT_EQ(verbs_of(*groups[1].versions[0].resources[0]), std::vector<std::string>{"create"});
}

TEST(DiscoveryTest, Aggregated) {
  const Groups groups = sample_groups();
  const Json core = aggregated_discovery(groups, true, DiscoveryForm::v2);
  EXPECT_EQ(model::text_at(core, {"apiVersion"}), "apidiscovery.k8s.io/v2");
  const auto& items = *model::array_at(core, {"items"});
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(model::to_text(*model::find(items[0], {"metadata"})), "{}");

  const Json others = aggregated_discovery(groups, false, DiscoveryForm::v2beta1);
  EXPECT_EQ(model::text_at(others, {"apiVersion"}), "apidiscovery.k8s.io/v2beta1");
  const auto& group = (*model::array_at(others, {"items"}))[1];
  EXPECT_EQ(
      model::to_text((*model::array_at(group, {"versions"}))[1]),
      R"({"version":"v1alpha1","resources":[{"resource":"sandboxes","responseKind":{"group":"agents.x-k8s.io","version":"v1alpha1","kind":"Sandbox"},"scope":"Namespaced","singularResource":"sandbox","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["sandbox"],"subresources":[{"subresource":"status","responseKind":{"group":"agents.x-k8s.io","version":"v1alpha1","kind":"Sandbox"},"verbs":["get","patch","update"]}]}],"freshness":"Current"})");
  const auto& pool =
      (*model::array_at((*model::array_at(group, {"versions"}))[0], {"resources"}))[0];
  EXPECT_EQ(
      model::to_text((*model::array_at(pool, {"subresources"}))[0]),
      R"({"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]})");
  EXPECT_EQ(aggregated_content_type(DiscoveryForm::v2),
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
}

TEST(DiscoveryTest, EtagFollowsTheText) {
  EXPECT_EQ(etag_of("a"), etag_of("a"));
  EXPECT_NE(etag_of("a"), etag_of("b"));
  EXPECT_EQ(etag_of("a").size(), 34U);
}

TEST(DiscoveryTest, RootPaths) {
  const std::string text = model::to_text(root_paths(sample_groups()));
  for (const char* path : {"\"/api\"", "\"/api/v1\"", "\"/apis\"", "\"/apis/agents.x-k8s.io\"",
                           "\"/apis/agents.x-k8s.io/v1alpha1\"", "\"/openapi/v3\"", "\"/version\""})
    EXPECT_NE(text.find(path), std::string::npos) << path;
}

std::string refusal(void (*call)()) {
  try {
    call();
  } catch (const model::StatusError& error) {
    return fmt::format("{} {}", error.status().code, error.what());
  }
  return "accepted";
}

TEST(NegotiationTest, WhatClientsAskFor) {
  EXPECT_EQ(negotiate("").shape, Shape::object);
  EXPECT_FALSE(negotiate("*/*").is_yaml);
  EXPECT_TRUE(negotiate("application/yaml").is_yaml);
  EXPECT_EQ(negotiate("application/yaml").content_type(), "application/yaml");
  EXPECT_FALSE(negotiate("application/vnd.kubernetes.protobuf,application/json").is_yaml);
  EXPECT_FALSE(negotiate("application/vnd.kubernetes.protobuf").is_yaml);
  const Wanted table = negotiate(
      "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;"
      "g=meta.k8s.io,application/json");
  EXPECT_EQ(table.shape, Shape::table);
  EXPECT_EQ(table.meta_version, "v1");
  EXPECT_EQ(negotiate("application/json;as=Table;v=v1beta1;g=meta.k8s.io").meta_version, "v1beta1");
  EXPECT_EQ(negotiate("application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;"
                      "g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;"
                      "g=meta.k8s.io;v=v1,application/json")
                .shape,
            Shape::metadata);
  // What is not known is passed over, and a smaller q comes later.
  EXPECT_EQ(negotiate("application/json;as=Chair;v=v1;g=meta.k8s.io, application/json").shape,
            Shape::object);
  EXPECT_TRUE(negotiate("application/json;q=0.5, application/yaml").is_yaml);
  EXPECT_FALSE(negotiate("application/yaml;q=0, application/json").is_yaml);
}

TEST(NegotiationTest, WhatIsNotAcceptable) {
  constexpr const char* kAnswer =
      "406 only the following media types are accepted: application/json, application/yaml, "
      "application/vnd.kubernetes.protobuf";
  EXPECT_EQ(refusal([] { negotiate("text/html"); }), kAnswer);
  EXPECT_EQ(refusal([] { negotiate("application/cbor"); }), kAnswer);
  EXPECT_EQ(refusal([] { negotiate("application/json;as=Table;v=v2;g=meta.k8s.io"); }), kAnswer);
}

TEST(NegotiationTest, Discovery) {
  EXPECT_EQ(negotiate_discovery(""), DiscoveryForm::legacy);
  EXPECT_EQ(negotiate_discovery("application/json"), DiscoveryForm::legacy);
  EXPECT_EQ(negotiate_discovery("application/json;g=apidiscovery.k8s.io;v=v2;as="
                                "APIGroupDiscoveryList,application/json"),
            DiscoveryForm::v2);
  EXPECT_EQ(negotiate_discovery("application/json;g=apidiscovery.k8s.io;v=v2beta1;as="
                                "APIGroupDiscoveryList,application/json"),
            DiscoveryForm::v2beta1);
  EXPECT_EQ(negotiate_discovery("application/json;g=apidiscovery.k8s.io;v=v3;as="
                                "APIGroupDiscoveryList,application/json"),
            DiscoveryForm::legacy);
}

TEST(NegotiationTest, Bodies) {
  EXPECT_EQ(body_format(""), BodyFormat::json);
  EXPECT_EQ(body_format("application/json; charset=utf-8"), BodyFormat::json);
  EXPECT_EQ(body_format("Application/YAML"), BodyFormat::yaml);
  EXPECT_EQ(body_format("application/vnd.kubernetes.protobuf"), BodyFormat::protobuf);
  EXPECT_EQ(refusal([] { body_format("text/plain"); }),
            "415 the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml, application/vnd.kubernetes.protobuf");
}

TEST(NegotiationTest, Patches) {
  EXPECT_EQ(patch_format("application/merge-patch+json", false), PatchFormat::merge);
  EXPECT_EQ(patch_format("application/json-patch+json", false), PatchFormat::json_patch);
  EXPECT_EQ(patch_format("application/apply-patch+yaml", false), PatchFormat::apply);
  EXPECT_EQ(patch_format("application/strategic-merge-patch+json", true), PatchFormat::strategic);
  EXPECT_EQ(refusal([] { patch_format("application/strategic-merge-patch+json", false); }),
            "415 the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, "
            "application/apply-patch+yaml");
  EXPECT_EQ(refusal([] { patch_format("application/json", true); }),
            "415 the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, "
            "application/strategic-merge-patch+json, application/apply-patch+yaml");
}

TEST(NegotiationTest, PeopleGetItIndented) {
  EXPECT_TRUE(wants_pretty("true", ""));
  EXPECT_TRUE(wants_pretty("1", ""));
  EXPECT_FALSE(wants_pretty("false", "curl/8"));
  EXPECT_TRUE(wants_pretty("", "curl/8"));
  EXPECT_TRUE(wants_pretty("", "Mozilla/5.0 (X11)"));
  EXPECT_FALSE(wants_pretty("", "kubectl/v1.36"));
}

}  // namespace
}  // namespace hearth::apiserver
