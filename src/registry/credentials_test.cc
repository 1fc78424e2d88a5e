#include "registry/credentials.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/program.h"
#include "registry/credential_helper.h"
#include "registry/testing_internal.h"

namespace hearth::registry {
namespace {

// "user:pass:word" and "me:secret"
constexpr const char* kConfig = R"({
  "auths": {
    "https://index.docker.io/v1/": {"auth": "dXNlcjpwYXNzOndvcmQ="},
    "localhost:5000": {"username": "u", "password": "p"},
    "ghcr.io/team": {"auth": "bWU6c2VjcmV0"},
    "https://token.io/v2/": {"auth": "bWU6c2VjcmV0", "identitytoken": "refresh"},
    "empty.io": {}
  },
  "HttpHeaders": {"User-Agent": "Docker-Client"}
})";

TEST(DockerConfig, FindsTheEntryOfARegistry) {
  const DockerConfig config = parse_docker_config(kConfig);

  EXPECT_EQ(config.find("docker.io", "library/x"),
            (Credentials{.username = "user", .password = "pass:word"}));
  EXPECT_EQ(config.find("localhost:5000", "x"), (Credentials{.username = "u", .password = "p"}));
  EXPECT_EQ(config.find("token.io", "x").identity_token, "refresh");
  EXPECT_TRUE(config.find("empty.io", "x").empty());
  EXPECT_TRUE(config.find("localhost", "x").empty());
}

TEST(DockerConfig, AnEntryMayBeForAFolderOnly) {
  const DockerConfig config = parse_docker_config(kConfig);

  EXPECT_EQ(config.find("ghcr.io", "team/app").username, "me");
  EXPECT_EQ(config.find("ghcr.io", "team").username, "me");
  EXPECT_TRUE(config.find("ghcr.io", "teamwork/app").empty());
  EXPECT_TRUE(config.find("ghcr.io", "other").empty());
}

TEST(DockerConfig, RefusesWhatItCannotReadAndQuotesNoneOfIt) {
  for (const std::string bad :
       {R"(secret)", R"(["secret"])", R"({"auths": "secret"})", R"({"auths": {"x": "secret"}})",
        R"({"auths": {"x": {"auth": "secret!"}}})", R"({"auths": {"x": {"auth": "c2VjcmV0"}}})",
        R"({"auths": {"x": {"username": ["secret"]}}})", R"({"credsStore": {"secret": 1}})"}) {
    try {
      parse_docker_config(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid);
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(parse_docker_config(std::string(2 << 20, ' ')), Error);
}

TEST(DockerConfig, AFileThatIsNotThereSaysNothing) {
  EXPECT_TRUE(read_docker_config("/nowhere/config.json").entries.empty());
}

// A credential helper on disk, in front of PATH.
class HelperTest : public testing::Test {
 protected:
  void SetUp() override {
    old_path_ = std::getenv("PATH");
    ::setenv("PATH", (folder_.path("") + ":" + old_path_).c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", old_path_.c_str(), 1); }
  void install(const std::string& name, const std::string& script) {
    const std::string file = folder_.path("docker-credential-" + name);
    std::ofstream(file) << "#!/bin/sh\n" << script;
    ::chmod(file.c_str(), 0700);
  }

  TemporaryFolder folder_;
  std::string old_path_;
};

TEST_F(HelperTest, IsAskedByStandardInput) {
  install("test", R"(read server; echo "{\"Username\": \"$1\", \"Secret\": \"for $server\"}")");

  const Credentials answer = ask_credential_helper("test", "ghcr.io");

  EXPECT_EQ(answer, (Credentials{.username = "get", .password = "for ghcr.io"}));
}

TEST_F(HelperTest, ConfigurationSaysWhichForWhom) {
  install("one", R"(echo '{"Username": "<token>", "Secret": "t"}')");
  install("all", R"(read server; echo "{\"Username\": \"u\", \"Secret\": \"$server\"}")");
  const DockerConfig config =
      parse_docker_config(R"({"credsStore": "all", "credHelpers": {"ghcr.io": "one"}})");

  EXPECT_EQ(config.find("ghcr.io", "x"), (Credentials{.identity_token = "t"}));
  EXPECT_EQ(config.find("docker.io", "x").password, "https://index.docker.io/v1/");
}

TEST_F(HelperTest, OneThatHasNothingIsNoError) {
  install("test", "echo credentials not found in native keychain; exit 1");

  EXPECT_TRUE(ask_credential_helper("test", "ghcr.io").empty());
}

TEST_F(HelperTest, ABadOneIsNamedAndItsWordsAreNot) {
  install("test", "echo my secret");
  try {
    ask_credential_helper("test", "ghcr.io");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("docker-credential-test"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
  }
  EXPECT_THROW(ask_credential_helper("missing", "ghcr.io"), Error);
  EXPECT_THROW(ask_credential_helper("../../bin/sh", "ghcr.io"), Error);
  EXPECT_THROW(ask_credential_helper("", "ghcr.io"), Error);
}

TEST_F(HelperTest, AProgramThatHangsOrFloodsIsKilled) {
  EXPECT_THROW(linux::run_program({"sleep", "100"}, "", 10, std::chrono::milliseconds(20)), Error);
  EXPECT_THROW(linux::run_program({"yes"}, "", 1000, std::chrono::seconds(10)), Error);
  EXPECT_EQ(linux::run_program({"false"}, "", 10, std::chrono::seconds(10)).status.code, 1);
}

}  // namespace
}  // namespace hearth::registry
