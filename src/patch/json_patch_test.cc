#include <gtest/gtest.h>

#include "model/status.h"
#include "patch/patch.h"

namespace hearth::patch {
namespace {

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

std::string patched(std::string_view document, std::string_view operations) {
  Json target = json(document);
  apply_json_patch(target, json(operations));
  return model::to_text(target);
}

model::Status refusal(std::string_view document, std::string_view operations) {
  try {
    ADD_FAILURE() << "was not refused: " << patched(document, operations);
  } catch (const model::StatusError& error) {
    return error.status();
  }
  return {};
}

TEST(JsonPatch, AddsReplacesAndRemovesMembers) {
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"add","path":"/b","value":{"c":2}}])"),
            R"({"a":1,"b":{"c":2}})");
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"add","path":"/a","value":2}])"), R"({"a":2})");
  EXPECT_EQ(patched(R"({"a":1,"b":2,"c":3})", R"([{"op":"remove","path":"/a"}])"),
            R"({"b":2,"c":3})");
  EXPECT_EQ(patched(R"({"a":{"b":1}})", R"([{"op":"replace","path":"/a/b","value":null}])"),
            R"({"a":{"b":null}})");
  EXPECT_EQ(patched(R"({"a":{}})", R"([{"op":"replace","path":"/a/b","value":1}])"),
            R"({"a":{"b":1}})");
}

TEST(JsonPatch, InsertsIntoLists) {
  EXPECT_EQ(patched(R"({"a":[1,2]})", R"([{"op":"add","path":"/a/1","value":9}])"),
            R"({"a":[1,9,2]})");
  EXPECT_EQ(patched(R"({"a":[1,2]})", R"([{"op":"add","path":"/a/-","value":9}])"),
            R"({"a":[1,2,9]})");
  EXPECT_EQ(patched(R"({"a":[1,2]})", R"([{"op":"add","path":"/a/2","value":9}])"),
            R"({"a":[1,2,9]})");
  EXPECT_EQ(patched(R"({"a":[1,2]})", R"([{"op":"remove","path":"/a/0"}])"), R"({"a":[2]})");
}

TEST(JsonPatch, MovesAndCopies) {
  EXPECT_EQ(patched(R"({"a":{"b":1},"c":{}})", R"([{"op":"move","from":"/a/b","path":"/c/d"}])"),
            R"({"a":{},"c":{"d":1}})");
  EXPECT_EQ(patched(R"({"a":[1,2,3]})", R"([{"op":"move","from":"/a/0","path":"/a/2"}])"),
            R"({"a":[2,3,1]})");
  EXPECT_EQ(patched(R"({"a":{"b":1}})", R"([{"op":"copy","from":"/a","path":"/a/c"}])"),
            R"({"a":{"b":1,"c":{"b":1}}})");
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"move","from":"/a","path":"/a"}])"), R"({"a":1})");
}

TEST(JsonPatch, UnescapesPointers) {
  EXPECT_EQ(patched(R"({"a/b":{"~":1,"":2}})",
                    R"([{"op":"replace","path":"/a~1b/~0","value":3},
                        {"op":"replace","path":"/a~1b/","value":4}])"),
            R"({"a/b":{"~":3,"":4}})");
  EXPECT_EQ(patched(R"({"~1":1})", R"([{"op":"replace","path":"/~01","value":2}])"), R"({"~1":2})");
}

TEST(JsonPatch, TestsAsJsonCompares) {
  constexpr std::string_view kDocument = R"({"a":{"b":[1,{"c":2,"d":3}]}})";
  EXPECT_EQ(patched(kDocument, R"([{"op":"test","path":"/a/b","value":[1.0,{"d":3,"c":2}]}])"),
            kDocument);
  EXPECT_EQ(patched(kDocument, R"([{"op":"test","path":"/a/none","value":null}])"), kDocument);
  EXPECT_EQ(refusal(kDocument, R"([{"op":"test","path":"/a/b","value":[1]}])").code, 422U);
  EXPECT_EQ(refusal(kDocument, R"([{"op":"test","path":"/a/b","value":null}])").code, 422U);
}

