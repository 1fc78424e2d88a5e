// The small languages of the model: JSONPath, quantities, ages, YAML as text.
#include <chrono>

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/age.h"
#include "model/json_path.h"
#include "model/quantity.h"
#include "model/yaml_text.h"

namespace hearth::model {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

const Json& sample() {
  static const Json kSample = parse_json(R"({
    "metadata":{"name":"x","labels":{"a.b/c":"d"}},
    "list":[{"n":1},{"n":2},{"n":3}],
    "status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Done","status":"False"}]}})")
                                  .value;
  return kSample;
}

std::string found(std::string_view path) {
  std::string text;
  for (const Json* value : JsonPath::parse(path).find_all(sample()))
    text += (text.empty() ? "" : " ") + to_text(*value);
  return text;
}

TEST(JsonPathTest, FindsWhatItLeadsTo) {
  EXPECT_EQ(found(".metadata.name"), R"("x")");
  EXPECT_EQ(found("{.metadata.name}"), R"("x")");
  EXPECT_EQ(found("$.metadata.name"), R"("x")");
  EXPECT_EQ(found("metadata.name"), R"("x")");
  EXPECT_EQ(found(".metadata.labels['a.b/c']"), R"("d")");
  EXPECT_EQ(found(R"(.metadata.labels.a\.b/c)"), R"("d")");
  EXPECT_EQ(found(".list[0].n"), "1");
  EXPECT_EQ(found(".list[-1].n"), "3");
  EXPECT_EQ(found(".list[-2].n"), "2");
  EXPECT_EQ(found(".list[1:].n"), "2 3");
  EXPECT_EQ(found(".list[*].n"), "1 2 3");
  EXPECT_EQ(found(".status.conditions[?(@.type=='Ready')].status"), R"("True")");
  EXPECT_EQ(found(R"(.status.conditions[?(@.type == "Done")].status)"), R"("False")");
  EXPECT_EQ(found(".list[?(@.n>=2)].n"), "2 3");
  EXPECT_EQ(found(".list[?(@.n!=2)].n"), "1 3");
  EXPECT_EQ(found(".list[?(@.n)].n"), "1 2 3");
  EXPECT_EQ(found(".list[7].n"), "");
  EXPECT_EQ(found(".list.n"), "");
  EXPECT_EQ(found(".metadata[0]"), "");
  EXPECT_EQ(found(".nothing.at.all"), "");
  EXPECT_EQ(JsonPath::parse(".list[9]").find_first(sample()), nullptr);
}

TEST(JsonPathTest, RefusesWhatIsNone) {
  for (const char* bad : {"", ".a..b", ".a[", ".a[x]", ".a['b", "{.a", ".a}", ".a[?(@.b==)]",
                          ".a[?(b==1)]", ".a b", ".a[99999999999999999999]", ".a.", "..", "\\"})
    EXPECT_THROW(JsonPath::parse(bad), Error) << bad;
  std::string long_one;
  for (int i = 0; i < 65; ++i) long_one += ".a";
  EXPECT_THROW(JsonPath::parse(long_one), Error);
}

TEST(JsonPathTest, PutsAValue) {
  Json value = parse_json(R"({"spec":{"x":1}})").value;
  JsonPath::parse(".spec.deep.replicas").set(value, 3);
  EXPECT_EQ(to_text(value), R"({"spec":{"x":1,"deep":{"replicas":3}}})");
  EXPECT_THROW(JsonPath::parse(".spec.x.y").set(value, 3), Error);
  EXPECT_THROW(JsonPath::parse(".spec[0]").set(value, 3), Error);
}

std::string canonical(std::string_view text) {
  const auto quantity = Quantity::parse(text);
  return quantity ? quantity->text() : "none";
}

