#include "schema/cel.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::schema {
namespace {

const model::Json& example() {
  static const model::Json value = model::parse_json(R"({
      "name":"den","count":3,"ratio":0.5,"on":true,"list":["a","b"],"numbers":[1,2,3],
      "map":{"x":"1","y":"2"},"items":[{"n":"a","v":1},{"n":"b"}],"namespace":"ns","a-b":1,
      "empty":""})")
                                       .value;
  return value;
}

std::string result_of(std::string_view rule) {
  try {
    const auto program = compile_cel(rule);
    const model::Json old = model::parse_json(R"({"count":5})").value;
    return evaluate_cel(*program, example(), uses_old_self(*program) ? &old : nullptr) ? "true"
                                                                                       : "false";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
}

TEST(CelTest, Holds) {
  for (const std::string_view rule : {"true",
                                      "!false",
                                      "self.on",
                                      "self.count == 3",
                                      "self.count != 4 && self.count > 2",
                                      "self.count <= 3 || self.nothing",
                                      "self.nothing == 1 || self.on",
                                      "has(self.name)",
                                      "!has(self.nothing)",
                                      "self.name == 'den'",
                                      "self.name.startsWith(\"d\")",
                                      "self.name.endsWith('en') && self.name.contains('e')",
                                      "self.name.matches('^[a-z]+$')",
                                      "size(self.name) == 3 && self.list.size() == 2",
                                      "'a' in self.list",
                                      "'x' in self.map",
                                      "!('z' in self.map)",
                                      "self.list.all(x, x != 'c')",
                                      "self.list.exists(x, x == 'b')",
                                      "self.numbers.exists_one(n, n > 2)",
                                      "self.items.exists(i, i.v == 1)",
                                      "self.numbers.filter(n, n > 1).size() == 2",
                                      "self.numbers.map(n, n * 2) == [2, 4, 6]",
                                      "self.map.all(k, self.map[k] != '3')",
                                      "self.list[1] == 'b'",
                                      "self.map['x'] == '1'",
                                      "self.count + 2 * 3 - 1 == 8",
                                      "self.count / 2 == 1 && self.count % 2 == 1",
                                      "-self.count < 0 && self.ratio < 1",
                                      "self.ratio * 2.0 == 1.0",
                                      "self.on ? true : false",
                                      "(self.count > 5 ? 'many' : 'few') == 'few'",
                                      "int('7') == 7 && string(7) == '7'",
                                      "self.name + '!' == 'den!'",
                                      "'A'.lowerAscii() == 'a'",
                                      "self.__namespace__ == 'ns'",
                                      "self.a__dash__b == 1",
                                      "oldSelf.count > self.count",
                                      "self.empty == \"\"",
                                      "[1, 2] + [3] == self.numbers",
                                      "'it\\'s' != \"\\n\"",
                                      "null == null",
                                      "self == self"})
    EXPECT_EQ(result_of(rule), "true") << rule;
}

TEST(CelTest, DoesNotHold) {
  for (const std::string_view rule :
       {"false", "self.on && self.count > 3", "self.list.all(x, x == 'a')", "has(self.nothing)",
        "self.nothing == 1 && false", "self.items.all(i, has(i.v))", "'c' in self.list"})
    EXPECT_EQ(result_of(rule), "false") << rule;
}

TEST(CelTest, SaysWhyItCannotDecide) {
  EXPECT_EQ(result_of("self.nothing == 1"), "no such key: nothing");
  EXPECT_EQ(result_of("self.name > 1"), "no such overload");
  EXPECT_EQ(result_of("self.list[2] == 'c'"), "index out of bounds: 2");
  EXPECT_EQ(result_of("self.count / 0 == 1"), "division by zero");
  EXPECT_EQ(result_of("9223372036854775807 + self.count > 0"), "integer overflow");
  EXPECT_EQ(result_of("self.count"), "no such overload");
  EXPECT_EQ(result_of("int(self.name) == 1"), "type conversion error");
}

TEST(CelTest, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(result_of("quantity(self.x) > 1"),
            "function 'quantity' is not supported at character 16 of 'quantity(self.x) > 1'");
  EXPECT_EQ(result_of("self.name.isSorted()"),
            "function 'isSorted' is not supported at character 20 of 'self.name.isSorted()'");
  EXPECT_EQ(result_of("other.x"), "'other' is not known at character 6 of 'other.x'");
  EXPECT_EQ(result_of("{'a': 1}"), "'{' is not supported at character 1 of '{'a': 1}'");
  EXPECT_EQ(result_of("self.name.matches(self.pattern)"),
            "matches() is supported with a literal pattern only at character 32 of "
            "'self.name.matches(self.pattern)'");
  EXPECT_EQ(result_of("self.list.all(x, x == 'a') x"),
            "an operator was expected at character 28 of 'self.list.all(x, x == 'a') x'");
  for (const std::string_view rule : {"", "self.", "(true", "1 +", "'open", "has(1)", "x.all(x, x)",
                                      "b'bytes'", "0x10 == 16", "self.?x", "1e3 == 1", "'\\x41'"})
    EXPECT_NE(result_of(rule).find("at character"), std::string::npos) << rule;
}

TEST(CelTest, IsBounded) {
  EXPECT_NE(result_of(std::string(10'000, '!') + "true").find("too deep"), std::string::npos);
  EXPECT_NE(result_of(std::string(10'000, '(')).find("too deep"), std::string::npos);
  std::string chain = "1";
  for (int i = 0; i < 2000; ++i) chain += "+1";
  EXPECT_NE(result_of(chain + " > 1").find("too many operators"), std::string::npos);

  model::JsonArray numbers;
  for (int i = 0; i < 3000; ++i) numbers.emplace_back(i);
  const auto program = compile_cel("self.all(x, self.exists_one(y, x == y))");
  EXPECT_THROW(evaluate_cel(*program, numbers, nullptr), Error);
  // A list of copies of everything, again and again.
  const auto copies = compile_cel("self.map(x, self.map(y, self)).size() > 0");
  EXPECT_THROW(evaluate_cel(*copies, numbers, nullptr), Error);
}

}  // namespace
}  // namespace hearth::schema
