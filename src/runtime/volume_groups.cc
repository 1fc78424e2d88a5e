#include "runtime/volume_groups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/error.h"
#include "linux/fd.h"
#include "linux/files.h"

namespace hearth::runtime {
namespace {

// Each level costs a descriptor. A volume that is deeper could not be removed either (files.cc).
constexpr int kMaxDepth = 200;
constexpr mode_t kGroupUses = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP;
constexpr mode_t kGroupEnters = kGroupUses | S_IXUSR | S_IXGRP | S_ISGID;

mode_t wanted_mode(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return (status.st_mode & 07777) | kGroupEnters;
  // Whoever owned a set-ID program did not mean it for this group.
  return (status.st_mode & 01777) | kGroupUses;
}

bool is_given(const struct stat& status, gid_t group) {
  return status.st_gid == group && (status.st_mode & 07777) == wanted_mode(status);
}

void give(int file_fd, const struct stat& status, gid_t group) {
  constexpr uid_t kSame = static_cast<uid_t>(-1);
  if (is_given(status, group)) return;
  if (::fchownat(file_fd, "", kSame, group, AT_EMPTY_PATH) != 0)
    throw_errno("give a file of a volume to group {}", group);
  // A link has no mode of its own.
  if (S_ISLNK(status.st_mode)) return;
  // fchmod(2) refuses a descriptor that was opened for its path alone.
  if (::chmod(fmt::format("/proc/self/fd/{}", file_fd).c_str(), wanted_mode(status)) != 0)
    throw_errno("open a file of a volume to group {}", group);
}

struct stat look_at(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw_errno("look at a volume");
  return status;
}

void give_all(int folder_fd, dev_t device, gid_t group, int depth) {
  if (depth > kMaxDepth)
    fail(Code::exhausted, "folders of a volume are more than {} deep", kMaxDepth);
  const linux::Fd folder = linux::open_at(folder_fd, ".", O_RDONLY | O_DIRECTORY);
  for (const std::string& name : linux::list_folder(folder.get())) {
    const linux::Fd file(::openat(folder.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!file && errno == ENOENT) continue;
    if (!file) throw_errno("open a file of a volume");
    const struct stat status = look_at(file.get());
    if (status.st_dev != device) continue;
    if (S_ISDIR(status.st_mode)) give_all(file.get(), device, group, depth + 1);
    give(file.get(), status, group);
  }
}

}  // namespace

void regroup(int folder_fd, gid_t group, Regroup how, bool in_use) {
  if (how == Regroup::never) return;
  const struct stat root = look_at(folder_fd);
  const bool only_root_counts = how == Regroup::where_root_differs || in_use;
  if (only_root_counts && is_given(root, group)) return;
  if (S_ISDIR(root.st_mode)) give_all(folder_fd, root.st_dev, group, 0);
  // Last: it says that all of it was done.
  give(folder_fd, root, group);
}

}  // namespace hearth::runtime
