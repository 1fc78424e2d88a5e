#include "apiserver/catalogue.h"

#include <gtest/gtest.h>

#include "apiserver/crds.h"
#include "apiserver/kinds_testing_internal.h"
#include "schema/builtin.h"

namespace hearth::apiserver {
namespace {

constexpr std::string_view kNow = "2026-01-02T03:04:05Z";

const Strategy& crds() {
  return *find_strategy("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
}

std::string version_text(std::string_view name, bool storage, std::string_view more = {}) {
  return fmt::format(R"({{"name":"{}","served":true,"storage":{},"schema":{{"openAPIV3Schema":
    {{"type":"object","properties":{{"spec":{{"type":"object"}}}}}}}}{}}})",
                     name, storage, more);
}

std::string crd_text(std::string_view plural, std::string_view kind, std::string_view versions,
                     std::string_view group = "example.com", std::string_view names = {}) {
  return fmt::format(R"({{"metadata":{{"name":"{0}.{3}"}},"spec":{{"group":"{3}",
    "scope":"Namespaced","names":{{"plural":"{0}","kind":"{1}"{4}}},"versions":[{2}]}}}})",
                     plural, kind, versions, group, names);
}

Json crd(std::string_view plural, std::string_view kind) {
  return created(crds(), crd_text(plural, kind, version_text("v1", true)));
}

std::string_view condition(const Json& status, std::size_t index, std::string_view member) {
  return model::text_at(status.at("conditions").at(index), {member});
}

TEST(CrdStrategy, FillsInNames) {
  const Json object = crd("foos", "Foo");
  EXPECT_EQ(model::to_text(object.at("spec").at("names")),
            R"({"plural":"foos","kind":"Foo","singular":"foo","listKind":"FooList"})");
  EXPECT_EQ(model::to_text(object.at("spec").at("conversion")), R"({"strategy":"None"})");
  EXPECT_EQ(model::to_text(object.at("status").at("storedVersions")), R"(["v1"])");
  EXPECT_EQ(sentences(crds().validate(object, nullptr, "")), Sentences{});
}

TEST(CrdStrategy, RefusesNamesThatDoNotFit) {
  Json object = crd("foos", "Foo");
  object.at("metadata").as_object()["name"] = "foos";
  EXPECT_EQ(
      sentences(crds().validate(object, nullptr, "")),
      Sentences{
          R"(metadata.name: Invalid value: "foos": must be spec.names.plural+"."+spec.group)"});
  EXPECT_EQ(refusals(crds(), crd_text("foos", "Foo", version_text("v1", true), "nodot")),
            Sentences{R"(spec.group: Invalid value: "nodot": should be a domain with at least one )"
                      "dot"});
  EXPECT_EQ(refusals(crds(), crd_text("foos", "Foo", version_text("v1", true), "x.k8s.io")).size(),
            1U);
}

TEST(CrdStrategy, WantsExactlyOneStorageVersion) {
  EXPECT_EQ(refusals(crds(), crd_text("foos", "Foo", version_text("v1", false))),
            Sentences{R"(spec.versions: Invalid value: ["v1"]: must have exactly one version )"
                      "marked as storage version"});
  EXPECT_EQ(
      refusals(crds(),
               crd_text("foos", "Foo", version_text("v1", true) + "," + version_text("v1", true))),
      (Sentences{R"(spec.versions: Invalid value: ["v1","v1"]: must contain unique version )"
                 "names",
                 R"(spec.versions: Invalid value: ["v1","v1"]: must have exactly one version )"
                 "marked as storage version"}));
}

TEST(CrdStrategy, WantsASchemaThatCanBeRead) {
  EXPECT_EQ(
      refusals(crds(), crd_text("foos", "Foo", R"({"name":"v1","served":true,"storage":true})")),
      Sentences{"spec.versions[0].schema.openAPIV3Schema: Required value"});
  const Sentences told =
      refusals(crds(), crd_text("foos", "Foo", R"({"name":"v1","served":true,"storage":true,
        "schema":{"openAPIV3Schema":{"type":"nonsense"}}})"));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with("spec.versions[0].schema.openAPIV3Schema: Invalid value: "));
}

