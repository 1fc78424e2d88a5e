#include "controllers/blueprint.h"

#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

using apiserver::json;

Json make_template() {
  return json(R"({"metadata":{"name":"py","namespace":"team"},"spec":{
    "podTemplate":{"metadata":{"labels":{"app":"x"}},"spec":{
      "containers":[{"name":"main","image":"python:3.12",
                     "resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}},
    "volumeClaimTemplates":[
      {"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"]}},
      {"metadata":{"name":"logs"},"spec":{"accessModes":["ReadWriteOnce"]}}],
    "service":true}})");
}

// As a pool makes it: owned, and with the hash of what it was made of.
Json make_member(const Json& sandbox_template) {
  const Blueprint blueprint = blueprint_of(sandbox_template);
  Json member = json(R"({"metadata":{"name":"pool-1","labels":{},"ownerReferences":[
    {"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool","name":"pool",
     "uid":"u-1","controller":true}]}})");
  auto& labels = model::make_object_at(member, {"metadata", "labels"});
  labels[model::kTemplateRefHashLabel] = model::name_hash(model::name_of(sandbox_template));
  labels[model::kTemplateHashLabel] = blueprint.hash;
  member.get_object()["spec"] = blueprint.spec;
  return member;
}

using Change = std::function<void(Json& sandbox_template)>;

bool makes_stale(const Change& change) {
  const Json before = make_template();
  const Json member = make_member(before);
  Json after = before;
  change(after);
  return is_stale(member, after, blueprint_of(after));
}

// By a JSON pointer whose indexes have one digit; what is missing is made.
void set(Json& value, std::string_view pointer, Json to) {
  Json* at = &value;
  while (!pointer.empty()) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string_view step = pointer.substr(1, end - 1);
    pointer.remove_prefix(end);
    if (auto* items = at->if_array()) {
      const auto index = static_cast<std::size_t>(step[0] - '0');
      if (index == items->size()) items->emplace_back(nullptr);
      at = &items->at(index);
    } else {
      at = at->is_object() ? &at->get_object()[step] : &at->emplace_object()[step];
    }
  }
  *at = std::move(to);
}

Json pod_spec_of(const Blueprint& blueprint) {
  return *model::find(blueprint.spec, {"podTemplate", "spec"});
}

TEST(Blueprint, CopiesWhatSandboxesAreMadeOf) {
  Json sandbox_template = make_template();
  set(sandbox_template, "/spec/envVarsInjectionPolicy", "Allowed");
  const Json spec = blueprint_of(sandbox_template).spec;
  EXPECT_EQ(spec.as_object().size(), 3U);
  EXPECT_EQ(model::array_at(spec, {"volumeClaimTemplates"})->size(), 2U);
  EXPECT_TRUE(model::is_true_at(spec, {"service"}));
  EXPECT_EQ(model::text_at(spec, {"podTemplate", "metadata", "labels", "app"}), "x");
}

TEST(Blueprint, GivesNoTokenUnlessAsked) {
  Json sandbox_template = make_template();
  EXPECT_FALSE(
      pod_spec_of(blueprint_of(sandbox_template)).at("automountServiceAccountToken").as_bool());
  set(sandbox_template, "/spec/podTemplate/spec/automountServiceAccountToken", true);
  EXPECT_TRUE(
      pod_spec_of(blueprint_of(sandbox_template)).at("automountServiceAccountToken").as_bool());
}

TEST(Blueprint, UsesPublicNameServersUnderTheDefaultPolicyOnly) {
  const auto dns_of = [](const Change& change) {
    Json sandbox_template = make_template();
    change(sandbox_template);
    return std::string(model::text_at(pod_spec_of(blueprint_of(sandbox_template)), {"dnsPolicy"}));
  };
  EXPECT_EQ(dns_of([](Json&) {}), "None");
  EXPECT_EQ(dns_of([](Json& t) { set(t, "/spec/networkPolicyManagement", "Managed"); }), "None");
  EXPECT_EQ(dns_of([](Json& t) { set(t, "/spec/networkPolicyManagement", "Unmanaged"); }), "");
  EXPECT_EQ(dns_of([](Json& t) { set(t, "/spec/networkPolicy", model::JsonObject{}); }), "");
  EXPECT_EQ(dns_of([](Json& t) { set(t, "/spec/podTemplate/spec/dnsPolicy", "ClusterFirst"); }),
            "ClusterFirst");
  EXPECT_EQ(model::to_text(pod_spec_of(blueprint_of(make_template())).at("dnsConfig")),
            R"({"nameservers":["8.8.8.8","1.1.1.1"]})");
}

TEST(Blueprint, HashesDoNotDependOnTheOrderOfMembers) {
  const Json one = json(R"({"spec":{"podTemplate":{"spec":{"a":1,"b":{"c":[1,2],"d":2}}}}})");
  const Json same = json(R"({"spec":{"podTemplate":{"spec":{"b":{"d":2,"c":[1,2]},"a":1}}}})");
  const Json other = json(R"({"spec":{"podTemplate":{"spec":{"b":{"d":2,"c":[2,1]},"a":1}}}})");
  EXPECT_EQ(blueprint_of(one).hash, blueprint_of(same).hash);
  EXPECT_EQ(blueprint_of(one).pod_hash, blueprint_of(same).pod_hash);
  EXPECT_NE(blueprint_of(one).hash, blueprint_of(other).hash);
  EXPECT_EQ(blueprint_of(one).hash.size(), 8U);
}

TEST(Blueprint, ThePodsHashIsOfThePodOnly) {
  Json changed = make_template();
  set(changed, "/spec/service", false);
  EXPECT_EQ(blueprint_of(changed).pod_hash, blueprint_of(make_template()).pod_hash);
  EXPECT_NE(blueprint_of(changed).hash, blueprint_of(make_template()).hash);
}

