// Moving folders of an overlay's lower layer, in a mount namespace of a child's own.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "inside/files.h"
#include "inside/folder_move.h"
#include "linux/kernel_testing.h"
#include "linux/mounts.h"

namespace hearth::inside {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string read(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct stat look(const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) throw_errno("stat '{}'", path.string());
  return status;
}

#define CHECK_OR_RETURN(condition)                          \
  if (!(condition)) {                                       \
    std::fprintf(stderr, "in the child: %s\n", #condition); \
    return 1;                                               \
  }                                                         \
  static_assert(true)

class FolderMove : public testing::Test {
 protected:
  void SetUp() override { HEARTH_NEEDS(CAP_SYS_ADMIN); }

  // `body` gets the root of an overlay, below which `fill` has made the lower layer.
  int in_overlay(const std::function<void(const fs::path&)>& fill,
                 const std::function<int(const std::string&)>& body) {
    char folder[] = "/tmp/hearth-move-XXXXXX";
    if (::mkdtemp(folder) == nullptr) throw_errno("make a scratch folder");
    const int code = linux::run_in_child([&] {
      if (::unshare(CLONE_NEWNS) != 0) throw_errno("unshare");
      if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) throw_errno("private");
      linux::make_mount({.type = "tmpfs", .source = "scratch", .path = folder}).release();
      const fs::path scratch = folder;
      for (const char* name : {"lower", "upper", "work", "all"})
        fs::create_directory(scratch / name);
      fill(scratch / "lower");
      const std::string options = linux::overlay_options({.lowers = {scratch / "lower"},
                                                          .upper = scratch / "upper",
                                                          .work = scratch / "work"}) +
                                  ",redirect_dir=off";
      const std::string all = scratch / "all";
      if (::mount("overlay", all.c_str(), "overlay", 0, options.c_str()) != 0)
        throw_errno("mount an overlay");
      return body(all);
    });
    ::rmdir(folder);
    return code;
  }
};

constexpr Owner kRoot{};

TEST_F(FolderMove, AFolderOfALowerLayerKeepsAllItHas) {
  const auto fill = [](const fs::path& lower) {
    write(lower / "home/dir/sub/deep/file", "content");
    write(lower / "home/dir/other", "other");
    fs::create_symlink("other", lower / "home/dir/link");
    ::chmod((lower / "home/dir/sub").c_str(), 02751);
    ::setxattr((lower / "home/dir/sub").c_str(), "user.e2b.key", "value", 5, 0);
    if (::chown((lower / "home/dir/sub").c_str(), 1000, 1001) != 0) throw_errno("chown");
    ::chmod((lower / "home/dir/sub").c_str(), 02751);
    const timespec times[] = {{.tv_sec = 1000, .tv_nsec = 1}, {.tv_sec = 2000, .tv_nsec = 2}};
    ::utimensat(AT_FDCWD, (lower / "home/dir/sub").c_str(), times, 0);
  };
  const auto body = [](const std::string& all) {
    write(all + "/home/dir/sub/new", "new");
    fs::remove(all + "/home/dir/other");
    CHECK_OR_RETURN(::rename((all + "/home/dir").c_str(), (all + "/home/x").c_str()) != 0);
    const struct stat before = look(all + "/home/dir/sub");
    move(all + "/home/dir", all + "/else/where", kRoot);
    CHECK_OR_RETURN(!fs::exists(all + "/home/dir"));
    const fs::path there = all + "/else/where";
    CHECK_OR_RETURN(read(there / "sub/deep/file") == "content");
    CHECK_OR_RETURN(read(there / "sub/new") == "new");
    CHECK_OR_RETURN(!fs::exists(there / "other"));
    CHECK_OR_RETURN(fs::read_symlink(there / "link") == "other");
    const struct stat after = look(there / "sub");
    CHECK_OR_RETURN(after.st_mode == (S_IFDIR | 02751U));
    CHECK_OR_RETURN(after.st_uid == 1000 && after.st_gid == 1001);
    CHECK_OR_RETURN(after.st_mtim.tv_sec == before.st_mtim.tv_sec);
    char value[16];
    if (::getxattr((all + "/else").c_str(), "user.none", value, sizeof value) < 0 &&
        errno != EOPNOTSUPP) {
      CHECK_OR_RETURN(::getxattr((there / "sub").c_str(), "user.e2b.key", value, 16) == 5);
    }
    // What takes its place is another one.
    fs::create_directory(all + "/home/dir");
    CHECK_OR_RETURN(fs::is_empty(all + "/home/dir"));
    return 0;
  };
  EXPECT_EQ(in_overlay(fill, body), 0);
}

TEST_F(FolderMove, RefusesWhatRenameDoes) {
  const auto fill = [](const fs::path& lower) {
    write(lower / "dir/file", "content");
    fs::create_directory(lower / "empty");
    write(lower / "full/file", "content");
  };
  const auto body = [](const std::string& all) {
    const auto fails = [&](const std::string& to) {
      try {
        move(all + "/dir", all + to, kRoot);
        return false;
      } catch (const Error&) {
        return read(all + "/dir/file") == "content";
      }
    };
    CHECK_OR_RETURN(fails("/full"));
    CHECK_OR_RETURN(fails("/full/file"));
    CHECK_OR_RETURN(fails("/dir/in/itself"));
    move(all + "/dir", all + "/empty", kRoot);
    CHECK_OR_RETURN(read(all + "/empty/file") == "content");
    return 0;
  };
  EXPECT_EQ(in_overlay(fill, body), 0);
}

TEST_F(FolderMove, FilesGoToAnotherFileSystem) {
  const auto fill = [](const fs::path& lower) {
    write(lower / "dir/sub/file", "content");
    fs::create_symlink("sub/file", lower / "dir/link");
    write(lower / "file", "new");
    fs::create_directory(lower / "other");
    ::chmod((lower / "file").c_str(), 04751);
    if (::chown((lower / "file").c_str(), 1000, 1001) != 0) throw_errno("chown");
    ::chmod((lower / "file").c_str(), 04751);
    const timespec times[] = {{.tv_sec = 1000, .tv_nsec = 1}, {.tv_sec = 2000, .tv_nsec = 2}};
    ::utimensat(AT_FDCWD, (lower / "file").c_str(), times, 0);
  };
  const auto body = [](const std::string& all) {
    linux::make_mount({.type = "tmpfs", .source = "x", .path = all + "/other"}).release();
    const std::string name(255, 'n');
    write(all + "/other/" + name, "old");
    move(all + "/file", all + "/other/" + name, kRoot);
    CHECK_OR_RETURN(!fs::exists(all + "/file"));
    CHECK_OR_RETURN(read(all + "/other/" + name) == "new");
    const struct stat after = look(all + "/other/" + name);
    CHECK_OR_RETURN(after.st_mode == (S_IFREG | 04751U));
    CHECK_OR_RETURN(after.st_uid == 1000 && after.st_gid == 1001);
    CHECK_OR_RETURN(after.st_mtim.tv_sec == 2000);

    move(all + "/dir", all + "/other/moved", kRoot);
    CHECK_OR_RETURN(!fs::exists(all + "/dir"));
    CHECK_OR_RETURN(read(all + "/other/moved/sub/file") == "content");
    CHECK_OR_RETURN(fs::read_symlink(all + "/other/moved/link") == "sub/file");
    CHECK_OR_RETURN(std::distance(fs::directory_iterator(all + "/other"), {}) == 2);
    return 0;
  };
  EXPECT_EQ(in_overlay(fill, body), 0);
}

// Neither the one that was moved nor the one that was there.
TEST_F(FolderMove, NoFileIsLostWhereThereIsNoRoom) {
  const auto fill = [](const fs::path& lower) {
    write(lower / "large", std::string(1 << 20, 'x'));
    write(lower / "dir/a", "first");
    write(lower / "dir/large", std::string(1 << 20, 'x'));
    fs::create_directory(lower / "other");
  };
  const auto body = [](const std::string& all) {
    if (::mount("x", (all + "/other").c_str(), "tmpfs", 0, "size=256k") != 0) throw_errno("mount");
    write(all + "/other/large", "old");
    for (const std::string what : {"/large", "/dir"}) {
      try {
        move(all + what, all + "/other" + what, kRoot);
        return 1;
      } catch (const Error& error) {
        CHECK_OR_RETURN(error.code() == Code::exhausted);
      }
    }
    CHECK_OR_RETURN(fs::file_size(all + "/large") == 1 << 20);
    CHECK_OR_RETURN(read(all + "/dir/a") == "first");
    CHECK_OR_RETURN(fs::file_size(all + "/dir/large") == 1 << 20);
    CHECK_OR_RETURN(read(all + "/other/large") == "old");
    CHECK_OR_RETURN(std::distance(fs::directory_iterator(all + "/other"), {}) == 1);
    return 0;
  };
  EXPECT_EQ(in_overlay(fill, body), 0);
}

TEST_F(FolderMove, WhatFailsIsTakenBack) {
  const auto fill = [](const fs::path& lower) {
    write(lower / "dir/a/first", "first");
    fs::create_directories(lower / "dir/b/mounted");
    write(lower / "dir/b/before", "before");
    ::chmod((lower / "dir/b").c_str(), 0750);
  };
  const auto body = [](const std::string& all) {
    // The kernel moves no folder that something is mounted on.
    linux::make_mount({.type = "tmpfs", .source = "x", .path = all + "/dir/b/mounted"}).release();
    try {
      move(all + "/dir", all + "/moved", kRoot);
      return 1;
    } catch (const Error&) {
    }
    CHECK_OR_RETURN(!fs::exists(all + "/moved"));
    CHECK_OR_RETURN(read(all + "/dir/a/first") == "first");
    CHECK_OR_RETURN(read(all + "/dir/b/before") == "before");
    CHECK_OR_RETURN(look(all + "/dir/b").st_mode == (S_IFDIR | 0750U));
    return 0;
  };
  EXPECT_EQ(in_overlay(fill, body), 0);
}

}  // namespace
}  // namespace hearth::inside
