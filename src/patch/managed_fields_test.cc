// Owners of fields after writes that are no applies.
#include "patch/managed_fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/time_text.h"
#include "model/status.h"
#include "patch/owners_internal.h"
#include "patch/patch.h"
#include "patch/test_schemas_internal.h"

namespace hearth::patch {
namespace {

constexpr std::string_view kVersion = "agents.x-k8s.io/v1beta1";

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

Manager manager(std::string name, int second = 0, std::string subresource = "") {
  return {.name = std::move(name),
          .subresource = std::move(subresource),
          .api_version = std::string(kVersion),
          .time = Time(std::chrono::seconds(1'700'000'000 + second))};
}

Json created(std::string_view text, const Schema& schema = test_sandbox()) {
  Json object = json(text);
  record_update(nullptr, object, schema, manager("creator"));
  return object;
}

Json updated(const Json& before, std::string_view merge, const Manager& by,
             const Schema& schema = test_sandbox()) {
  Json after = before;
  const Json changes = json(merge);
  for (const auto& [name, value] : changes.get_object()) {
    if (name == "metadata")
      for (const auto& [member, below] : value.get_object())
        after.get_object()["metadata"].get_object()[member] = below;
    else
      after.get_object()[name] = value;
  }
  record_update(&before, after, schema, by);
  return after;
}

TEST(ManagedFields, ANewCustomObjectBelongsToItsCreator) {
  const Json object = created(
      R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"sb1",
          "namespace":"default","uid":"u","resourceVersion":"1","generation":1,
          "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},
          "labels":{"a":"b"}},"spec":{"operatingMode":"Running","podTemplate":{"spec":
          {"containers":[{"command":["sleep","3600"],"image":"busybox","name":"main"}]}}}})");

  EXPECT_EQ(owners(object),
            R"(creator Update {"f:metadata":{"f:annotations":{".":{},)"
            R"("f:kubectl.kubernetes.io/last-applied-configuration":{}},)"
            R"("f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:operatingMode":{},)"
            R"("f:podTemplate":{".":{},"f:spec":{".":{},"f:containers":{".":{},)"
            R"("k:{\"name\":\"main\"}":{".":{},"f:command":{},"f:image":{},"f:name":{}}}}}}})");
  const Json& entry = model::array_at(object, {"metadata", "managedFields"})->front();
  EXPECT_EQ(model::text_at(entry, {"apiVersion"}), kVersion);
  EXPECT_EQ(model::text_at(entry, {"fieldsType"}), "FieldsV1");
  EXPECT_EQ(model::text_at(entry, {"time"}), "2023-11-14T22:13:20Z");
}

TEST(ManagedFields, StructsOfABuiltInKindAreNobodys) {
  const Json object = created(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1","labels":{"app":"p1"}},
          "spec":{"containers":[{"name":"main","image":"x","resources":{},
          "ports":[{"name":"http","containerPort":8080}]}]}})",
      test_pod());

  EXPECT_EQ(owners(object),
            R"(creator Update {"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":)"
            R"({"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{},)"
            R"("f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},)"
            R"("f:containerPort":{},"f:name":{}}},"f:resources":{}}}}})");
}

TEST(ManagedFields, WhoChangesAFieldOwnsIt) {
  const Json before = created(
      R"({"metadata":{"labels":{"app":"p1"}},"spec":{"operatingMode":"Running","tags":["a"]}})");

  const Json after = updated(before, R"({"metadata":{"labels":{"only":"1"}},
                                         "spec":{"operatingMode":"Suspended","tags":["a"]}})",
                             manager("q", 5));

  EXPECT_EQ(
      owners(after),
      R"(creator Update {"f:metadata":{"f:labels":{}},"f:spec":{".":{},)"
      R"("f:tags":{".":{},"v:\"a\"":{}}}})"
      "\n"
      R"(q Update {"f:metadata":{"f:labels":{"f:only":{}}},"f:spec":{"f:operatingMode":{}}})");
}

TEST(ManagedFields, AnEntryThatOwnsNothingGoes) {
  const Json before = created(R"({"metadata":{},"spec":{}})");
  ASSERT_EQ(owners(before), R"(creator Update {"f:spec":{}})");

  Json after = json(R"({"metadata":{}})");
  record_update(&before, after, test_sandbox(), manager("q", 1));
  EXPECT_EQ(owners(after), "none");
}

TEST(ManagedFields, NoChangeIsNoChange) {
  const Json before = created(R"({"metadata":{"labels":{"a":"b"}},"spec":{"tags":["x"]}})");
  Json after = before;
  record_update(&before, after, test_sandbox(), manager("q", 50));
  EXPECT_EQ(after, before);

  // Neither for a client that does not send managedFields back.
  model::erase_at(after, {"metadata", "managedFields"});
  record_update(&before, after, test_sandbox(), manager("q", 50));
  EXPECT_TRUE(model::is_same(after, before));
}

