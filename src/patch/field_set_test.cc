#include "patch/field_set.h"

#include <array>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::patch {
namespace {

FieldSet set(std::string_view text) {
  return parse_field_set(model::parse_json(text).value);
}

std::string text(const FieldSet& set) {
  std::string text;
  append_text(text, set);
  return text;
}

std::vector<std::string> paths(const FieldSet& set) {
  std::vector<std::string> all;
  for_each_path(set, [&](const std::string& path) { all.push_back(path); });
  return all;
}

TEST(FieldSet, SurvivesTheWire) {
  constexpr std::string_view kText =
      R"({"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":)"
      R"({"k:{\"name\":\"main\"}":{".":{},"f:image":{}}},"f:tags":{"v:\"x\"":{},"v:3":{}}}})";
  EXPECT_EQ(text(set(kText)), kText);
  EXPECT_EQ(text(set("{}")), "{}");
}

TEST(FieldSet, WritesOneFormOnly) {
  EXPECT_EQ(text(set(R"({"v:\"x\"":{},"k:{\"b\":1.0,\"a\":\"\\u0041\"}":{},"f:z":{},"f:a":{}})")),
            R"({"f:a":{},"f:z":{},"k:{\"a\":\"A\",\"b\":1}":{},"v:\"x\"":{}})");
  EXPECT_EQ(text(set(R"({"k:{\"a\":1}":{"f:x":{}},"k:{ \"a\": 1 }":{"f:y":{}}})")),
            R"({"k:{\"a\":1}":{"f:x":{},"f:y":{}}})");
  EXPECT_EQ(text(set(R"({".":{},"f:a":{}})")), R"({"f:a":{}})");
  for (const std::string_view odd :
       {R"({"k:{\"a\":01}":{}})", R"({"k:{\"a\":1,}":{}})", R"({"k:{\"a\":1}x":{}})",
        R"({"k:{,\"a\":1}":{}})", R"({"k:{\"a\"}":{}})", R"({"k:{\"a\":x}":{}})"})
    EXPECT_THROW(set(odd), Error) << odd;
  EXPECT_EQ(text(set(R"({"k:{\"a\":-1,\"b\":true}":{},"k:{\"a\":123456789012345678}":{}})")),
            R"({"k:{\"a\":-1,\"b\":true}":{},"k:{\"a\":123456789012345678}":{}})");
}

TEST(FieldSet, RefusesWhatIsNone) {
  for (const std::string_view bad :
       {R"([])", R"({"f:a":1})", R"({"x":{}})", R"({"q:a":{}})", R"({"":{}})", R"({"k:[]":{}})",
        R"({"k:{":{}})", R"({"v:":{}})", R"({"i:x":{}})", R"({"i:":{}})", R"({"f:a":null})"}) {
    EXPECT_THROW(set(bad), Error) << bad;
  }
}

TEST(FieldSet, UnitesSubtractsAndIntersects) {
  const FieldSet left = set(R"({"f:a":{".":{},"f:b":{},"f:c":{}},"f:d":{}})");
  const FieldSet right = set(R"({"f:a":{"f:b":{},"f:x":{}},"f:d":{"f:e":{}}})");

  EXPECT_EQ(text(unite(left, right)),
            R"({"f:a":{".":{},"f:b":{},"f:c":{},"f:x":{}},"f:d":{".":{},"f:e":{}}})");
  EXPECT_EQ(text(subtract(left, right)), R"({"f:a":{".":{},"f:c":{}},"f:d":{}})");
  EXPECT_EQ(text(subtract(right, left)), R"({"f:a":{"f:x":{}},"f:d":{"f:e":{}}})");
  EXPECT_EQ(text(intersect(left, right)), R"({"f:a":{"f:b":{}}})");
  EXPECT_TRUE(subtract(left, left).empty());
  EXPECT_EQ(intersect(left, left), left);
}

TEST(FieldSet, TellsWhatIsShared) {
  const FieldSet stored = set(R"({"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}}})");
  EXPECT_TRUE(overlaps(stored, set(R"({"f:a":{}})")));
  EXPECT_TRUE(overlaps(stored, set(R"({"f:a":{"f:b":{}}})")));
  EXPECT_FALSE(overlaps(stored, set(R"({"f:c":{}})")));
  EXPECT_FALSE(overlaps(stored, set(R"({"f:a":{"f:b":{"f:x":{}}},"f:z":{}})")));

  EXPECT_TRUE(contains(stored, set(R"({"f:a":{"f:b":{}},"f:c":{"f:d":{}}})")));
  EXPECT_TRUE(contains(stored, stored));
  EXPECT_FALSE(contains(stored, set(R"({"f:c":{}})")));
  EXPECT_FALSE(contains(stored, set(R"({"f:a":{"f:b":{}},"f:z":{}})")));
}

TEST(FieldSet, KnowsWhatIsInIt) {
  const FieldSet one = set(R"({"f:a":{"f:b":{}}})");
  EXPECT_TRUE(one.has(std::array<std::string_view, 2>{"f:a", "f:b"}));
  EXPECT_FALSE(one.has(std::array<std::string_view, 1>{"f:a"}));
  EXPECT_FALSE(one.has(std::array<std::string_view, 2>{"f:a", "f:c"}));
}

TEST(FieldSet, TellsPathsAsPeopleReadThem) {
  EXPECT_EQ(paths(set(R"({"f:spec":{"f:c":{"k:{\"name\":\"main\"}":{".":{},"f:image":{}},)"
                      R"("k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{}},)"
                      R"("f:tags":{"v:\"x\"":{}},"f:l":{"i:2":{}},"f:a":{}}})")),
            (std::vector<std::string>{".spec.a", R"(.spec.c[containerPort=80,protocol="TCP"])",
                                      R"(.spec.c[name="main"])", R"(.spec.c[name="main"].image)",
                                      ".spec.l[2]", R"(.spec.tags[="x"])"}));
}

}  // namespace
}  // namespace hearth::patch
