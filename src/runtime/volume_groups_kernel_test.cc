#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/fd.h"
#include "linux/files.h"
#include "runtime/volume_groups.h"

namespace hearth::runtime {
namespace {

constexpr gid_t kGroup = 2000;

class VolumeGroups : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    char name[] = "/tmp/hearth-groups-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::filesystem::create_directories(folder_ + "/volume/deep");
    write("outside", 0600);
    write("volume/file", 0600);
    write("volume/deep/program", 04711);
    std::filesystem::create_symlink("../outside", folder_ + "/volume/way-out");
    volume_ = linux::open_at(AT_FDCWD, folder_ + "/volume", O_PATH | O_DIRECTORY);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  void write(const std::string& name, mode_t mode) {
    const linux::Fd file = linux::open_at(AT_FDCWD, folder_ + "/" + name, O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(::fchmod(file.get(), mode), 0);
  }
  // "GROUP MODE"
  std::string look(const std::string& name) {
    struct stat status{};
    EXPECT_EQ(::lstat((folder_ + "/" + name).c_str(), &status), 0);
    return fmt::format("{} {:o}", status.st_gid, status.st_mode & 07777);
  }
  void give(Regroup how, bool in_use = false) { regroup(volume_.get(), kGroup, how, in_use); }

  std::string folder_;
  linux::Fd volume_;
};

TEST_F(VolumeGroups, EverythingInsideAndNothingOutside) {
  give(Regroup::always);

  EXPECT_EQ(look("volume"), "2000 2775");
  EXPECT_EQ(look("volume/deep"), "2000 2775");
  EXPECT_EQ(look("volume/file"), "2000 660");
  EXPECT_EQ(look("volume/deep/program"), "2000 771");
  EXPECT_TRUE(look("volume/way-out").starts_with("2000 "));
  EXPECT_EQ(look("outside"), "0 600");
}

TEST_F(VolumeGroups, OnceIsEnoughWhereOnlyTheRootCounts) {
  give(Regroup::where_root_differs);
  ASSERT_EQ(::chown((folder_ + "/volume/file").c_str(), 0, 0), 0);

  give(Regroup::where_root_differs);
  EXPECT_EQ(look("volume/file"), "0 660");
  give(Regroup::always, /*in_use=*/true);
  EXPECT_EQ(look("volume/file"), "0 660");
  give(Regroup::always);
  EXPECT_EQ(look("volume/file"), "2000 660");
}

TEST_F(VolumeGroups, NothingHappensUnasked) {
  give(Regroup::never);
  EXPECT_EQ(look("volume/file"), "0 600");
}

TEST_F(VolumeGroups, FoldersWithoutAnEndAreRefused) {
  std::string path = folder_ + "/volume";
  for (int i = 0; i < 210; ++i) path += "/d";
  std::filesystem::create_directories(path);
  EXPECT_THROW(give(Regroup::always), Error);
}

}  // namespace
}  // namespace hearth::runtime
