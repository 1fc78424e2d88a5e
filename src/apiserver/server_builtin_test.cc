// Rules that hold for built-in kinds alone, on a real store.
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"

namespace hearth::apiserver {
namespace {

using model::Json;
using model::to_text;

const client::ResourceId kPods{"", "v1", "pods"};

class BuiltinTest : public testing::Test {
 protected:
  client::Client& api() { return server_.client(); }

  TestServer server_;
};

TEST_F(BuiltinTest, LetsEnvironmentVariablesRepeatButNotContainers) {
  Json pod = json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},
    "spec":{"containers":[{"name":"c","image":"x",
      "env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}})");
  const Json made = api().create(kPods, pod);
  const Json labelled = api().patch(kPods, "default", "p", client::PatchKind::strategic,
                                    json(R"({"metadata":{"labels":{"a":"b"}}})"));
  model::make_object_at(pod, {"metadata"})["name"] = "q";
  model::make_object_at(pod, {"spec"})["containers"] =
      json(R"([{"name":"c","image":"x"},{"name":"c","image":"y"}])");

  const model::Status status = refusal([&] { api().create(kPods, pod); });

  EXPECT_EQ(to_text(*model::find(made, {"spec"})), to_text(*model::find(labelled, {"spec"})));
  EXPECT_EQ(status.message,
            "Pod \"q\" is invalid: spec.containers[1].name: Duplicate value: \"c\"");
}

}  // namespace
}  // namespace hearth::apiserver
