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
  const Json claim = api().create(
      kClaims, json(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c",
    "namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})"));

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
