#include "model/selector.h"

#include <string>

#include <gtest/gtest.h>

#include "model/status.h"

namespace hearth::model {
namespace {

const Labels kLabels = {{"app", "web"}, {"example.com/tier", "2"}, {"n", "7"}};

bool selects(std::string_view text, const Labels& labels = kLabels) {
  return LabelSelector::parse(text).matches(labels);
}

template <typename Selector>
std::string refusal(std::string_view text) {
  try {
    Selector::parse(text);
  } catch (const StatusError& error) {
    EXPECT_EQ(error.status().code, 400U);
    return error.what();
  }
  return "accepted";
}

TEST(LabelSelectorTest, SelectsByEverySpelling) {
  EXPECT_TRUE(selects(""));
  EXPECT_TRUE(selects("app=web"));
  EXPECT_TRUE(selects("app == web , n"));
  EXPECT_FALSE(selects("app!=web"));
  EXPECT_TRUE(selects("missing!=web"));
  EXPECT_TRUE(selects("app in (db, web)"));
  EXPECT_FALSE(selects("app notin (db,web)"));
  EXPECT_TRUE(selects("missing notin (db)"));
  EXPECT_TRUE(selects("!missing"));
  EXPECT_FALSE(selects("!app"));
  EXPECT_FALSE(selects("missing"));
  EXPECT_TRUE(selects("n>6,n<8,example.com/tier=2"));
  EXPECT_FALSE(selects("n>7"));
  EXPECT_FALSE(selects("app>7"));
  EXPECT_FALSE(selects("app="));
  EXPECT_TRUE(selects("app=", {{"app", ""}}));
  EXPECT_TRUE(selects("in in (in,notin)", {{"in", "notin"}}));
  EXPECT_TRUE(selects("a in (x,)", {{"a", ""}}));
}

TEST(LabelSelectorTest, RefusesInTheWordsOfKubernetes) {
  EXPECT_EQ(refusal<LabelSelector>("a===b"),
            "unable to parse requirement: found '=', expected: identifier");
  EXPECT_EQ(refusal<LabelSelector>("a=b,"), "found '', expected: identifier after ','");
  EXPECT_EQ(refusal<LabelSelector>(",a"), "found ',', expected: !, identifier, or 'end of string'");
  EXPECT_EQ(refusal<LabelSelector>("a b"),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
  EXPECT_EQ(refusal<LabelSelector>("a=b c"), "found 'c', expected: ',' or 'end of string'");
  EXPECT_EQ(refusal<LabelSelector>("a in b"),
            "unable to parse requirement: found 'b' expected: '('");
  EXPECT_EQ(refusal<LabelSelector>("a in (b"),
            "unable to parse requirement: found '', expected: ',' or ')'");
  EXPECT_EQ(
      refusal<LabelSelector>("n>x"),
      "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
      "the value must be an integer");
  EXPECT_TRUE(refusal<LabelSelector>("-a=b").starts_with(
      "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of"));
  EXPECT_TRUE(refusal<LabelSelector>("a=@").starts_with(
      "unable to parse requirement: values[0][a]: Invalid value: \"@\": a valid label must be"));
  EXPECT_NE(refusal<LabelSelector>(std::string(kMostSelectorBytes + 1, 'a')), "accepted");
}

TEST(LabelSelectorTest, IsWrittenSortedByKey) {
  EXPECT_EQ(LabelSelector::parse("z,!b,a in (y,x),c==d,e!=f").text(), "a in (x,y),!b,c=d,e!=f,z");
}

TEST(LabelSelectorTest, ComesFromAnObject) {
  const Json object = parse_json(R"({"matchLabels":{"app":"web"},"matchExpressions":[
      {"key":"n","operator":"In","values":["8","7"]},{"key":"x","operator":"DoesNotExist"}]})")
                          .value;
  const LabelSelector selector = LabelSelector::from_object(object);
  EXPECT_EQ(selector.text(), "app=web,n in (7,8),!x");
  EXPECT_TRUE(selector.matches(kLabels));
  EXPECT_TRUE(LabelSelector::from_object(Json()).is_empty());
  for (const char* bad :
       {R"({"matchExpressions":[{"key":"n","operator":"Near"}]})",
        R"({"matchExpressions":[{"key":"n","operator":"In"}]})",
        R"({"matchExpressions":[{"key":"n","operator":"Exists","values":["a"]}]})",
        R"({"matchLabels":{"a b":"c"}})"})
    EXPECT_THROW(LabelSelector::from_object(parse_json(bad).value), StatusError) << bad;
}

TEST(LabelSelectorTest, LabelsOfAnObjectAreSorted) {
  const Json object = parse_json(R"({"metadata":{"labels":{"b":"2","a":"1"}}})").value;
  EXPECT_EQ(labels_of(object), (Labels{{"a", "1"}, {"b", "2"}}));
  EXPECT_TRUE(labels_of(Json()).empty());
}

TEST(FieldSelectorTest, ComparesFields) {
  const Labels fields = {{"metadata.name", "a,b"}, {"status.phase", "Running"}};
  EXPECT_TRUE(FieldSelector::parse("").matches(fields));
  EXPECT_TRUE(FieldSelector::parse("status.phase==Running").matches(fields));
  EXPECT_FALSE(FieldSelector::parse("status.phase!=Running").matches(fields));
  EXPECT_TRUE(FieldSelector::parse(R"(metadata.name=a\,b,spec.nodeName=)").matches(fields));
  EXPECT_EQ(FieldSelector::parse("metadata.name=x,a!=b").required_value("metadata.name"), "x");
  EXPECT_FALSE(FieldSelector::parse("metadata.name!=x").required_value("metadata.name"));
  EXPECT_EQ(FieldSelector::parse(R"(b!=\\,a=\=)").text(), R"(a=\=,b!=\\)");
  EXPECT_EQ(FieldSelector::parse("a==b,a=?").text(), FieldSelector::parse("a=b,a=?").text());
}

TEST(FieldSelectorTest, RefusesInTheWordsOfKubernetes) {
  EXPECT_EQ(refusal<FieldSelector>("spec.foo"),
            "invalid selector: 'spec.foo'; can't understand 'spec.foo'");
  EXPECT_EQ(refusal<FieldSelector>(R"(a=b\c)"),
            R"(invalid field selector: invalid escape sequence: \c)");
  EXPECT_EQ(refusal<FieldSelector>("a=b\\"), "invalid field selector: invalid escape sequence: \\");
  EXPECT_NE(refusal<FieldSelector>("a===b"), "accepted");
}

TEST(FieldSelectorTest, UnknownFieldsAreNamed) {
  const std::vector<std::string> known = {"metadata.name", "metadata.namespace"};
  const auto complaint = [&](bool has_own) -> std::string {
    try {
      FieldSelector::parse("spec.foo=x").require_known(known, has_own);
    } catch (const StatusError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(complaint(true), "field label not supported: spec.foo");
  EXPECT_EQ(complaint(false),
            "\"spec.foo\" is not a known field selector: only "
            "\"metadata.name\", \"metadata.namespace\"");
  FieldSelector::parse("metadata.name=x").require_known(known, true);
}

}  // namespace
}  // namespace hearth::model
