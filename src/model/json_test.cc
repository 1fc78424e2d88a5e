#include "model/json.h"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/member.h"
#include "model/read_json.h"
#include "model/scratch.h"

namespace hearth::model {
namespace {

TEST(JsonText, EscapesWhereverItStands) {
  for (std::size_t size = 1; size < 20; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (int c = 0; c < 256; ++c) {
        std::string text(size, 'x');
        text[at] = static_cast<char>(c);
        EXPECT_EQ(to_text(Json(text)), boost::json::serialize(Json(text))) << size << " " << at;
      }
    }
  }
}

TEST(Json, TellsWhichMembersCameTwice) {
  const ParsedJson parsed = parse_json(R"({"a":[{"b":1},{"b":1,"c":2,"b":3}],"d":{"e":1,"e":2}})");

  EXPECT_EQ(parsed.duplicates, (std::vector<std::string>{"a[1].b", "d.e"}));
  EXPECT_EQ(number_at(parsed.value, {"d", "e"}), 2);
}

TEST(Json, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "{} x", "nul", "\"\xff\"", "01", "-15e555"})
    EXPECT_THROW(parse_json(text), Error) << text;
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "{} x", "nul", "\"\xff\"", "01"})
    EXPECT_THROW(read_json(text), Error) << text;
}

TEST(Json, ReadsTheSameWithoutALookForTwins) {
  constexpr const char* kText = R"( {"a":[1,-2,3.5,null,true,"\u00e9"],"b":{"c":{}}} )";

  EXPECT_EQ(to_text(read_json(kText)), to_text(parse_json(kText).value));
  EXPECT_EQ(number_at(read_json(R"({"a":1,"a":2})"), {"a"}), 2);
}

TEST(Json, WritesWhatItRead) {
  for (const char* text :
       {R"({"a":[1,-2,18446744073709551615,3.5,null,true,false,""],"b":{},"c":[]})",
        R"(["\"","\\","\n\t\u0001","/","é",{"\"k\\":1}])", "[[[]]]", "\"x\"", "{}"})
    EXPECT_EQ(to_text(read_json(text)), text);
}

TEST(Json, WritesBehindWhatIsThere) {
  std::string text = "a:";
  append_text(text, Json{1, "b"});
  EXPECT_EQ(text, R"(a:[1,"b"])");
}

TEST(Json, TreesInAScratchAreAsTreesOnTheHeap) {
  // More than the Scratch begins with.
  std::string text = R"({"many":[)";
  for (int i = 0; i < 5000; ++i) text += fmt::format(R"({}{{"name":"item {}"}})", i ? "," : "", i);
  text += "]}";
  Json assigned;
  {
    Scratch scratch;
    const Json tree = read_json(text, scratch.storage());
    Json copy = tree;
    make_object_at(copy, {"more"})["x"] = "a text that is too long to be kept without memory";
    EXPECT_EQ(to_text(tree), text);
    EXPECT_EQ(to_text(parse_json(text, scratch.storage()).value), text);
    assigned = copy;
  }
  // What was assigned is where it was before.
  EXPECT_EQ(text_at(assigned, {"more", "x"}), "a text that is too long to be kept without memory");
  EXPECT_EQ(array_at(assigned, {"many"})->size(), 5000);
}

