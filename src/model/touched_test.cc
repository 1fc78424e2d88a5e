#include "model/touched.h"

#include <gtest/gtest.h>

namespace hearth::model {
namespace {

Json json(std::string_view text) {
  return parse_json(text).value;
}

TEST(Touched, IsWhatAMergePatchNames) {
  const Json patch = json(R"({"a":{"b":1,"gone":null},"list":[{"x":1}]})");
  const Touched touched(patch);

  EXPECT_FALSE(touched.member("z"));
  ASSERT_TRUE(touched.member("a"));
  EXPECT_TRUE(touched.member("a")->member("gone"));
  EXPECT_FALSE(touched.member("a")->member("c"));
  // A list is replaced: everything below is touched.
  EXPECT_TRUE(touched.member("list")->member("anything"));
  EXPECT_TRUE(Touched().member("anything")->member("below"));
}

TEST(Touched, TellsWhetherSomethingChangedThere) {
  const Json patch = json(R"({"a":{"b":1}})");
  const Json before = json(R"({"a":{"b":1,"c":2},"z":3})");

  EXPECT_TRUE(is_same_where(Touched(patch), before, json(R"({"a":{"b":1}})")));
  EXPECT_FALSE(is_same_where(Touched(patch), before, json(R"({"a":{"b":2,"c":2},"z":3})")));
  EXPECT_FALSE(is_same_where(Touched(patch), before, json(R"({"a":{"c":2},"z":3})")));
  EXPECT_FALSE(is_same_where(Touched(patch), before, json(R"({"z":3})")));
  EXPECT_FALSE(is_same_where(Touched(), before, json(R"({"a":{"b":1},"z":3})")));
}

}  // namespace
}  // namespace hearth::model
