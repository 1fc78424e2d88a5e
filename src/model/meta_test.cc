#include "model/meta.h"

#include <gtest/gtest.h>

#include "model/containers.h"

namespace hearth::model {
namespace {

using namespace std::chrono_literals;

Json json(std::string_view text) {
  return parse_json(text).value;
}

TEST(Meta, ReadsWhatIsThereAndNothingElse) {
  const Json object = json(R"({"metadata":{"name":"a","namespace":"n","uid":"u","generation":3,
      "labels":{"x/y":"1"},"annotations":{"k":7},"deletionTimestamp":"2026-01-02T03:04:05Z"}})");
  EXPECT_EQ(key_of(object), (Key{"n", "a"}));
  EXPECT_EQ(key_of(object).text(), "n/a");
  EXPECT_EQ(generation_of(object), 3);
  EXPECT_EQ(label_of(object, "x/y"), "1");
  EXPECT_EQ(annotation_of(object, "k"), "") << "a number is no annotation";
  EXPECT_TRUE(is_deleting(object));
  EXPECT_EQ(key_of(json("[]")), (Key{"", ""}));
}

TEST(Meta, TheFirstContainerIsTheOneOfTheSpec) {
  const Json pod = json(R"({"spec":{"containers":[{"name":"b"},{"name":"a"}]},
      "status":{"containerStatuses":[{"name":"a","restartCount":1},{"name":"b","restartCount":2}]}})");
  EXPECT_EQ(first_container_of(pod), "b");
  EXPECT_EQ(number_at(*find_container_status(pod, "b"), {"restartCount"}), 2);
  EXPECT_EQ(find_container_status(pod, "c"), nullptr);
  EXPECT_EQ(first_container_of(json("{}")), "");
  EXPECT_EQ(find_container_status(json("{}"), ""), nullptr);
}

TEST(Meta, TheControllerIsTheOwnerThatSaysSo) {
  const Json object = json(R"({"metadata":{"ownerReferences":[
      {"apiVersion":"v1","kind":"Node","name":"n","uid":"1"},
      {"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox","name":"s","uid":"2","controller":true}]}})");
  const auto owner = controller_of(object);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->group(), "agents.x-k8s.io");
  EXPECT_EQ(owner->kind, "Sandbox");
  EXPECT_TRUE(is_controlled_by(object, "2"));
  EXPECT_FALSE(is_controlled_by(object, "1"));
  EXPECT_FALSE(is_controlled_by(object, ""));
}

TEST(Meta, HashesNamesAsTheOriginalDoes) {
  EXPECT_EQ(name_hash(""), "811c9dc5");
  EXPECT_EQ(name_hash("a"), "e40c292c");
  EXPECT_EQ(name_hash("my-sandbox"), "374de8f5");
  EXPECT_EQ(name_hash("python-sandbox-template"), "d274c066");
}

TEST(Conditions, TimeMovesOnlyWithTheStatus) {
  const Time start{std::chrono::sys_days{2026y / 1 / 2}};
  JsonArray conditions;
  EXPECT_TRUE(set_condition(conditions, {"Ready", "False", "A", "a", 1}, start));
  EXPECT_FALSE(set_condition(conditions, {"Ready", "False", "A", "a", 1}, start + 1h));
  EXPECT_TRUE(set_condition(conditions, {"Ready", "False", "B", "b", 2}, start + 2h));
  EXPECT_EQ(text_at(conditions[0], {"lastTransitionTime"}), "2026-01-02T00:00:00Z");
  EXPECT_TRUE(set_condition(conditions, {"Ready", "True", "C", "", 2}, start + 3h));
  EXPECT_EQ(text_at(conditions[0], {"lastTransitionTime"}), "2026-01-02T03:00:00Z");
  EXPECT_TRUE(set_condition(conditions, {"Finished", "True", "C", "", 2}, start));
  EXPECT_EQ(conditions.size(), 2u);
  EXPECT_TRUE(remove_condition(conditions, "Ready"));
  EXPECT_FALSE(remove_condition(conditions, "Ready"));

  const Json object = JsonObject{{"status", JsonObject{{"conditions", conditions}}}};
  EXPECT_TRUE(is_condition_true(object, "Finished"));
  EXPECT_FALSE(is_condition_true(object, "Ready"));
}

}  // namespace
}  // namespace hearth::model
