#include "http/target.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::http {
namespace {

TEST(Target, OriginFormIsPathAndQuery) {
  const auto target = parse_target("/a%20b?x=1?2");

  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a%20b");
  EXPECT_EQ(target->query, "x=1?2");
  EXPECT_EQ(target->authority, "");
}

TEST(Target, AbsoluteFormNamesItsHost) {
  const auto target = parse_target("HTTP://example.org:8080/a?b");
  const auto bare = parse_target("https://example.org?b");

  ASSERT_TRUE(target);
  EXPECT_EQ(target->authority, "example.org:8080");
  EXPECT_EQ(target->path, "/a");
  EXPECT_EQ(target->query, "b");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->path, "/");
  EXPECT_EQ(bare->query, "b");
}

TEST(Target, WhatIsNeitherIsRefused) {
  for (const std::string_view bad : {"", "a", "example.org:80", "ftp://a/", "http://", "http:///a",
                                     "http://user@host/", "/a b", "/a#b", "/a\n", "/\x7f"}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
  EXPECT_TRUE(parse_target("*"));
}

TEST(PercentDecoding, IsDoneOnce) {
  EXPECT_EQ(percent_decode("a%2Fb%2fc"), "a/b/c");
  EXPECT_EQ(percent_decode("%2541"), "%41");
  EXPECT_EQ(percent_decode("a+b"), "a+b");
  EXPECT_EQ(percent_decode("%C3%A9"), "\xC3\xA9");
}

TEST(PercentDecoding, RefusesWhatIsNoEscapeAndNul) {
  for (const std::string_view bad : {"%", "%4", "%zz", "%4g", "a%", "%00", "a%00b"}) {
    EXPECT_FALSE(percent_decode(bad)) << bad;
  }
  EXPECT_FALSE(percent_decode(std::string_view("a\0", 2)));
}

TEST(PathSegment, DotsAreRefusedInEverySpelling) {
  for (const std::string_view bad : {".", "..", "%2e", "%2E%2e", ".%2e", "a%2f..", "a%2F..%2Fb"}) {
    EXPECT_FALSE(decode_path_segment(bad)) << bad;
  }
  for (const std::string_view good : {"...", ".a", "a.", "a..b", ""}) {
    EXPECT_EQ(decode_path_segment(good), good);
  }
}

TEST(PercentEncoding, IsUndoneByDecoding) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);

  EXPECT_EQ(percent_decode(percent_encode(all)), all);
  EXPECT_EQ(percent_encode("a/b c"), "a%2Fb%20c");
}

TEST(Query, IsReadInOrder) {
  using Parameters = std::vector<std::pair<std::string, std::string>>;

  EXPECT_EQ(query_parameters("a=1&b=x+y%2B&a=2&flag&=v&&"),
            (Parameters{{"a", "1"}, {"b", "x y+"}, {"a", "2"}, {"flag", ""}, {"", "v"}}));
  EXPECT_EQ(find_query_parameter("a=1&a=2", "a"), "1");
  EXPECT_EQ(find_query_parameter("a=1", "b"), std::nullopt);
  EXPECT_THROW(query_parameters("a=%zz"), Error);
}

}  // namespace
}  // namespace hearth::http