TEST(Json, RefusesDeepNesting) {
  EXPECT_NO_THROW(parse_json(std::string(100, '[') + std::string(100, ']')));
  EXPECT_THROW(parse_json(std::string(100'000, '[')), Error);
  EXPECT_NO_THROW(read_json(std::string(100, '[') + std::string(100, ']')));
  EXPECT_THROW(read_json(std::string(100'000, '[')), Error);
  EXPECT_THROW(parse_yaml(std::string(100'000, '[')), Error);
  EXPECT_THROW(parse_yaml(std::string(5'000, '{')), Error);
}

TEST(Json, WritesNumbersAsEverybodyReadsThem) {
  const auto again = [](const char* text) { return to_text(parse_json(text).value); };

  EXPECT_EQ(again("[2.0,2e0,-3.00,1e3]"), "[2,2,-3,1000]");
  EXPECT_EQ(again("[0.5,1.25e-3,1e30]"), "[0.5,0.00125,1e+30]");
  EXPECT_EQ(again("[9007199254740993,18446744073709551615]"),
            "[9007199254740993,18446744073709551615]");
}

TEST(Json, ComparesAsJson) {
  const auto same = [](const char* left, const char* right) {
    return is_same(parse_json(left).value, parse_json(right).value);
  };

  EXPECT_TRUE(same(R"({"a":1,"b":[2]})", R"({"b":[2.0],"a":1})"));
  EXPECT_FALSE(same(R"({"a":1})", R"({"a":1,"b":null})"));
  EXPECT_FALSE(same("[1,2]", "[2,1]"));
}

TEST(Json, FindsMembersOfSmallAndOfLargeObjects) {
  JsonObject object;
  EXPECT_EQ(find_member(object, ""), nullptr);
  for (int i = 0; i < 40; ++i) {
    const std::string name = "member" + std::to_string(i);
    EXPECT_EQ(find_member(object, name), nullptr) << i;
    object[name] = i;
    for (int j = 0; j <= i; ++j) {
      const Json* found = find_member(object, "member" + std::to_string(j));
      ASSERT_NE(found, nullptr) << j << " of " << i;
      EXPECT_EQ(found->get_int64(), j);
    }
  }
  EXPECT_EQ(find_member(object, "member"), nullptr);
}

TEST(Yaml, ReadsScalarsAsKubernetesDoes) {
  const Json value =
      parse_yaml(
          "a: 1\nb: 1.5\nc: yes\nd: 'true'\ne: true\nf:\ng: 1Gi\nh: \"3\"\ni: [a, {b: -2}]\n")
          .value;

  EXPECT_EQ(
      to_text(value),
      R"({"a":1,"b":1.5,"c":"yes","d":"true","e":true,"f":null,"g":"1Gi","h":"3","i":["a",{"b":-2}]})");
}

TEST(Json, ACheckedCopyIsAsOneThatWasWrittenAndRead) {
  Json made = JsonObject{{"text", "caf\xC3\xA9"}, {"count", std::uint64_t{3}}, {"list", {1, -2.5}}};

  const Json copy = checked_copy(made, {});

  EXPECT_TRUE(is_same(copy, read_json(to_text(made))));
  EXPECT_TRUE(copy.at("count").is_int64());
  made.as_object()["text"] = "another";
  EXPECT_EQ(text_at(copy, {"text"}), "caf\xC3\xA9");
}

TEST(Json, ACheckedCopyRefusesWhatTextCannotSay) {
  EXPECT_THROW(checked_copy(Json("\xFF"), {}), Error);
  EXPECT_THROW(checked_copy(JsonObject{{"\xC3", 1}}, {}), Error);
  EXPECT_THROW(checked_copy(JsonArray{std::numeric_limits<double>::infinity()}, {}), Error);
  Json deep = 1;
  for (std::size_t i = 0; i < kMostDepth; ++i) deep = JsonArray{std::move(deep)};
  EXPECT_THROW(checked_copy(deep, {}), Error);
  EXPECT_NO_THROW(checked_copy(deep.as_array().front(), {}));
}

TEST(Yaml, ReadsJsonToo) {
  EXPECT_EQ(to_text(parse_yaml(R"({"a": {"b": ["c"]}})").value), R"({"a":{"b":["c"]}})");
}

TEST(Yaml, TellsDuplicatesAndRefusesAliases) {
  EXPECT_EQ(parse_yaml("a:\n- b: 1\n  b: 2\n").duplicates, std::vector<std::string>{"a[0].b"});
  EXPECT_THROW(parse_yaml("a: &x [1]\nb: *x\n"), Error);
  EXPECT_THROW(parse_yaml("a: [1\nb"), Error);
}

}  // namespace
}  // namespace hearth::model
