#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "linux/kernel_testing.h"
#include "linux/mounts.h"
#include "linux/namespaces.h"

namespace hearth::linux {
namespace {

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) throw_errno("mkdir '{}'", path);
}

void make_file(const std::string& path, std::string_view text) {
  const Fd file = open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
  write_all(file.get(), text);
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

bool is_mounted(const std::string& path) {
  return std::ranges::any_of(mount_table(),
                             [&](const MountEntry& entry) { return entry.mount_point == path; });
}

// Runs in a child with a mount namespace of its own, a scratch tmpfs in it, so that nothing is
// left.
class MountTest : public testing::Test {
 protected:
  void SetUp() override { HEARTH_NEEDS(CAP_SYS_ADMIN); }

  int in_scratch(const std::function<int(const std::string&)>& body) {
    char folder[] = "/tmp/hearth-mount-XXXXXX";
    if (::mkdtemp(folder) == nullptr) throw_errno("make a scratch folder");
    const int code = run_in_child([&] {
      if (::unshare(CLONE_NEWNS) != 0) throw_errno("unshare");
      if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) throw_errno("private");
      make_mount({.type = "tmpfs", .source = "scratch", .path = folder}).release();
      return body(folder);
    });
    ::rmdir(folder);
    return code;
  }
};

#define CHECK_OR_RETURN(condition)                          \
  if (!(condition)) {                                       \
    std::fprintf(stderr, "in the child: %s\n", #condition); \
    return 1;                                               \
  }                                                         \
  static_assert(true)

TEST_F(MountTest, AMountLastsAsLongAsItsOwner) {
  EXPECT_EQ(in_scratch([](const std::string& scratch) {
              make_folder(scratch + "/m");
              {
                Mount mount = make_mount({.type = "tmpfs", .source = "x", .path = scratch + "/m"});
                Mount moved = std::move(mount);
                CHECK_OR_RETURN(is_mounted(scratch + "/m"));
              }
              CHECK_OR_RETURN(!is_mounted(scratch + "/m"));
              make_mount({.type = "tmpfs", .source = "x", .path = scratch + "/m"}).release();
              CHECK_OR_RETURN(is_mounted(scratch + "/m"));
              return 0;
            }),
            0);
}

TEST_F(MountTest, OverlayTakesPathsWithSeparators) {
  EXPECT_EQ(
      in_scratch([](const std::string& scratch) {
        const std::string top = scratch + "/t:o,p\\";
        const std::string bottom = scratch + "/b:,\\:o ttom";
        const std::string upper = scratch + "/u,p:p\\er";
        const std::string work = scratch + "/w:o,r\\k";
        const std::string merged = scratch + "/merged";
        for (const auto& folder : {top, bottom, upper, work, merged}) make_folder(folder);
        make_file(top + "/who", "top");
        make_file(bottom + "/who", "bottom");
        make_file(bottom + "/deep", "deep");

        const Mount mount = make_mount(
            {.type = "overlay",
             .source = "overlay",
             .path = merged,
             .options = overlay_options({.lowers = {top, bottom}, .upper = upper, .work = work})});

        CHECK_OR_RETURN(read_file(merged + "/who") == "top");
        CHECK_OR_RETURN(read_file(merged + "/deep") == "deep");
        make_file(merged + "/new", "new");
        CHECK_OR_RETURN(read_file(upper + "/new") == "new");
        return 0;
      }),
      0);
}

TEST_F(MountTest, ACloneIsAttachedElsewhereReadOnly) {
  EXPECT_EQ(
      in_scratch([](const std::string& scratch) {
        for (const char* name : {"/from", "/to", "/from/inner", "/plain"}) {
          make_folder(scratch + name);
        }
        make_file(scratch + "/from/file", "here");
        const Mount inner =
            make_mount({.type = "tmpfs", .source = "x", .path = scratch + "/from/inner"});
        make_file(scratch + "/from/inner/file", "inner");

        const bool recursive = true;
        const Fd clone = clone_mount(scratch + "/from", recursive);
        set_mount_flags(clone.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID);
        attach_mount(clone.get(), scratch + "/to");
        const Fd plain = clone_mount(scratch + "/from");
        attach_mount(plain.get(), scratch + "/plain");

        CHECK_OR_RETURN(read_file(scratch + "/to/file") == "here");
        CHECK_OR_RETURN(read_file(scratch + "/to/inner/file") == "inner");
        CHECK_OR_RETURN(!exists(scratch + "/plain/inner/file"));
        CHECK_OR_RETURN(::mkdir((scratch + "/to/x").c_str(), 0755) != 0 && errno == EROFS);
        CHECK_OR_RETURN(::mkdir((scratch + "/to/inner/x").c_str(), 0755) != 0 && errno == EROFS);
        CHECK_OR_RETURN(::mkdir((scratch + "/plain/x").c_str(), 0755) == 0);
        return 0;
      }),
      0);
}

TEST_F(MountTest, AnIdmappedCloneShowsOtherOwners) {
  EXPECT_EQ(in_scratch([](const std::string& scratch) {
              make_folder(scratch + "/from");
              make_folder(scratch + "/to");
              make_file(scratch + "/from/file", "x");

              const Fd userns = make_user_namespace({.first = 300'000, .count = 65'536});
              const Fd clone = clone_mount(scratch + "/from");
              set_mount_idmap(clone.get(), userns.get());
              attach_mount(clone.get(), scratch + "/to");

              struct stat status{};
              CHECK_OR_RETURN(::stat((scratch + "/to/file").c_str(), &status) == 0);
              CHECK_OR_RETURN(status.st_uid == 300'000 && status.st_gid == 300'000);
              CHECK_OR_RETURN(::stat((scratch + "/from/file").c_str(), &status) == 0);
              CHECK_OR_RETURN(status.st_uid == 0);
              return 0;
            }),
            0);
}

TEST_F(MountTest, ASlimNamespaceHasOnlyWhatIsKept) {
  const std::size_t before = mount_table().size();
  EXPECT_EQ(in_scratch([](const std::string& scratch) {
              for (const char* name : {"/a", "/drop"}) make_folder(scratch + name);
              make_mount({.type = "tmpfs", .source = "a", .path = scratch + "/a"}).release();
              make_folder(scratch + "/a/b");
              make_folder(scratch + "/a/c");
              make_mount({.type = "tmpfs", .source = "b", .path = scratch + "/a/b"}).release();
              make_mount({.type = "tmpfs", .source = "c", .path = scratch + "/a/c"}).release();
              // Two on top of each other.
              make_mount({.type = "tmpfs", .source = "1", .path = scratch + "/drop"}).release();
              make_mount({.type = "tmpfs", .source = "2", .path = scratch + "/drop"}).release();

              make_slim_mount_namespace({"/proc/", scratch + "/a/b"});

              std::vector<std::string> left;
              for (const MountEntry& entry : mount_table()) {
                // What is above stays too: /tmp is a mount on some hosts.
                if (entry.mount_point == "/" || !scratch.starts_with(entry.mount_point + "/"))
                  left.push_back(entry.mount_point);
              }
              std::ranges::sort(left);
              const std::vector<std::string> expected = {"/", "/proc", scratch, scratch + "/a",
                                                         scratch + "/a/b"};
              CHECK_OR_RETURN(left == expected);
              return 0;
            }),
            0);
  EXPECT_EQ(mount_table().size(), before);
}

}  // namespace
}  // namespace hearth::linux
