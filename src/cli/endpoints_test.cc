#include "cli/endpoints.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/environment.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

class EndpointsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "endpointsXXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    fs::create_directory(dir_ / kEngineFolder);
  }
  void TearDown() override { fs::remove_all(dir_); }

  fs::path file() const { return dir_ / kEngineFolder / kEndpointsFile; }

  fs::path dir_;
};

TEST_F(EndpointsTest, OnlyPartsThatExistAreWritten) {
  EXPECT_EQ(to_json({.metrics = "http://127.0.0.1:1"}), "{\"metrics\":\"http://127.0.0.1:1\"}\n");
  EXPECT_EQ(to_json({}), "{}\n");
}

TEST_F(EndpointsTest, WhatIsWrittenIsFoundAgainAndClosedToOthers) {
  const Endpoints endpoints{.kube = "https://[::1]:6443", .metrics = "http://127.0.0.1:1"};

  write_endpoints(dir_, endpoints);

  EXPECT_EQ(find_endpoints(dir_), endpoints);
  struct stat status{};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(EndpointsTest, WithoutAnEngineThereIsNothing) {
  EXPECT_FALSE(find_endpoints(dir_));
  EXPECT_FALSE(find_endpoints("/nonexistent"));

  write_endpoints(dir_, {});
  remove_endpoints(dir_);
  EXPECT_FALSE(find_endpoints(dir_));
  remove_endpoints(dir_);
}

TEST_F(EndpointsTest, LinksAreNotFollowed) {
  fs::create_symlink("/etc/passwd", file());

  EXPECT_ANY_THROW(find_endpoints(dir_));
}

TEST_F(EndpointsTest, MembersOfTheFutureAreIgnoredAndNonsenseIsNot) {
  EXPECT_EQ(parse_endpoints(R"({"metrics":"x","new":{"a":1}})").metrics, "x");
  for (const char* text : {"", "[]", "{", R"({"metrics":1})", R"({"kube":null})"}) {
    EXPECT_THROW(parse_endpoints(text), Error) << text;
  }
}

TEST_F(EndpointsTest, TheEnvironmentHasWhatExistsQuotedForAShell) {
  EXPECT_EQ(environment_lines("/tmp/a b", {.e2b = "http://h:1", .metrics = "http://h:2"}),
            "export HEARTH_STATE_DIR='/tmp/a b'\n"
            "export E2B_API_URL=http://h:1\n"
            "export E2B_SANDBOX_URL=http://h:1\n"
            "export HEARTH_METRICS_URL=http://h:2\n");
}

TEST_F(EndpointsTest, NamesOfPortsEndInLocalhostOnThisMachineOnly) {
  EXPECT_NE(environment_lines(dir_, {.e2b = "http://127.0.0.1:8090"})
                .find("export E2B_DOMAIN=localhost:8090\n"),
            std::string::npos);
  EXPECT_EQ(environment_lines(dir_, {.e2b = "http://10.0.0.1:8090"}).find("E2B_DOMAIN"),
            std::string::npos);
}

TEST_F(EndpointsTest, KubeconfigIsNamedOnceItIsThere) {
  const Endpoints endpoints{.kube = "https://h:1"};
  EXPECT_EQ(environment_lines(dir_, endpoints).find("KUBECONFIG"), std::string::npos);

  std::ofstream(dir_ / kKubeconfigFile) << "x";
  EXPECT_NE(environment_lines(dir_, endpoints).find("KUBECONFIG"), std::string::npos);
}

TEST_F(EndpointsTest, TheApiKeyIsForShellsOnly) {
  const Endpoints endpoints{.e2b = "http://h:1"};
  std::ofstream(dir_ / kE2bKeyFile) << "e2b_00\n";
  EXPECT_EQ(environment_lines(dir_, endpoints).find("e2b_00"), std::string::npos);
  EXPECT_NE(environment_lines(dir_, endpoints, Secrets::shown).find("E2B_API_KEY=e2b_00\n"),
            std::string::npos);
  EXPECT_EQ(environment_lines(dir_, {}, Secrets::shown).find("E2B_API_KEY"), std::string::npos);
}

}  // namespace
}  // namespace hearth::cli
