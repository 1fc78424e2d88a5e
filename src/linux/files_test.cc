#include "linux/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "linux/fd.h"

namespace hearth::linux {
namespace {

class RemoveAll : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hearth-files-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder = path;
    fd = Fd(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
  Fd fd;
};

TEST_F(RemoveAll, TakesEverythingAndFollowsNothing) {
  std::filesystem::create_directories(folder / "kept");
  std::ofstream(folder / "kept/file") << "x";
  std::filesystem::create_directories(folder / "gone/a/b");
  std::filesystem::create_directories(folder / "gone/c");
  std::ofstream(folder / "gone/a/b/file") << "x";
  std::ofstream(folder / "gone/z") << "x";
  std::filesystem::create_symlink(folder / "kept", folder / "gone/a/link");
  std::filesystem::create_symlink("..", folder / "gone/c/up");

  remove_all_at(fd.get(), "gone");

  EXPECT_FALSE(std::filesystem::exists(folder / "gone"));
  EXPECT_TRUE(std::filesystem::exists(folder / "kept/file"));
  remove_all_at(fd.get(), "gone");  // not there: done
}

// Deeper than a process may have files open, and than any path is long.
TEST_F(RemoveAll, TakesFoldersHoweverDeep) {
  Fd at(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  const std::string name(100, 'd');
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    at = Fd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  at.reset();
  remove_all_at(fd.get(), name);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace hearth::linux