TEST(JsonPatch, RefusesInTheWordsOfTheRealOne) {
  EXPECT_EQ(
      model::to_text(to_json(refusal(R"({"m":{}})", R"([{"op":"remove","path":"/m/nope"}])"))),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
      R"("the server rejected our request due to an error in our request","reason":"Invalid",)"
      R"("details":{},"code":422})");
  const model::Status none = refusal("{}", R"({"a":1})");
  EXPECT_EQ(none.code, 400U);
  EXPECT_EQ(none.message,
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp");
  EXPECT_EQ(refusal("{}", R"(["x"])").code, 400U);
  EXPECT_EQ(refusal("{}", R"([{"op":"add","path":7}])").code, 400U);
}

TEST(JsonPatch, RefusesWhatDoesNotFit) {
  constexpr std::string_view kDocument = R"({"a":[1,2],"s":"x"})";
  for (const std::string_view operation :
       {R"({"op":"add","path":"/a/3","value":1})",
        R"({"op":"add","path":"/a/-1","value":1})",
        R"({"op":"add","path":"/a/01","value":1})",
        R"({"op":"add","path":"/a/x","value":1})",
        R"({"op":"remove","path":"/a/-"})",
        R"({"op":"remove","path":"/a/2"})",
        R"({"op":"add","path":"/s/x","value":1})",
        R"({"op":"add","path":"a","value":1})",
        R"({"op":"add","path":"/none/x","value":1})",
        R"({"op":"add","path":"/~2","value":1})",
        R"({"op":"replace","path":"/a/2","value":1})",
        R"({"op":"replace","path":"/none/x","value":1})",
        R"({"op":"add","path":"/b"})",
        R"({"op":"add","value":1})",
        R"({"op":"spoil","path":"/a"})",
        R"({"op":"move","from":"/a","path":"/a/0"})",
        R"({"op":"copy","path":"/b"})",
        R"({"op":"copy","from":"/none","path":"/b"})",
        R"({"op":"remove","path":""})",
        R"({"op":"add","path":"","value":[]})",
        R"({"op":"add","path":"/a/99999999999999999999","value":1})"}) {
    EXPECT_EQ(refusal(kDocument, "[" + std::string(operation) + "]").code, 422U) << operation;
  }
}

TEST(JsonPatch, ReplacesTheWholeDocument) {
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"add","path":"","value":{"b":2}}])"), R"({"b":2})");
}

TEST(JsonPatch, RefusesMoreOperationsThanAnybodyNeeds) {
  std::string many = "[";
  for (int i = 0; i <= 10'000; ++i) {
    if (i > 0) many += ',';
    many += R"({"op":"add","path":"/a","value":1})";
  }
  const model::Status status = refusal("{}", many + "]");
  EXPECT_EQ(status.code, 413U);
  EXPECT_EQ(status.reason, "RequestEntityTooLarge");
}

TEST(JsonPatch, RefusesCopiesThatDouble) {
  std::string doubling = "[";
  for (int i = 0; i < 40; ++i) doubling += R"({"op":"copy","from":"/a","path":"/a/-"},)";
  doubling.back() = ']';
  EXPECT_EQ(refusal(R"({"a":["x"]})", doubling).code, 422U);

  std::string wide = "[";
  for (int i = 0; i < 60; ++i) {
    if (i > 0) wide += ',';
    wide += R"({"op":"copy","from":"/a","path":"/b)" + std::to_string(i) + R"("})";
  }
  EXPECT_EQ(refusal(R"({"a":")" + std::string(100'000, 'x') + R"("})", wide + "]").code, 422U);
}

TEST(JsonPatch, RefusesNestingThatNobodyCouldRead) {
  std::string deep = R"({"b":{"b":{"b":{}}}})";
  std::string operations = "[";
  std::string path = "/a";
  for (int i = 0; i < 60; ++i) {
    operations += R"({"op":"add","path":")" + path + R"(","value":)" + deep + "},";
    path += "/b/b/b";
  }
  operations.back() = ']';
  EXPECT_EQ(refusal("{}", operations).code, 422U);
}

TEST(MergePatch, FollowsTheRfc) {
  const auto merged = [](std::string_view target, std::string_view patch) {
    Json value = json(target);
    apply_merge_patch(value, json(patch));
    return model::to_text(value);
  };
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(merged(R"({"a":"b","c":1})", R"({"a":null,"none":null})"), R"({"c":1})");
  EXPECT_EQ(merged(R"({"a":[1,2]})", R"({"a":[3]})"), R"({"a":[3]})");
  EXPECT_EQ(merged(R"({"a":{"b":1,"d":2}})", R"({"a":{"b":null,"c":{"x":null,"y":1}}})"),
            R"({"a":{"d":2,"c":{"y":1}}})");
  EXPECT_EQ(merged(R"({"a":[1]})", R"({"a":{"b":{"c":null}}})"), R"({"a":{"b":{}}})");
  EXPECT_EQ(merged(R"({"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7})",
                   R"({"a":null,"b":null,"d":null,"e":null,"f":null})"),
            R"({"c":3,"g":7})");
}

TEST(MergePatch, RefusesWhatIsNoObject) {
  for (const std::string_view patch : {"[1]", "null"}) {
    Json target = json(R"({"a":1})");
    try {
      apply_merge_patch(target, json(patch));
      FAIL() << "was not refused";
    } catch (const model::StatusError& error) {
      EXPECT_EQ(error.status().code, 400U);
    }
    EXPECT_EQ(model::to_text(target), R"({"a":1})");
  }
}

}  // namespace
}  // namespace hearth::patch