TEST(ManagedFields, WhatAPatchNamesIsAllThatIsLookedAt) {
  const Json before = created(
      R"({"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"operatingMode":"Running","tags":["x"]}})");
  for (const char* text :
       {R"({})", R"({"metadata":{"labels":{"a":"c"}}})", R"({"metadata":{"labels":{"a":null}}})",
        R"({"metadata":{"labels":null}})", R"({"metadata":{"labels":{"e":"f"}},"spec":null})",
        R"({"spec":{"tags":["x","y"],"operatingMode":null}})", R"({"spec":{"tags":{"a":1}}})",
        R"({"spec":{"podTemplate":{"spec":{"containers":[{"name":"main"}]}}}})",
        R"({"status":{}})"}) {
    SCOPED_TRACE(text);
    const Json patch = json(text);
    Json whole = before;
    apply_merge_patch(whole, patch);
    Json touched = whole;
    record_update(&before, whole, test_sandbox(), manager("q", 1));
    record_update(&before, touched, test_sandbox(), manager("q", 1), model::Touched(patch));
    EXPECT_EQ(owners(touched), owners(whole));
  }
}

TEST(ManagedFields, OneManagerHasOneEntryWithItsLatestTime) {
  Json object = created(R"({"metadata":{},"spec":{}})");
  object = updated(object, R"({"metadata":{"labels":{"m":"1"}}})", manager("q", 1));
  object = updated(object, R"({"metadata":{"labels":{"m":"1","n":"1"}}})", manager("q", 2));

  EXPECT_EQ(owners(object), R"(creator Update {"f:spec":{}})"
                            "\n"
                            R"(q Update {"f:metadata":{"f:labels":{".":{},"f:m":{},"f:n":{}}}})");
  EXPECT_EQ(model::text_at((*model::array_at(object, {"metadata", "managedFields"}))[1], {"time"}),
            "2023-11-14T22:13:22Z");
}

// The members of a pool are handed out in the same words: thousands of sets that are one.
TEST(ManagedFields, ObjectsThatChangeAlikeShareTheirSets) {
  const auto change = [](std::string_view name, std::string_view label) {
    const Json before = json(fmt::format(
        R"({{"metadata":{{"name":"{}","labels":{{"pool":"p"}}}},"spec":{{"operatingMode":"Running"}}}})",
        name));
    Json after = before;
    after.at("metadata").at("labels") = Json{{label, name}};
    const Owners created = record_update({.after = before}, test_sandbox(), manager("hearth"));
    const Owned owned{before, created};
    return record_update({.before = &owned, .after = after}, test_sandbox(), manager("hearth", 1));
  };
  const Owners one = change("one", "a");
  const Owners two = change("two", "a");
  const Owners other = change("three", "b");

  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(
      one[0].fields->text,
      R"({"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:operatingMode":{}}})");
  EXPECT_EQ(two[0].fields, one[0].fields);
  EXPECT_EQ(
      other[0].fields->text,
      R"({"f:metadata":{"f:labels":{".":{},"f:b":{}}},"f:spec":{".":{},"f:operatingMode":{}}})");
}

TEST(ManagedFields, SubresourcesHaveEntriesOfTheirOwn) {
  Json object = created(R"({"metadata":{},"spec":{"operatingMode":"a"}})");
  object = updated(object, R"({"spec":{"operatingMode":"b"}})", manager("q", 1));
  object = updated(object, R"({"status":{"podIPs":["9.9.9.9"]}})", manager("q", 2, "status"));

  EXPECT_EQ(owners(object), R"(creator Update {"f:spec":{}})"
                            "\n"
                            R"(q Update {"f:spec":{"f:operatingMode":{}}})"
                            "\n"
                            R"(q Update/status {"f:status":{".":{},"f:podIPs":{}}})");
}

TEST(ManagedFields, MapsAndListsAreOwnedAsTheirSchemaSays) {
  const Json object = created(
      R"({"metadata":{"finalizers":["f"],"ownerReferences":[{"uid":"1","name":"o"}]},
          "spec":{"share":1,"settings":{"k":"v"},"extra":{"a":{"b":[{"c":1}]},"n":null,"e":{}},
          "podTemplate":{"spec":{"nodeSelector":{"x":"y"},"tolerations":[{"key":"k"}]}}}})");

  EXPECT_EQ(owners(object),
            R"(creator Update {"f:metadata":{"f:finalizers":{".":{},"v:\"f\"":{}},)"
            R"("f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{}}},"f:spec":{".":{},"f:extra":)"
            R"({".":{},"f:a":{".":{},"f:b":{}},"f:e":{},"f:n":{}},"f:podTemplate":{".":{},)"
            R"("f:spec":{".":{},"f:nodeSelector":{},"f:tolerations":{}}},"f:settings":{".":{},)"
            R"("f:k":{}},"f:share":{}}})");
}

