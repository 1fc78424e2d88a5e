#include <gtest/gtest.h>

#include "base/error.h"
#include "registry/challenge.h"
#include "registry/reference.h"
#include "registry/url.h"

namespace hearth::registry {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string error_of(const std::string& text) {
  try {
    const Reference reference = parse_reference(text);
    ADD_FAILURE() << text << " was taken for " << reference.text();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return {};
}

TEST(Reference, ShortNamesAreDockers) {
  EXPECT_EQ(parse_reference("python").text(), "docker.io/library/python:latest");
  EXPECT_EQ(parse_reference("python:3.12").text(), "docker.io/library/python:3.12");
  EXPECT_EQ(parse_reference("team/app").text(), "docker.io/team/app:latest");
  EXPECT_EQ(parse_reference("index.docker.io/python").text(), "docker.io/library/python:latest");
  EXPECT_EQ(parse_reference("docker.io/python").text(), "docker.io/library/python:latest");
  EXPECT_EQ(parse_reference("python").server(), "registry-1.docker.io");
}

TEST(Reference, OtherHostsAreTakenAsTheyAre) {
  EXPECT_EQ(parse_reference("localhost:5000/x/y:tag"),
            (Reference{.host = "localhost:5000", .repository = "x/y", .tag = "tag"}));
  EXPECT_EQ(parse_reference("localhost/x").text(), "localhost/x:latest");
  EXPECT_EQ(parse_reference("ghcr.io/a/b/c_d__e-f.g").repository, "a/b/c_d__e-f.g");
  EXPECT_EQ(parse_reference("[::1]:5000/x").host, "[::1]:5000");
  EXPECT_EQ(parse_reference("ghcr.io/x").server(), "ghcr.io");
}

TEST(Reference, ADigestWinsOverTheTag) {
  const Reference digest = parse_reference("host.io/x@" + kDigest);
  EXPECT_EQ(digest.tag, "");
  EXPECT_EQ(digest.version(), kDigest);
  EXPECT_EQ(digest.text(), "host.io/x@" + kDigest);

  const Reference both = parse_reference("host.io/x:1@" + kDigest);
  EXPECT_EQ(both.tag, "1");
  EXPECT_EQ(both.version(), kDigest);
  EXPECT_EQ(both.text(), "host.io/x:1@" + kDigest);
}

TEST(Reference, WhatItIsCalledMeansTheSameAgain) {
  for (const std::string text : {"python", "a/b:c", "localhost:1/x", "[::1]/x:y"}) {
    EXPECT_EQ(parse_reference(parse_reference(text).text()), parse_reference(text));
  }
}

TEST(Reference, SaysWhatIsWrong) {
  EXPECT_NE(error_of("").find("empty"), std::string::npos);
  EXPECT_NE(error_of("Python").find("'Python'"), std::string::npos);
  EXPECT_NE(error_of("python:").find("tag"), std::string::npos);
  EXPECT_NE(error_of("python:-x").find("'-x' is no tag"), std::string::npos);
  EXPECT_NE(error_of("python@sha256:12").find("digest"), std::string::npos);
  EXPECT_NE(error_of("python@md5:" + std::string(64, 'a')).find("digest"), std::string::npos);
  EXPECT_NE(error_of("https://ghcr.io/x").find("leave out 'https://'"), std::string::npos);
  EXPECT_NE(error_of("host.io:99999/x").find("'host.io:99999' is no host"), std::string::npos);
  for (const std::string bad :
       {"a//b", "/a", "a/", "a/../b", "a/./b", ".a", "a_-b", "a___b", "host.io/", "ho..st/x", "a b",
        "a\nb", "x:y:z", "host.io:/x", "[::1/x", "[]:5/x", "-h.io/x"}) {
    error_of(bad);
  }
  error_of(std::string(300, 'a'));
  error_of("x:" + std::string(129, 'a'));
  error_of(std::string(5000, 'a'));
  error_of(std::string("a\0b", 3));
}

TEST(Url, KnowsSchemeHostPortAndTarget) {
  EXPECT_EQ(parse_url("https://auth.docker.io/token?x=1"),
            (Url{.tls = true, .host = "auth.docker.io", .port = 443, .target = "/token?x=1"}));
  EXPECT_EQ(parse_url("http://[::1]:5000"), (Url{.tls = false, .host = "::1", .port = 5000}));
  EXPECT_EQ(parse_url("https://Host?a#b").target, "/?a");
  EXPECT_EQ(parse_url("https://Host").origin(), "https://host:443");
  EXPECT_EQ(parse_url("https://h/a?signature=secret").shown(), "https://h:443/a");
}

TEST(Url, RefusesWhatCouldMeanSomethingElse) {
  for (const char* bad : {"", "ftp://x/", "file:///etc/passwd", "https://", "https://a@b/",
                          "https://h:0/", "https://h:99999/", "https://h/a b", "https://h/\r\nX: y",
                          "https://[::1/", "https://[::1]x/", "https://a,b/"}) {
    EXPECT_THROW(parse_url(bad), Error) << bad;
  }
  EXPECT_THROW(parse_url("https://h/" + std::string(20000, 'x')), Error);
}

TEST(Url, ResolvesLocations) {
  const Url base = parse_url("https://h:5000/v2/x");
  EXPECT_EQ(resolve(base, "/y?z").shown(), "https://h:5000/y");
  EXPECT_EQ(resolve(base, "//other/y").shown(), "https://other:443/y");
  EXPECT_EQ(resolve(base, "http://other/y").shown(), "http://other:80/y");
  EXPECT_THROW(resolve(base, "y"), Error);
}

TEST(Challenge, BearerWithItsParameters) {
  const auto challenges = parse_challenges(
      R"(Bearer realm="https://auth.docker.io/token",service="registry.docker.io",)"
      R"(scope="repository:library/x:pull,push")");

  ASSERT_EQ(challenges.size(), 1U);
  EXPECT_EQ(challenges[0].scheme, "bearer");
  EXPECT_EQ(challenges[0].parameters.at("realm"), "https://auth.docker.io/token");
  EXPECT_EQ(challenges[0].parameters.at("scope"), "repository:library/x:pull,push");
}

TEST(Challenge, SeveralInOneField) {
  const auto challenges = parse_challenges("Basic Realm=x , BEARER realm = \"a\\\"b\", Negotiate");

  ASSERT_EQ(challenges.size(), 3U);
  EXPECT_EQ(challenges[0].parameters.at("realm"), "x");
  EXPECT_EQ(challenges[1].parameters.at("realm"), "a\"b");
  EXPECT_EQ(challenges[2].scheme, "negotiate");
}

TEST(Challenge, LeavesOutWhatItCannotRead) {
  EXPECT_TRUE(parse_challenges("").empty());
  EXPECT_TRUE(parse_challenges("=x").empty());
  EXPECT_TRUE(parse_challenges("realm=x").empty());
  EXPECT_EQ(parse_challenges("Bearer realm=\"open").size(), 1U);
  EXPECT_TRUE(parse_challenges("Bearer realm=\"open")[0].parameters.empty());
  EXPECT_TRUE(parse_challenges(std::string(1 << 20, 'x')).empty());
  EXPECT_LE(parse_challenges("a b c d e f g h i j k l m").size(), 8U);
}

}  // namespace
}  // namespace hearth::registry
