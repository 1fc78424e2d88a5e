#include "cli/values.h"

#include <array>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

using namespace std::chrono_literals;

// What is thrown, or an empty text.
template <typename F>
std::string complaint(F&& parse) {
  try {
    parse();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return {};
}

TEST(ValuesTest, SizesArePowersOf1024WhateverTheirSpelling) {
  EXPECT_EQ(parse_size("--memory", "0"), 0U);
  EXPECT_EQ(parse_size("--memory", "1048576"), 1048576U);
  EXPECT_EQ(parse_size("--memory", "17b"), 17U);
  for (const char* text : {"512m", "512M", "512mb", "512Mi", "512MiB", "0.5g"}) {
    EXPECT_EQ(parse_size("--memory", text), 512U << 20) << text;
  }
  EXPECT_EQ(parse_size("--disk", "1.5g"), (3ull << 30) / 2);
  EXPECT_EQ(parse_size("--disk", "2T"), 2ull << 40);
}

TEST(ValuesTest, BadSizesAreNamedWithTheirFlag) {
  for (const char* text :
       {"", "m", "-1", "1x", "1 m", "1mm", "1mi b", "1e3", ".", "1.2.3", "0x10", "nan", "inf"}) {
    const std::string why = complaint([&] { parse_size("--memory", text); });
    EXPECT_TRUE(why.starts_with("--memory: ")) << text << ": " << why;
  }
  EXPECT_FALSE(complaint([] { parse_size("--memory", "99999999t"); }).empty());
}

TEST(ValuesTest, ProcessorsCountInThousandths) {
  EXPECT_EQ(parse_cpus("--cpus", "1.5"), 1500U);
  EXPECT_EQ(parse_cpus("--cpus", "2"), 2000U);
  EXPECT_EQ(parse_cpus("--cpus", "0.25"), 250U);
  EXPECT_EQ(parse_cpus("--cpus", "0"), 0U);
  for (const char* text : {"", "two", "1.5x", "-1", "0.001", "1e9", "999999999"}) {
    EXPECT_FALSE(complaint([&] { parse_cpus("--cpus", text); }).empty()) << text;
  }
}

TEST(ValuesTest, CountsAreWholeAndBounded) {
  EXPECT_EQ(parse_count("--pids", "256", 1000), 256U);
  for (const char* text : {"", "-1", "1.5", "1001", "99999999999", "1 "}) {
    EXPECT_FALSE(complaint([&] { parse_count("--pids", text, 1000); }).empty()) << text;
  }
}

TEST(ValuesTest, TimeoutsTakeUnitsOrSeconds) {
  EXPECT_EQ(parse_timeout("--timeout", "30s"), 30s);
  EXPECT_EQ(parse_timeout("--timeout", "2m30s"), 150s);
  EXPECT_EQ(parse_timeout("--timeout", "500ms"), 500ms);
  EXPECT_EQ(parse_timeout("--timeout", "45"), 45s);
  for (const char* text : {"", "0", "0s", "-1s", "soon", "5 s"}) {
    EXPECT_FALSE(complaint([&] { parse_timeout("--timeout", text); }).empty()) << text;
  }
}

TEST(ValuesTest, EnvironmentEntriesNeedANameAndAnEqualsSign) {
  check_environment("-e", "A=b");
  check_environment("-e", "A=");
  check_environment("-e", "A=b=c");

  EXPECT_EQ(complaint([] { check_environment("-e", "FOO"); }),
            "-e: 'FOO' has no value; write FOO=value");
  EXPECT_FALSE(complaint([] { check_environment("-e", ""); }).empty());
}

TEST(ValuesTest, AValueWithoutANameIsNotRepeated) {
  const std::string why = complaint([] { check_environment("-e", "=secret"); });

  EXPECT_FALSE(why.empty());
  EXPECT_EQ(why.find("secret"), std::string::npos);
}

TEST(ValuesTest, SizesForPeopleHaveAtMostOneDigitBehindThePoint) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(512ull << 20), "512 MiB");
  EXPECT_EQ(format_size((3ull << 30) / 2), "1.5 GiB");
  EXPECT_EQ(format_size(200ull << 50), "204800 TiB");
}

TEST(ValuesTest, QuotingKeepsAShellFromReadingMore) {
  EXPECT_EQ(shell_quote("/var/lib/hearth"), "/var/lib/hearth");
  EXPECT_EQ(shell_quote("http://127.0.0.1:80"), "http://127.0.0.1:80");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("a b"), "'a b'");
  EXPECT_EQ(shell_quote("$(rm -rf /)"), "'$(rm -rf /)'");
  EXPECT_EQ(shell_quote("it's"), R"('it'\''s')");
  EXPECT_EQ(shell_quote("~"), "'~'");
  EXPECT_EQ(shell_quote("a\nb"), "'a\nb'");
}

TEST(ValuesTest, TheNearestWordIsFoundUnlessNoneIsNear) {
  constexpr std::array<std::string_view, 4> kWords = {"run", "rm", "inspect", "doctor"};

  EXPECT_EQ(find_nearest("ruin", kWords), "run");
  EXPECT_EQ(find_nearest("inspct", kWords), "inspect");
  EXPECT_EQ(find_nearest("docter", kWords), "doctor");
  EXPECT_EQ(find_nearest("frobnicate", kWords), "");
  EXPECT_EQ(find_nearest("", kWords), "");
}

}  // namespace
}  // namespace hearth::cli