TEST(ManagedFields, KeyedItemsAreFollowedWhereverTheyGo) {
  const Json before = created(
      R"({"metadata":{},"status":{"conditions":[{"type":"A","status":"0"},
          {"type":"B","status":"0"}]}})");

  const Json after = updated(before, R"({"status":{"conditions":[{"type":"C","status":"1"},
      {"type":"B","status":"1"},{"type":"A","status":"0"}]}})",
                             manager("q", 1, "status"));

  EXPECT_EQ(owners(after),
            R"(creator Update {"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"A\"}":)"
            R"({".":{},"f:status":{},"f:type":{}},"k:{\"type\":\"B\"}":{".":{},"f:type":{}}}}})"
            "\n"
            R"(q Update/status {"f:status":{"f:conditions":{"k:{\"type\":\"B\"}":{"f:status":{}},)"
            R"("k:{\"type\":\"C\"}":{".":{},"f:status":{},"f:type":{}}}}})");
}

TEST(ManagedFields, ValuesOfUnknownTypeMayChangeIt) {
  const Json before = created(R"({"metadata":{},"spec":{"extra":{"a":"text"}}})");
  const Json after = updated(before, R"({"spec":{"extra":{"a":{"b":1}}}})", manager("q", 1));
  EXPECT_EQ(owners(after), R"(creator Update {"f:spec":{".":{},"f:extra":{}}})"
                           "\n"
                           R"(q Update {"f:spec":{"f:extra":{"f:a":{".":{},"f:b":{}}}}})");
}

TEST(ManagedFields, AnEmptyListOrEntryClearsThem) {
  const Json before = created(R"({"metadata":{"labels":{"a":"b"}}})");
  for (const std::string_view reset :
       {R"({"metadata":{"managedFields":[]}})", R"({"metadata":{"managedFields":[{}]}})"}) {
    const Json after = updated(before, reset, manager("q", 1));
    EXPECT_EQ(owners(after), "none");
    // From then on nobody tracks it.
    EXPECT_EQ(owners(updated(after, R"({"metadata":{"labels":{"a":"c"}}})", manager("q", 2))),
              "none");
  }
}

TEST(ManagedFields, AWriterMayRewriteThem) {
  const Json before = created(R"({"metadata":{"labels":{"a":"b"}}})");
  const Json after = updated(before, R"({"metadata":{"managedFields":[{"manager":"kubectl",
      "operation":"Apply","apiVersion":"agents.x-k8s.io/v1beta1","time":"2023-01-01T00:00:00Z",
      "fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}}}]}})",
                             manager("kubectl", 1));
  EXPECT_EQ(owners(after), R"(kubectl Apply {"f:metadata":{"f:labels":{"f:a":{}}}})");

  // Not by the side door.
  const Json by_status =
      updated(after, R"({"metadata":{"managedFields":[]}})", manager("kubectl", 1, "status"));
  EXPECT_EQ(owners(by_status), owners(after));
}

TEST(ManagedFields, WhatCannotBeReadIsAsIfNotSent) {
  const Json before = created(R"({"metadata":{"labels":{"a":"b"}}})");
  for (const std::string_view bad :
       {R"({"manager":"x"})", R"({"manager":"x","operation":"Update"})",
        R"({"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"Other"})",
        R"({"manager":1,"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1"})",
        R"({"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","time":"noon"})",
        R"({"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"x":1}})"}) {
    const Json after = updated(
        before, R"({"metadata":{"managedFields":[)" + std::string(bad) + "]}}", manager("q", 1));
    EXPECT_EQ(owners(after), owners(before)) << bad;
  }
}

TEST(ManagedFields, WhatIsNoListIsRefused) {
  const Json before = created(R"({"metadata":{"labels":{"a":"b"}}})");
  for (const std::string_view bad : {R"("x")", R"({})", R"(["x"])", R"([null])"}) {
    try {
      updated(before, R"({"metadata":{"managedFields":)" + std::string(bad) + "}}",
              manager("q", 1));
      ADD_FAILURE() << "was not refused: " << bad;
    } catch (const model::StatusError& error) {
      EXPECT_EQ(error.status().code, 400U);
    }
  }
}

TEST(ManagedFields, ItemsWithoutAKeyLeaveOwnersAlone) {
  const Json before = created(R"({"metadata":{"labels":{"a":"b"}}})");
  const Json after =
      updated(before, R"({"status":{"conditions":[{"status":"x"}]}})", manager("q", 1));
  EXPECT_EQ(owners(after), owners(before));
}

TEST(ManagedFields, OldUpdatersAreJoined) {
  Json object = created(R"({"metadata":{},"spec":{"settings":{}}})");
  std::string settings;
  for (int i = 0; i < 15; ++i) {
    settings += (i > 0 ? "," : "") + ("\"k" + std::to_string(i)) + "\":\"v\"";
    object = updated(object, R"({"spec":{"settings":{)" + settings + "}}}",
                     manager("m" + std::to_string(i), i + 1));
  }

  const auto* entries = model::array_at(object, {"metadata", "managedFields"});
  ASSERT_EQ(entries->size(), 10U);
  EXPECT_EQ(model::text_at((*entries)[0], {"manager"}), "ancient-changes");
  EXPECT_EQ(model::text_at((*entries)[9], {"manager"}), "m14");
  EXPECT_NE(model::find((*entries)[0], {"fieldsV1", "f:spec", "f:settings", "f:k3"}), nullptr);
}

}  // namespace
}  // namespace hearth::patch