TEST(CrdStrategy, ChecksColumnsScaleAndWarnings) {
  EXPECT_EQ(
      refusals(crds(), crd_text("foos", "Foo", version_text("v1", true, R"(,
        "deprecationWarning":"gone\nX: y",
        "additionalPrinterColumns":[{"name":"A","type":"text","jsonPath":".a"}],
        "subresources":{"scale":{"specReplicasPath":".status.a"}})"))),
      (Sentences{
          R"(spec.versions[0].deprecationWarning: Invalid value: "gone\nX: y": can only be set )"
          "for deprecated versions",
          R"(spec.versions[0].deprecationWarning: Invalid value: "gone\nX: y": must only contain )"
          "printable UTF-8 characters",
          R"(spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "text": must be one )"
          "of boolean,date,integer,number,string",
          R"(spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".status.a": )"
          "should be a json path under .spec",
          "spec.versions[0].subresources.scale.statusReplicasPath: Required value"}));
}

TEST(CrdStrategy, KeepsWhatObjectsDependOn) {
  Json old = crd("foos", "Foo");
  old.as_object()["status"] = crd_status(old, {}, kNow);
  Json next = created(crds(), crd_text("foos", "Bar", version_text("v2", true)));
  crds().prepare_update(next, old);
  const Sentences told = sentences(crds().validate(next, &old, ""));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], R"(spec.names.kind: Invalid value: "Bar": field is immutable)");
  EXPECT_TRUE(told[1].starts_with(
      R"(status.storedVersions[0]: Invalid value: "v1": missing from spec.versions)"));
}

TEST(CrdStrategy, CallsNoWebhooks) {
  Json object = created(
      crds(),
      crd_text("foos", "Foo", version_text("v1", true) + "," + version_text("v1beta1", false)));
  object.at("spec").as_object()["conversion"] =
      json(R"({"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"]}})");
  EXPECT_EQ(sentences(crds().validate(object, nullptr, "")),
            Sentences{"spec.conversion.strategy: Forbidden: this server calls no conversion "
                      "webhooks: serve one version, or use None"});
}

TEST(CrdStatus, EstablishesNamesThatAreFree) {
  const Json object = crd("foos", "Foo");
  const Json status = crd_status(object, {}, kNow);
  EXPECT_TRUE(model::is_same(status, json(R"({"conditions":[
    {"type":"NamesAccepted","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z",
     "reason":"NoConflicts","message":"no conflicts found"},
    {"type":"Established","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z",
     "reason":"InitialNamesAccepted","message":"the initial names have been accepted"}],
    "acceptedNames":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList"},
    "storedVersions":["v1"]})")))
      << model::to_text(status);
}

TEST(CrdStatus, RefusesNamesOfOthers) {
  Json first = crd("foos", "Foo");
  first.as_object()["status"] = crd_status(first, {}, kNow);
  Json second = crd("bars", "Foo");
  const Json status = crd_status(second, {first}, kNow);
  EXPECT_EQ(condition(status, 0, "status"), "False");
  EXPECT_EQ(condition(status, 0, "reason"), "ListKindConflict");
  EXPECT_EQ(condition(status, 0, "message"), R"("FooList" is already in use)");
  EXPECT_EQ(condition(status, 1, "status"), "False");
  EXPECT_EQ(condition(status, 1, "reason"), "NotAccepted");
  EXPECT_EQ(model::text_at(status, {"acceptedNames", "plural"}), "bars");

  second.as_object()["status"] = status;
  const Json later = crd_status(second, {}, "2026-01-02T03:04:06Z");
  EXPECT_EQ(condition(later, 1, "status"), "True");
  EXPECT_EQ(condition(later, 1, "lastTransitionTime"), "2026-01-02T03:04:06Z");
}

TEST(CrdStatus, KeepsTheTimeOfWhatDidNotChange) {
  Json object = crd("foos", "Foo");
  object.as_object()["status"] = crd_status(object, {}, kNow);
  EXPECT_TRUE(model::is_same(object.at("status"), crd_status(object, {}, "2030-01-01T00:00:00Z")));
}

TEST(CrdStatus, SaysWhyACrdIsNotServed) {
  const Json status = crd_status(crd("foos", "Foo"), {}, kNow, "schema of the wrong kind");
  EXPECT_EQ(condition(status, 1, "status"), "False");
  EXPECT_EQ(condition(status, 1, "message"), "schema of the wrong kind");
}

TEST(Versions, AreOrderedAsKubernetesDoes) {
  const std::vector<std::string_view> order = {"v10",      "v2",      "v1",        "v11beta2",
                                               "v10beta3", "v3beta1", "v12alpha1", "v11alpha2",
                                               "foo1",     "foo10"};
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    EXPECT_TRUE(is_preferred_version(order[i], order[i + 1])) << order[i];
    EXPECT_FALSE(is_preferred_version(order[i + 1], order[i])) << order[i];
  }
  EXPECT_FALSE(is_preferred_version("v1", "v1"));
}

