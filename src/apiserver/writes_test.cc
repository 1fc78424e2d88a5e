// What writes may and may not do, where a client met us doing otherwise.
#include <algorithm>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"

namespace hearth::apiserver {
namespace {

using client::ResourceId;
using model::Json;
using model::text_at;

const ResourceId kSandboxes{"agents.x-k8s.io", "v1beta1", "sandboxes"};
const ResourceId kEvents{"", "v1", "events"};
const ResourceId kClaims{"", "v1", "persistentvolumeclaims"};

Json sandbox(std::string_view metadata) {
  Json object = json(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})");
  object.as_object()["metadata"] = json(metadata);
  return object;
}

class WritesTest : public testing::Test {
 protected:
  client::Client& api() { return server_.client(); }

  Json merge(std::string_view patch) {
    return api().patch(kSandboxes, "default", "a", client::PatchKind::merge, json(patch));
  }

  model::Status refusal_of(const Json& object) {
    return refusal([&] { api().create(kSandboxes, object); });
  }

 private:
  TestServer server_;
};

TEST_F(WritesTest, FinalizersMayBeAddedUntilTheObjectIsBeingDeleted) {
  api().create(kSandboxes, sandbox(R"({"name":"a","namespace":"default"})"));

  const Json held = merge(R"({"metadata":{"finalizers":["x.io/a"]}})");
  api().remove(kSandboxes, "default", "a");

  EXPECT_NE(model::array_at(held, {"metadata", "finalizers"}), nullptr);
  try {
    merge(R"({"metadata":{"finalizers":["x.io/a","x.io/b"]}})");
    ADD_FAILURE() << "a finalizer was added to an object that is being deleted";
  } catch (const model::StatusError& error) {
    EXPECT_EQ(error.status().reason, "Invalid");
  }
}

// Of an object that was checked before, a merge patch has only what it names checked.
TEST_F(WritesTest, AMergePatchIsHeldToTheSchema) {
  api().create(kSandboxes, sandbox(R"({"name":"a","namespace":"default","labels":{"x":"1"}})"));

  const Json changed = merge(
      R"({"metadata":{"labels":{"x":null,"y":"2"}},"spec":{"operatingMode":null,"odd":1,
          "podTemplate":{"spec":{"odd":{"a":1}}}}})");
  EXPECT_EQ(model::to_text(*model::find(changed, {"metadata", "labels"})), R"({"y":"2"})");
  EXPECT_EQ(text_at(changed, {"spec", "operatingMode"}), "Running");
  EXPECT_EQ(model::to_text(changed).find("odd"), std::string::npos);
  EXPECT_EQ(model::number_at(changed, {"metadata", "generation"}), 1);

  const Json again = merge(R"({"metadata":{"labels":{"y":"2"}}})");
  EXPECT_EQ(text_at(again, {"metadata", "resourceVersion"}),
            text_at(changed, {"metadata", "resourceVersion"}));
  const Json suspended = merge(R"({"spec":{"operatingMode":"Suspended"}})");
  EXPECT_EQ(model::number_at(suspended, {"metadata", "generation"}), 2);

  for (const char* wrong :
       {R"({"spec":{"operatingMode":"Nope"}})", R"({"spec":{"podTemplate":{"spec":null}}})",
        R"({"spec":{"podTemplate":null}})", R"({"spec":{"podTemplate":{"spec":{"containers":1}}}})",
        R"({"metadata":{"labels":{"y":"no spaces"}}})", R"({"metadata":{"managedFields":1}})"}) {
    SCOPED_TRACE(wrong);
    EXPECT_GE(refusal([&] { merge(wrong); }).code, 400U);
  }
}

TEST_F(WritesTest, AMergePatchOfTheStateChangesNothingElse) {
  api().create(kSandboxes, sandbox(R"({"name":"a","namespace":"default"})"));
  const Json changed =
      api().patch(kSandboxes, "default", "a", client::PatchKind::merge,
                  json(R"({"metadata":{"labels":{"x":"1"}},"spec":{"operatingMode":"Suspended",
                           "podTemplate":null},"status":{"nodeName":"n","odd":1}})"),
                  {.subresource = "status"});

  EXPECT_EQ(text_at(changed, {"status", "nodeName"}), "n");
  EXPECT_EQ(model::find(changed, {"status", "odd"}), nullptr);
  EXPECT_EQ(model::find(changed, {"metadata", "labels"}), nullptr);
  EXPECT_EQ(text_at(changed, {"spec", "operatingMode"}), "Running");
  EXPECT_NE(model::find(changed, {"spec", "podTemplate", "spec"}), nullptr);
}

// What was checked with another schema is checked again, all of it.
TEST_F(WritesTest, APatchAfterTheSchemaChangedChecksEverything) {
  const ResourceId crds{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
  const ResourceId things{"test.io", "v1", "things"};
  const auto definition = [](std::string_view properties) {
    return json(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":"things.test.io"},"spec":{"group":"test.io","scope":"Namespaced",
      "names":{"plural":"things","singular":"thing","kind":"Thing"},"versions":[{"name":"v1",
      "served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{)" +
                std::string(properties) + "}}}}]}}");
  };
  api().create(crds, definition(R"("a":{"type":"string"},"b":{"type":"string"})"));
  api().create(things, json(R"({"apiVersion":"test.io/v1","kind":"Thing","a":"1","b":"2",
      "metadata":{"name":"t","namespace":"default"}})"));

  api().patch(crds, "", "things.test.io", client::PatchKind::merge,
              definition(R"("a":{"type":"string"},"c":{"type":"string","default":"3"})"));
  const Json changed =
      api().patch(things, "default", "t", client::PatchKind::merge, json(R"({"a":"4"})"));
  EXPECT_EQ(text_at(changed, {"a"}), "4");
  EXPECT_EQ(model::find(changed, {"b"}), nullptr);
  EXPECT_EQ(text_at(changed, {"c"}), "3");
}

TEST_F(WritesTest, AnEventNeedsNoEventTime) {
  const Json event = api().create(
      kEvents,
      json(R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"default"},
    "involvedObject":{"kind":"Sandbox","name":"a","namespace":"default"},"reason":"X","message":"m",
    "type":"Normal","firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z"})"));

  ASSERT_NE(model::find(event, {"eventTime"}), nullptr);
  EXPECT_TRUE(model::find(event, {"eventTime"})->is_null());
}

TEST_F(WritesTest, TheStateOfANewObjectIsNotItsMakers) {
  // Only what is not kept is answered with its owners here.
  const Json claim = api().create(
      kClaims, json(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c",
    "namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})"),
      {.dry_run = true});

  EXPECT_EQ(text_at(claim, {"status", "phase"}), "Pending");
  EXPECT_EQ(model::to_text(*model::find(claim, {"metadata", "managedFields"})).find("f:status"),
            std::string::npos);
}

TEST_F(WritesTest, RulesThatWereNotCheckedAreToldOnce) {
  const auto count = [](const model::Status& status) {
    return std::ranges::count_if(status.causes,
                                 [](const auto& cause) { return cause.field == "<nil>"; });
  };
  Json wrong = sandbox(R"({"name":"z","namespace":"default"})");
  model::make_object_at(wrong, {"spec"})["operatingMode"] = "Nope";

  EXPECT_EQ(count(refusal_of(wrong)), 1);
  EXPECT_EQ(count(refusal_of(sandbox(R"({"namespace":"default"})"))), 1);
  EXPECT_EQ(count(refusal_of(sandbox(R"({"name":"Bad_Name","namespace":"default"})"))), 0);
}

}  // namespace
}  // namespace hearth::apiserver