TEST(QuantityTest, CanonicalText) {
  EXPECT_EQ(canonical("100m"), "100m");
  EXPECT_EQ(canonical("0.1"), "100m");
  EXPECT_EQ(canonical("1000m"), "1");
  EXPECT_EQ(canonical("1.5"), "1500m");
  EXPECT_EQ(canonical("1024Mi"), "1Gi");
  EXPECT_EQ(canonical("1536Mi"), "1536Mi");
  EXPECT_EQ(canonical("1.5Gi"), "1536Mi");
  EXPECT_EQ(canonical("1.500000000000000000Ei"), "1536Pi");
  EXPECT_EQ(canonical("1.00000000000000000001Gi"), "1073741824000000001n");
  EXPECT_EQ(canonical("99999999999999999999999999999999Ei"), "9223372036854775807");
  EXPECT_EQ(canonical("512Ki"), "512Ki");
  EXPECT_EQ(canonical("0.5Ki"), "512");
  EXPECT_EQ(canonical("1e3"), "1e3");
  EXPECT_EQ(canonical("1500e0"), "1500");
  EXPECT_EQ(canonical("12E6"), "12e6");
  EXPECT_EQ(canonical("1000000"), "1M");
  EXPECT_EQ(canonical("0"), "0");
  EXPECT_EQ(canonical("-2k"), "-2k");
  EXPECT_EQ(canonical("+5"), "5");
  EXPECT_EQ(canonical("1n"), "1n");
  EXPECT_EQ(canonical("0.1n"), "1n");
  EXPECT_EQ(canonical("2E"), "2E");
  EXPECT_EQ(canonical("9999999999E"), "9223372036854775807");
  EXPECT_EQ(canonical("10000000000000000000000000000000000000000000"), "9223372036854775807");
}

TEST(QuantityTest, RefusesOtherText) {
  for (const char* bad :
       {"", "x", "1x", "1 Gi", "Gi", ".", "1.2.3", "--1", "1e", "1e99999", "1gi", "1K"})
    EXPECT_FALSE(Quantity::parse(bad)) << bad;
}

TEST(QuantityTest, NumbersAndOrder) {
  EXPECT_EQ(Quantity::parse("1Gi")->units(), 1 << 30);
  EXPECT_EQ(Quantity::parse("1500m")->units(), 2);
  EXPECT_EQ(Quantity::parse("1500m")->thousandths(), 1500);
  EXPECT_EQ(*Quantity::parse("1000m"), *Quantity::parse("1"));
  EXPECT_LT(*Quantity::parse("1G"), *Quantity::parse("1Gi"));
  EXPECT_EQ((*Quantity::parse("1Gi") + *Quantity::parse("1Gi")).text(), "2Gi");
  EXPECT_EQ(Quantity::of(2048, Quantity::Form::binary).text(), "2Ki");
  EXPECT_TRUE(Quantity::parse("-1m")->is_negative());
}

TEST(AgeTest, AsKubectlPrints) {
  EXPECT_EQ(age_text(66s), "66s");
  EXPECT_EQ(age_text(119s), "119s");
  EXPECT_EQ(age_text(120s), "2m");
  EXPECT_EQ(age_text(125s), "2m5s");
  EXPECT_EQ(age_text(14min + 3s), "14m");
  EXPECT_EQ(age_text(179min), "179m");
  EXPECT_EQ(age_text(3h + 5min), "3h5m");
  EXPECT_EQ(age_text(20h + 5min), "20h");
  EXPECT_EQ(age_text(51h), "2d3h");
  EXPECT_EQ(age_text(24h * 100), "100d");
  EXPECT_EQ(age_text(24h * (4 * 365 + 12)), "4y12d");
  EXPECT_EQ(age_text(24h * 365 * 9), "9y");
  EXPECT_EQ(age_text(-1s), "0s");
  EXPECT_EQ(age_text(-5s), "<invalid>");
  EXPECT_EQ(age_since("", Time()), "<unknown>");
  EXPECT_EQ(age_since("yesterday", Time()), "<invalid>");
  EXPECT_EQ(age_since("1970-01-01T00:00:00Z", Time(66s)), "66s");
}

TEST(YamlTextTest, WritesWhatKubernetesUsersRead) {
  const Json value =
      parse_json(R"({"spec":{"containers":[{"name":"main","command":["sleep","3600"]}],
      "empty":{},"none":[],"text":"a: b","flag":"yes","time":"2026-11-15T02:47:31Z"},"kind":"Pod",
      "num":3,"nested":[[1,2],{}],"z":null,"image":"registry:5000/a@sha256:1"})")
          .value;
  EXPECT_EQ(to_yaml(value), R"(image: registry:5000/a@sha256:1
kind: Pod
nested:
- - 1
  - 2
- {}
num: 3
spec:
  containers:
  - command:
    - sleep
    - "3600"
    name: main
  empty: {}
  flag: "yes"
  none: []
  text: "a: b"
  time: "2026-11-15T02:47:31Z"
z: null
)");
  EXPECT_EQ(to_yaml(Json("x")), "x\n");
}

}  // namespace
}  // namespace hearth::model
