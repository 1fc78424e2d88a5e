#include "http/host_pattern.h"

#include <string>

#include <gtest/gtest.h>

namespace hearth::http {
namespace {

TEST(HostPattern, IsANameOrAllBelowOne) {
  for (const char* good : {"a", "api.example.com", "*.pypi.org", "*", "xn--bcher-kva.example",
                           "_sip.example.com", "1.example", "8.8.8.8.in-addr.arpa"})
    EXPECT_TRUE(is_host_pattern(good)) << good;
  for (const std::string& bad : {std::string(),
                                 std::string("."),
                                 std::string("a."),
                                 std::string(".a"),
                                 std::string("a..b"),
                                 std::string("*."),
                                 std::string("**.a"),
                                 std::string("a.*.b"),
                                 std::string("*a.b"),
                                 std::string("A.b"),
                                 std::string("a b"),
                                 std::string("a/b"),
                                 std::string("a:80"),
                                 std::string("-a.b"),
                                 std::string("a-.b"),
                                 std::string("bücher.example"),
                                 std::string("1.2.3.4"),
                                 std::string("10.0.0"),
                                 std::string("1.2.3.400"),
                                 std::string("::1"),
                                 std::string(64, 'a'),
                                 std::string("a\0b", 3)})
    EXPECT_FALSE(is_host_pattern(bad)) << bad;
  std::string longest = "a";
  while (longest.size() < 253) longest += ".a";
  EXPECT_TRUE(is_host_pattern(longest));
  EXPECT_FALSE(is_host_pattern(longest + ".a"));
}

TEST(HostPattern, MatchesWholeLabels) {
  EXPECT_TRUE(matches_host("pypi.org", "pypi.org"));
  EXPECT_FALSE(matches_host("pypi.org", "x.pypi.org"));
  EXPECT_TRUE(matches_host("*.pypi.org", "x.pypi.org"));
  EXPECT_TRUE(matches_host("*.pypi.org", "y.x.pypi.org"));
  EXPECT_FALSE(matches_host("*.pypi.org", "pypi.org"));
  EXPECT_FALSE(matches_host("*.pypi.org", ".pypi.org"));
  EXPECT_FALSE(matches_host("*.pypi.org", "evilpypi.org"));
  EXPECT_FALSE(matches_host("*.pypi.org", "x.pypi.org.evil"));
  EXPECT_TRUE(matches_host("*", "anything.at.all"));
}

}  // namespace
}  // namespace hearth::http