TEST(Catalogue, ServesTheBuiltInKinds) {
  const Catalogue catalogue({});
  const ResourcePtr pods = catalogue.find("", "v1", "pods");
  ASSERT_TRUE(pods);
  EXPECT_EQ(pods->list_kind, "PodList");
  EXPECT_EQ(pods->short_names, std::vector<std::string>{"po"});
  EXPECT_EQ(pods->subresources,
            (std::vector<std::string>{"attach", "binding", "ephemeralcontainers", "eviction",
                                      "exec", "log", "portforward"}));
  EXPECT_TRUE(pods->has_status && pods->built_in && pods->namespaced && pods->schema);
  EXPECT_EQ(pods->strategy, find_strategy("", "v1", "Pod"));
  EXPECT_EQ(catalogue.groups().front().name, "");
  EXPECT_FALSE(catalogue.find("", "v1", "deployments"));
  EXPECT_FALSE(catalogue.find("apps", "v1", "deployments"));
  for (const ResourcePtr& resource : catalogue.stored()) {
    EXPECT_TRUE(resource->strategy && resource->schema) << resource->plural;
    EXPECT_EQ(catalogue.storage(resource->store_name), resource);
  }
}

TEST(Catalogue, KeepsEventsOnce) {
  const Catalogue catalogue({});
  const ResourcePtr view = catalogue.find("events.k8s.io", "v1", "events");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->store_name, "events");
  EXPECT_EQ(catalogue.storage("events"), catalogue.find("", "v1", "events"));
  EXPECT_FALSE(catalogue.storage("events.events.k8s.io"));
  Json event = json(R"({"apiVersion":"events.k8s.io/v1","kind":"Event","note":"x"})");
  to_storage(*view, event);
  EXPECT_EQ(model::text_at(event, {"apiVersion"}), "v1");
  EXPECT_EQ(model::text_at(event, {"message"}), "x");
}

TEST(Catalogue, KnowsReviewsThatAreNotKept) {
  const Catalogue catalogue({});
  const ResourcePtr review =
      catalogue.find("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
  ASSERT_TRUE(review);
  EXPECT_TRUE(review->create_only);
  EXPECT_FALSE(review->namespaced);
  EXPECT_TRUE(review->schema);
  EXPECT_FALSE(catalogue.storage(review->store_name));
}

TEST(Catalogue, ServesCrds) {
  const Catalogue catalogue({created(
      crds(), crd_text("foos", "Foo",
                       version_text("v1alpha1", false, R"(,"deprecated":true)") + "," +
                           version_text("v1", true, R"(,"subresources":{"status":{},"scale":{
                     "specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},
                     "selectableFields":[{"jsonPath":".spec.color"}],
                     "additionalPrinterColumns":[{"name":"N","type":"integer","priority":1,
                       "jsonPath":".spec.n"}])"),
                       "example.com", R"(,"shortNames":["f"],"categories":["all"])"))});

  const Catalogue::Group* group = catalogue.find_group("example.com");
  ASSERT_TRUE(group);
  ASSERT_EQ(group->versions.size(), 2U);
  EXPECT_EQ(group->versions[0].version, "v1");
  EXPECT_TRUE(group->versions[0].from_crds);
  const ResourcePtr foos = catalogue.find("example.com", "v1", "foos");
  ASSERT_TRUE(foos);
  EXPECT_EQ(foos->singular, "foo");
  EXPECT_EQ(foos->list_kind, "FooList");
  EXPECT_EQ(foos->short_names, std::vector<std::string>{"f"});
  EXPECT_EQ(foos->selectable_fields, std::vector<std::string>{"spec.color"});
  EXPECT_TRUE(foos->has_status);
  ASSERT_TRUE(foos->scale);
  EXPECT_EQ(foos->scale->spec_replicas, ".spec.n");
  ASSERT_EQ(foos->columns.size(), 1U);
  EXPECT_EQ(foos->columns[0].priority, 1);
  EXPECT_EQ(foos->deprecation_warning, "");

  const ResourcePtr old = catalogue.find("example.com", "v1alpha1", "foos");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->deprecation_warning,
            "example.com/v1alpha1 Foo is deprecated; use example.com/v1 Foo");
  EXPECT_EQ(old->store_name, "foos.example.com");
  EXPECT_EQ(old->storage_version, "v1");
  EXPECT_EQ(catalogue.storage("foos.example.com"), foos);
  EXPECT_EQ(catalogue.find_kind("example.com", "", "Foo"), foos);
  EXPECT_EQ(catalogue.find_kind("example.com", "v1alpha1", "Foo"), old);
  EXPECT_TRUE(old->columns.empty());

  Json object = json(R"({"apiVersion":"example.com/v1alpha1","kind":"Foo","spec":{"a":1}})");
  to_storage(*old, object);
  EXPECT_EQ(model::text_at(object, {"apiVersion"}), "example.com/v1");
  from_storage(*old, object);
  EXPECT_EQ(model::text_at(object, {"apiVersion"}), "example.com/v1alpha1");
}

