// Unprivileged: the files are given to whom they are of already.
#include "runtime/file_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/id.h"
#include "linux/fd.h"
#include "runtime/volumes.h"

namespace hearth::runtime {
namespace {

namespace fs = std::filesystem;

class FileTree : public testing::Test {
 protected:
  FileTree() {
    fs::create_directory(folder_);
    fd_ = linux::open_file(folder_, O_RDONLY | O_DIRECTORY);
    tree_.kind = MountKind::tree;
    tree_.target = "/c";
    tree_.changes = true;
  }
  ~FileTree() override { fs::remove_all(folder_); }

  void make() { make_file_tree(fd_.get(), "tree", tree_, ids_); }
  void replace(std::vector<MountFile> files) {
    tree_.files = std::move(files);
    replace_file_tree(fd_.get(), "tree", tree_, ids_);
  }
  std::string read(const std::string& path) const {
    std::ifstream file(fs::path(folder_) / "tree" / path);
    std::string text;
    std::getline(file, text);
    return file || !text.empty() ? text : "(none)";
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(fs::path(folder_) / "tree"))
      all.push_back(entry.path().filename());
    std::ranges::sort(all);
    return all;
  }
  std::string version() const { return fs::read_symlink(fs::path(folder_) / "tree" / "..data"); }

  const std::string folder_ = fs::temp_directory_path() / ("hearth-tree-" + random_hex(8));
  const linux::IdRange ids_{.first = ::getuid(), .count = 1};
  linux::Fd fd_;
  MountSpec tree_;
};

TEST_F(FileTree, ChangesAllAtOnce) {
  tree_.files = {{"a", "1", 0640}, {"deep/b", "2", 0444}};
  make();
  const std::string first = version();
  EXPECT_EQ(names(), (std::vector<std::string>{first, "..data", "a", "deep"}));
  EXPECT_EQ(fs::read_symlink(fs::path(folder_) / "tree/deep"), "..data/deep");
  EXPECT_EQ(read("a") + read("deep/b"), "12");
  struct stat status{};
  ASSERT_EQ(::stat((folder_ + "/tree/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);

  // A reader that is inside sees the old ones to the end.
  const linux::Fd reader = linux::open_file(folder_ + "/tree/a", O_RDONLY);
  replace({{"a", "one", 0640}, {"c", "3", 0444}});
  EXPECT_NE(version(), first);
  EXPECT_EQ(names(), (std::vector<std::string>{version(), "..data", "a", "c"}));
  EXPECT_EQ(read("a") + read("c") + read("deep/b"), "one3(none)");
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '1');
}

TEST_F(FileTree, TheSameAgainChangesNothing) {
  tree_.files = {{"a", "1", 0444}};
  make();
  struct stat before{};
  struct stat after{};
  const std::string data = folder_ + "/tree/..data";
  ASSERT_EQ(::lstat(data.c_str(), &before), 0);
  replace({{"a", "1", 0444}});
  ASSERT_EQ(::lstat(data.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  // Another mode is another file.
  replace({{"a", "1", 0400}});
  ASSERT_EQ(::lstat(data.c_str(), &after), 0);
  EXPECT_NE(before.st_ino, after.st_ino);
}

TEST_F(FileTree, CanBecomeEmptyAndFullAgain) {
  make();
  EXPECT_EQ(names(), (std::vector<std::string>{version(), "..data"}));
  replace({{"a", "1", 0444}});
  EXPECT_EQ(read("a"), "1");
  replace({});
  EXPECT_EQ(names(), (std::vector<std::string>{version(), "..data"}));
}

TEST_F(FileTree, GetsOverWhatACrashLeft) {
  tree_.files = {{"a", "1", 0444}};
  make();
  const fs::path tree = fs::path(folder_) / "tree";
  fs::create_symlink("..nowhere", tree / "..data_tmp");
  fs::create_directory(tree / "..0123456789abcdef");
  replace({{"a", "2", 0444}});
  EXPECT_EQ(read("a"), "2");
  EXPECT_EQ(names(), (std::vector<std::string>{version(), "..data", "a"}));
}

TEST_F(FileTree, PlainOnesHoldTheirFiles) {
  tree_.changes = false;
  tree_.files = {{"deep/a", "1", 0444}};
  make();
  EXPECT_EQ(names(), std::vector<std::string>{"deep"});
  EXPECT_EQ(read("deep/a"), "1");
}

TEST_F(FileTree, NamesOfOursAreRefused) {
  tree_.files = {{"..data", "x", 0444}};
  EXPECT_THROW(check({tree_}), Error);
  tree_.files = {{"..more/a", "x", 0444}};
  EXPECT_THROW(check({tree_}), Error);
  tree_.files = {{".hidden", "x", 0444}};
  check({tree_});
}

TEST(FindTree, CountsAsThoseWhoPrepareDo) {
  MountSpec dns{.kind = MountKind::file, .target = "/etc/resolv.conf"};
  MountSpec memory{.kind = MountKind::memory, .target = "/m"};
  MountSpec plain{.kind = MountKind::tree, .target = "/plain"};
  MountSpec tree{.kind = MountKind::tree, .target = "/c", .changes = true};
  EXPECT_EQ(find_tree({memory, dns, plain, tree}, "/c"), "tree-2");
  EXPECT_THROW(find_tree({memory, dns, plain, tree}, "/plain"), Error);
  EXPECT_THROW(find_tree({}, "/c"), Error);
}

}  // namespace
}  // namespace hearth::runtime
