#include <gtest/gtest.h>

#include "model/status.h"
#include "patch/patch.h"
#include "patch/test_schemas_internal.h"

namespace hearth::patch {
namespace {

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

std::string patched(std::string_view target, std::string_view patch) {
  Json object = json(target);
  apply_strategic_patch(object, json(patch), test_pod());
  return model::to_text(object);
}

model::Status refusal(std::string_view target, std::string_view patch) {
  try {
    ADD_FAILURE() << "was not refused: " << patched(target, patch);
  } catch (const model::StatusError& error) {
    return error.status();
  }
  return {};
}

constexpr std::string_view kTwo =
    R"({"spec":{"containers":[{"name":"main","image":"x"},{"name":"side","image":"z"}]}})";

TEST(StrategicPatch, MergesItemsByTheirKey) {
  EXPECT_EQ(
      patched(kTwo, R"({"spec":{"containers":[{"name":"main","image":"x9"}]}})"),
      R"({"spec":{"containers":[{"name":"main","image":"x9"},{"name":"side","image":"z"}]}})");
}

TEST(StrategicPatch, PutsNewItemsFirst) {
  EXPECT_EQ(patched(kTwo, R"({"spec":{"containers":[{"name":"new","image":null}]}})"),
            R"({"spec":{"containers":[{"name":"new"},{"name":"main","image":"x"},)"
            R"({"name":"side","image":"z"}]}})");
}

TEST(StrategicPatch, MergesNestedKeyedLists) {
  EXPECT_EQ(patched(R"({"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"1"}]}]}})",
                    R"({"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"2"},)"
                    R"({"name":"Y","value":"3"}]}]}})"),
            R"({"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"2"},)"
            R"({"name":"Y","value":"3"}]}]}})");
}

TEST(StrategicPatch, ReplacesListsThatDoNotMerge) {
  EXPECT_EQ(patched(R"({"spec":{"tolerations":[{"key":"a"}]}})",
                    R"({"spec":{"tolerations":[{"key":"b"}]}})"),
            R"({"spec":{"tolerations":[{"key":"b"}]}})");
}

TEST(StrategicPatch, NullDeletes) {
  EXPECT_EQ(patched(R"({"metadata":{"labels":{"a":"1","b":"2"}}})",
                    R"({"metadata":{"labels":{"a":null,"none":null}}})"),
            R"({"metadata":{"labels":{"b":"2"}}})");
  EXPECT_EQ(patched(kTwo, R"({"spec":{"containers":null}})"), R"({"spec":{}})");
}

TEST(StrategicPatch, AddedPartsCarryNeitherNullsNorDirectives) {
  EXPECT_EQ(patched("{}", R"({"spec":{"containers":[{"name":"a","image":null},)"
                          R"({"$patch":"delete","name":"b"}],"$setElementOrder/containers":[]}})"),
            R"({"spec":{"containers":[{"name":"a"}]}})");
}

TEST(StrategicPatch, ReplacesAMapAsTold) {
  EXPECT_EQ(patched(R"({"metadata":{"labels":{"app":"p1","x":"y"}}})",
                    R"({"metadata":{"labels":{"$patch":"replace","only":"1"}}})"),
            R"({"metadata":{"labels":{"only":"1"}}})");
  EXPECT_EQ(patched(R"({"metadata":{"labels":{"app":"p1"}}})",
                    R"({"metadata":{"labels":{"$patch":"delete"}}})"),
            R"({"metadata":{"labels":{}}})");
}

TEST(StrategicPatch, DeletesAndReplacesItemsAsTold) {
  EXPECT_EQ(patched(kTwo, R"({"spec":{"containers":[{"$patch":"delete","name":"main"}]}})"),
            R"({"spec":{"containers":[{"name":"side","image":"z"}]}})");
  EXPECT_EQ(patched(kTwo, R"({"spec":{"containers":[{"$patch":"delete","name":"none"}]}})"), kTwo);
  EXPECT_EQ(
      patched(kTwo, R"({"spec":{"containers":[{"$patch":"replace"},{"name":"n","image":"i"}]}})"),
      R"({"spec":{"containers":[{"name":"n","image":"i"}]}})");
}