TEST(Catalogue, LeavesOutWhatItCannotServe) {
  Json clashing = crd("bars", "Foo");
  Json broken = created(crds(), crd_text("bads", "Bad", R"({"name":"v1","served":true,
    "storage":true,"schema":{"openAPIV3Schema":{"type":"nonsense"}}})"));
  Json refused = crd("nots", "Not");
  refused.as_object()["status"] = json(R"({"conditions":[{"type":"Established",
    "status":"False"}]})");
  const Catalogue catalogue({crd("foos", "Foo"), clashing, broken, refused});
  EXPECT_TRUE(catalogue.find("example.com", "v1", "bars"));
  EXPECT_FALSE(catalogue.find("example.com", "v1", "foos")) << "by name, bars came first";
  EXPECT_FALSE(catalogue.find("example.com", "v1", "bads"));
  EXPECT_FALSE(catalogue.find("example.com", "v1", "nots"));
  EXPECT_EQ(catalogue.problems().size(), 2U);
  EXPECT_TRUE(catalogue.problems().contains("bads.example.com"));
}

TEST(Catalogue, HasADigestOfWhatItShows) {
  const std::string empty = Catalogue({}).digest();
  EXPECT_EQ(empty, Catalogue({}).digest());
  const std::string with = Catalogue({crd("foos", "Foo")}).digest();
  EXPECT_NE(empty, with);
  Json stored = crd("foos", "Foo");
  stored.at("metadata").as_object()["uid"] = "u";
  stored.at("metadata").as_object()["generation"] = 1;
  const std::string first = Catalogue({stored}).digest();
  stored.at("metadata").as_object()["generation"] = 2;
  EXPECT_NE(first, Catalogue({stored}).digest());
}

TEST(Catalogue, ReadsUnchangedSchemasOnce) {
  const std::vector<Json> all = {crd("foos", "Foo")};
  const Catalogue first(all);
  const Catalogue second(all, &first);
  EXPECT_EQ(first.find("example.com", "v1", "foos")->schema,
            second.find("example.com", "v1", "foos")->schema);
}

TEST(Catalogue, ServesTheCrdsThatComeWithUs) {
  std::vector<Json> all;
  for (const schema::BuiltinCrd& one : schema::builtin_crds()) {
    Json object = json(one.json);
    crds().fill_in(object);
    crds().prepare_create(object);
    EXPECT_EQ(sentences(crds().validate(object, nullptr, "")), Sentences{}) << one.name;
    object.as_object()["status"] = crd_status(object, all, kNow);
    EXPECT_TRUE(is_established(object)) << one.name;
    all.push_back(std::move(object));
  }
  if (all.empty()) GTEST_SKIP() << "none come with us";
  const Catalogue catalogue(all);
  EXPECT_TRUE(catalogue.problems().empty());
  const ResourcePtr old = catalogue.find("agents.x-k8s.io", "v1alpha1", "sandboxes");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->deprecation_warning,
            "agents.x-k8s.io/v1alpha1 Sandbox is deprecated; use agents.x-k8s.io/v1beta1 Sandbox "
            "instead");
  Json sandbox = json(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s"},"spec":{"replicas":0}})");
  to_storage(*old, sandbox);
  EXPECT_EQ(model::text_at(sandbox, {"apiVersion"}), "agents.x-k8s.io/v1beta1");
  EXPECT_EQ(model::text_at(sandbox, {"spec", "operatingMode"}), "Suspended");
  EXPECT_EQ(catalogue.storage("sandboxes.agents.x-k8s.io")->version, "v1beta1");
}

}  // namespace
}  // namespace hearth::apiserver
