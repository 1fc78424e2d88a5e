#include "inside/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "inside/content.h"
#include "inside/watch.h"

namespace hearth::inside {
namespace {

class InsideFiles : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hearth-inside-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::vector<std::string> changes(Watcher& watcher) {
    constexpr const char* kNames[] = {"create", "write", "remove", "rename", "chmod"};
    std::vector<std::string> all;
    watcher.drain([&](const WatchEvent& event) {
      all.push_back(kNames[static_cast<int>(event.change)] + (" " + event.name));
    });
    return all;
  }

  const Owner self_{.uid = ::geteuid(), .gid = ::getegid()};
  std::string folder_;
};

using Changes = std::vector<std::string>;

TEST(Permissions, AreWrittenAsGoDoes) {
  EXPECT_EQ(permission_text(S_IFREG | 0644), "-rw-r--r--");
  EXPECT_EQ(permission_text(S_IFDIR | 0755), "drwxr-xr-x");
  EXPECT_EQ(permission_text(S_IFLNK | 0777), "Lrwxrwxrwx");
  EXPECT_EQ(permission_text(S_IFDIR | S_ISVTX | 0777), "dtrwxrwxrwx");
  EXPECT_EQ(permission_text(S_IFREG | S_ISUID | 0755), "urwxr-xr-x");
  EXPECT_EQ(permission_text(S_IFREG | S_ISUID | S_ISGID | 0), "ug---------");
  EXPECT_EQ(permission_text(S_IFCHR | 0666), "Dcrw-rw-rw-");
  EXPECT_EQ(permission_text(S_IFBLK | 0660), "Drw-rw----");
  EXPECT_EQ(permission_text(S_IFIFO | 0600), "prw-------");
  EXPECT_EQ(permission_text(S_IFSOCK | 0600), "Srw-------");
}

TEST_F(InsideFiles, AFileIsWrittenInAsFewStepsAsPossible) {
  Watcher watcher(folder_, false);
  FileWriter fresh(path("f"), self_);
  fresh.write("one");
  fresh.finish({});
  EXPECT_EQ(changes(watcher), (Changes{"create f", "chmod f", "write f"}));
  FileWriter again(path("f"), self_);
  again.write("two!");
  again.finish({});
  EXPECT_EQ(changes(watcher), (Changes{"chmod f", "write f"}));  // the kernel tells equal ones once
  EXPECT_EQ(read(path("f")), "two!");
}

TEST_F(InsideFiles, WhatIsNotFinishedDisappearsIfItIsNew) {
  {
    FileWriter(path("new"), self_).write("half");
  }
  EXPECT_FALSE(std::filesystem::exists(path("new")));
  std::ofstream(path("old")) << "content";
  {
    FileWriter(path("old"), self_).write("half");
  }
  EXPECT_EQ(read(path("old")), "half");
}

TEST_F(InsideFiles, WritesThroughLinks) {
  std::filesystem::create_symlink("target", path("link"));
  FileWriter writer(path("link"), self_);
  writer.write("x");
  writer.finish({});
  EXPECT_EQ(read(path("target")), "x");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
}

TEST_F(InsideFiles, FoldersAreMadeOnTheWayAndLinksFollowed) {
  std::filesystem::create_directory(path("real"));
  std::filesystem::create_directory_symlink(path("real"), path("link"));
  EXPECT_TRUE(make_folder(path("link/a/b"), self_));
  EXPECT_FALSE(make_folder(path("link/a/b"), self_));
  EXPECT_TRUE(std::filesystem::is_directory(path("real/a/b")));
  EXPECT_FALSE(make_folder("/", self_));
}

TEST_F(InsideFiles, DeepTreesAreListedAndRemoved) {
  std::string deep = path("d");
  for (int i = 0; i < 100; ++i) deep += "/d";
  make_folder(deep, self_);
  std::size_t count = 0;
  list(folder_, UINT32_MAX, [&](const Entry&) { ++count; });
  EXPECT_EQ(count, 101U);
  remove(path("d"));
  EXPECT_FALSE(std::filesystem::exists(path("d")));
}

TEST_F(InsideFiles, KnowsHowMuchRoomThereIs) {
  EXPECT_GT(free_bytes(path("not/there/yet")).value_or(0), 0U);
}

TEST_F(InsideFiles, SaysWhenTheFolderItselfChanges) {
  std::filesystem::create_directory(path("w"));
  Watcher watcher(path("w"), true);
  ::chmod(path("w").c_str(), 0700);
  EXPECT_EQ(changes(watcher), Changes{"chmod ."});
  std::filesystem::remove(path("w"));
  EXPECT_EQ(changes(watcher).back(), "remove .");
  EXPECT_THROW(Watcher(path("w"), false), Error);
}

TEST_F(InsideFiles, TellsOnceOfWhatWasThereBeforeItWatched) {
  Watcher watcher(folder_, true);
  std::filesystem::create_directories(path("a/b/c"));
  std::ofstream(path("a/b/f")) << "x";
  const Changes all = changes(watcher);
  EXPECT_EQ(std::ranges::count(all, "create a"), 1);
  EXPECT_EQ(std::ranges::count(all, "create a/b"), 1);
  EXPECT_EQ(std::ranges::count(all, "create a/b/c"), 1);
  EXPECT_EQ(std::ranges::count(all, "create a/b/f"), 1);
  std::ofstream(path("a/b/c/g")) << "x";
  EXPECT_EQ(changes(watcher), (Changes{"create a/b/c/g", "write a/b/c/g"}));
}

}  // namespace
}  // namespace hearth::inside