TEST(StrategicPatch, OrdersItemsAsTold) {
  EXPECT_EQ(
      patched(kTwo,
              R"({"spec":{"$setElementOrder/containers":[{"name":"side"},{"name":"main"}]}})"),
      R"({"spec":{"containers":[{"name":"side","image":"z"},{"name":"main","image":"x"}]}})");
  EXPECT_EQ(patched(kTwo, R"({"spec":{"$setElementOrder/containers":[{"name":"side"},)"
                          R"({"name":"new"},{"name":"main"}],)"
                          R"("containers":[{"name":"new","image":"n"}]}})"),
            R"({"spec":{"containers":[{"name":"side","image":"z"},{"name":"new","image":"n"},)"
            R"({"name":"main","image":"x"}]}})");
}

TEST(StrategicPatch, ItemsOfTheServerKeepTheirPlace) {
  EXPECT_EQ(patched(R"({"spec":{"containers":[{"name":"s1"},{"name":"a"},{"name":"s2"},)"
                    R"({"name":"b"},{"name":"s3"}]}})",
                    R"({"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],)"
                    R"("containers":[{"name":"b","image":"2"}]}})"),
            R"({"spec":{"containers":[{"name":"s1"},{"name":"a"},{"name":"s2"},)"
            R"({"name":"b","image":"2"},{"name":"s3"}]}})");
}

TEST(StrategicPatch, MergesListsOfScalars) {
  constexpr std::string_view kObject = R"({"metadata":{"finalizers":["a","b"]}})";
  EXPECT_EQ(patched(kObject, R"({"metadata":{"finalizers":["b","c"]}})"),
            R"({"metadata":{"finalizers":["a","b","c"]}})");
  EXPECT_EQ(patched(kObject, R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}})"),
            R"({"metadata":{"finalizers":["b"]}})");
  EXPECT_EQ(patched(kObject, R"({"metadata":{"$setElementOrder/finalizers":["b","a"]}})"),
            R"({"metadata":{"finalizers":["b","a"]}})");
  EXPECT_EQ(patched(kObject, R"({"metadata":{"$deleteFromPrimitiveList/none":["a"]}})"), kObject);
}

TEST(StrategicPatch, RetainsOnlyTheKeysNamed) {
  constexpr std::string_view kObject =
      R"({"spec":{"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}]}})";
  EXPECT_EQ(patched(kObject, R"({"spec":{"volumes":[{"$retainKeys":["name","hostPath"],)"
                             R"("name":"v","hostPath":{"path":"/x"}}]}})"),
            R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}})");
  EXPECT_EQ(refusal(kObject, R"({"spec":{"volumes":[{"$retainKeys":["name"],"name":"v",)"
                             R"("hostPath":{}}]}})")
                .message,
            "invalid patch format of retainKeys");
}

TEST(StrategicPatch, RefusesAsTheRealOneDoes) {
  EXPECT_EQ(refusal(kTwo, "[]").code, 400U);
  const model::Status keyless = refusal(kTwo, R"({"spec":{"containers":[{"image":"q"}]}})");
  EXPECT_EQ(keyless.code, 500U);
  EXPECT_EQ(keyless.message, R"(map: {"image":"q"} does not contain declared merge key: name)");
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"$patch":"melt"}})").code, 500U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"containers":[{"$patch":"merge"}]}})").code, 500U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"containers":["x"]}})").code, 500U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"containers":[[]]}})").code, 422U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"$setElementOrder":[]}})").code, 400U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"$setElementOrder/containers":"x"}})").code, 500U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"$setElementOrder/nonsense":[]}})").code, 500U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"$deleteFromPrimitiveList":[]}})").code, 400U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"$retainKeys":7}})").code, 400U);
  EXPECT_EQ(refusal(kTwo, R"({"spec":{"$setElementOrder/containers":[{"name":"a"}],)"
                          R"("containers":[{"name":"b"}]}})")
                .code,
            500U);
}

TEST(StrategicPatch, LongListsAreNoTrouble) {
  std::string items = "[";
  for (int i = 0; i < 20'000; ++i) {
    if (i > 0) items += ',';
    items += R"({"name":"n)" + std::to_string(i) + R"("})";
  }
  items += ']';
  const std::string object = R"({"spec":{"containers":)" + items + "}}";
  EXPECT_EQ(patched(object, R"({"spec":{"$setElementOrder/containers":)" + items +
                                R"(,"containers":)" + items + "}}"),
            object);
}

}  // namespace
}  // namespace hearth::patch
