#include "cli/state_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/endpoints.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

class StateFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "state-folderXXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    dir_ = top_ / "a" / "state";
  }
  void TearDown() override { fs::remove_all(top_); }

  static unsigned mode_of(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }
  static Code code_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.code();
    }
    return {};
  }

  const EngineUser self_{.uid = ::geteuid(), .gid = ::getegid()};
  fs::path top_;
  fs::path dir_;
};

TEST_F(StateFolderTest, IsMadeWithEverythingAnEngineNeeds) {
  make_state_folder(dir_);
  const linux::Fd lock = lock_state_folder(dir_);
  claim_state_folder(dir_, self_);

  EXPECT_EQ(mode_of(dir_), ::geteuid() == 0 ? 0710U : 0700U);
  EXPECT_EQ(mode_of(dir_ / kEngineFolder), 0700U);
  for (const char* name : {kEndpointsFile, kKubeconfigFile, kAdminTokenFile})
    EXPECT_EQ(fs::read_symlink(dir_ / name), fs::path(kEngineFolder) / name);
  write_endpoints(dir_, {.metrics = "http://h"});
  EXPECT_TRUE(fs::exists(dir_ / kEndpointsFile));
}

TEST_F(StateFolderTest, ASecondEngineIsToldThePidOfTheFirstAndChangesNothing) {
  make_state_folder(dir_);
  const linux::Fd lock = lock_state_folder(dir_);
  claim_state_folder(dir_, self_);
  fs::permissions(dir_, fs::perms(0750));

  make_state_folder(dir_);
  try {
    lock_state_folder(dir_);
    FAIL() << "locked twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::conflict);
    EXPECT_NE(std::string(error.what()).find(fmt::format("pid {};", ::getpid())), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(mode_of(dir_), 0750U);
}

TEST_F(StateFolderTest, TheNextEngineFindsNothingOfOneThatWasKilled) {
  make_state_folder(dir_);
  {
    const linux::Fd lock = lock_state_folder(dir_);
    claim_state_folder(dir_, self_);
    write_endpoints(dir_, {.metrics = "http://h"});
  }

  make_state_folder(dir_);
  const linux::Fd lock = lock_state_folder(dir_);
  claim_state_folder(dir_, self_);

  EXPECT_FALSE(find_endpoints(dir_));
}

TEST_F(StateFolderTest, FilesOfAnotherEngineUserAreNotTakenOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  make_state_folder(dir_);
  const linux::Fd lock = lock_state_folder(dir_);
  claim_state_folder(dir_, {.uid = 12345, .gid = 12345});
  claim_state_folder(dir_, {.uid = 12346, .gid = 12346});  // nothing is in there yet
  std::ofstream(dir_ / kEngineFolder / "objects") << "x";

  EXPECT_EQ(code_of([&] { claim_state_folder(dir_, {.uid = 12345, .gid = 12345}); }),
            Code::conflict);
  claim_state_folder(dir_, {.uid = 12346, .gid = 12346});
}

TEST_F(StateFolderTest, AFolderInUseForSomethingElseIsLeftAlone) {
  fs::create_directories(dir_);
  std::ofstream(dir_ / "thesis.txt") << "years of work";

  EXPECT_EQ(code_of([&] { make_state_folder(dir_); }), Code::conflict);
}

}  // namespace
}  // namespace hearth::cli