TEST(Blueprint, HostileTemplatesAreNoReasonToFall) {
  for (const char* text : {"{}", "null", R"({"spec":[]})", R"({"spec":{"podTemplate":3}})"}) {
    const Blueprint blueprint = blueprint_of(json(text));
    EXPECT_TRUE(is_stale(json("{}"), make_template(), blueprint)) << text;
    EXPECT_TRUE(is_stale(json("[]"), json(text), blueprint)) << text;
  }
}

TEST(Staleness, ChangesThatMatter) {
  const Change changes[] = {
      [](Json& t) { set(t, "/spec/podTemplate/spec/containers/0/image", "python:3.13"); },
      [](Json& t) { set(t, "/spec/podTemplate/spec/containers/0/resources/requests/cpu", "2"); },
      [](Json& t) { set(t, "/spec/podTemplate/spec/nodeSelector", {{"disk", "ssd"}}); },
      [](Json& t) { set(t, "/spec/podTemplate/spec/automountServiceAccountToken", true); },
      [](Json& t) { model::erase_at(t, {"spec", "podTemplate", "spec", "containers"}); },
      [](Json& t) { set(t, "/spec/volumeClaimTemplates/2", {{"metadata", {{"name", "more"}}}}); },
      [](Json& t) { set(t, "/spec/volumeClaimTemplates/0/metadata/name", "other"); },
      [](Json& t) { set(t, "/spec/volumeClaimTemplates/0/spec/storageClassName", "fast"); },
      [](Json& t) { model::erase_at(t, {"spec", "volumeClaimTemplates"}); },
      [](Json& t) {
        auto& volumes = t.at_pointer("/spec/volumeClaimTemplates").as_array();
        std::swap(volumes[0], volumes[1]);
      },
      [](Json& t) { set(t, "/spec/service", false); },
      [](Json& t) { model::erase_at(t, {"spec", "service"}); },
      [](Json& t) { set(t, "/spec/networkPolicyManagement", "Unmanaged"); },
      [](Json& t) { set(t, "/spec/networkPolicy", model::JsonObject{}); },
      [](Json& t) { set(t, "/metadata/name", "another"); },
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) EXPECT_TRUE(makes_stale(changes[i])) << i;
}

TEST(Staleness, ChangesThatDoNot) {
  const Change changes[] = {
      [](Json&) {},
      [](Json& t) { set(t, "/metadata/labels", {{"team", "a"}}); },
      [](Json& t) { set(t, "/spec/podTemplate/metadata/labels/app", "y"); },
      [](Json& t) { set(t, "/spec/podTemplate/metadata/annotations", {{"a", "b"}}); },
      [](Json& t) { set(t, "/spec/volumeClaimTemplates/0/metadata/labels", {{"a", "b"}}); },
      [](Json& t) { set(t, "/spec/envVarsInjectionPolicy", "Allowed"); },
      [](Json& t) { set(t, "/spec/volumeClaimTemplatesPolicy", "Allowed"); },
      [](Json& t) { set(t, "/spec/networkPolicyManagement", "Managed"); },
      [](Json& t) { set(t, "/spec/podTemplate/spec/tolerations", model::JsonArray{}); },
      [](Json& t) {
        set(t, "/spec/podTemplate/spec/containers/0/resources/requests/cpu", "1000m");
      },
      [](Json& t) { set(t, "/spec/podTemplate/spec/containers/0/resources/requests/cpu", 1); },
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) EXPECT_FALSE(makes_stale(changes[i])) << i;
}

TEST(Staleness, OurOwnHashIsBelievedAnOrphansIsNot) {
  const Json sandbox_template = make_template();
  const Blueprint blueprint = blueprint_of(sandbox_template);
  Json member = make_member(sandbox_template);
  set(member, "/spec/podTemplate/spec/containers/0/image", "evil");
  EXPECT_FALSE(is_stale(member, sandbox_template, blueprint));
  model::erase_at(member, {"metadata", "ownerReferences"});
  EXPECT_TRUE(is_stale(member, sandbox_template, blueprint));
  EXPECT_FALSE(is_stale(
      [&] {
        Json orphan = make_member(sandbox_template);
        model::erase_at(orphan, {"metadata", "ownerReferences"});
        model::erase_at(orphan, {"metadata", "labels", model::kTemplateHashLabel});
        return orphan;
      }(),
      sandbox_template, blueprint));
}

// A field that templates and Sandboxes share and nobody compares would never be rolled out.
TEST(Staleness, EveryFieldThatIsSharedIsCompared) {
  apiserver::TestServer server;
  const client::ResourceId definitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                       false};
  const auto fields_of = [&](std::string_view name) {
    const Json crd = server.client().get(definitions, "", name);
    std::set<std::string> fields;
    for (const Json& version : crd.at_pointer("/spec/versions").as_array()) {
      if (model::text_at(version, {"name"}) != "v1beta1") continue;
      const auto& spec = version.at_pointer("/schema/openAPIV3Schema/properties/spec/properties");
      for (const auto& member : spec.as_object()) fields.emplace(member.key());
    }
    return fields;
  };
  std::set<std::string> shared;
  const auto of_sandboxes = fields_of("sandboxes.agents.x-k8s.io");
  for (const auto& field : fields_of("sandboxtemplates.extensions.agents.x-k8s.io"))
    if (of_sandboxes.contains(field)) shared.insert(field);
  EXPECT_EQ(shared.size(), 3U);
  for (const std::string& field : shared)
    EXPECT_TRUE(makes_stale([&](Json& t) { model::erase_at(t, {"spec", field}); })) << field;
}

}  // namespace
}  // namespace hearth::controllers
