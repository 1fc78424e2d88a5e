#include "inside/folder_move.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/on_failure.h"
#include "linux/fd.h"
#include "linux/files.h"

namespace hearth::inside {
namespace {

// Folders in folders: each level costs two descriptors.
constexpr int kMaxDepth = 200;
// The kernel takes no longer value of an attribute.
constexpr std::size_t kMaxAttribute = std::size_t{64} << 10;

std::optional<std::uint64_t> mount_of(const std::string& path) {
  struct statx status{};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &status) != 0) return std::nullopt;
  if ((status.stx_mask & STATX_MNT_ID) == 0) return std::nullopt;
  return status.stx_mnt_id;
}

linux::Fd open_folder(int dir_fd, const std::string& name) {
  return linux::open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// Those that the new folder does not take are the file system's own.
void copy_attributes(int from, int to) {
  const ssize_t size = ::flistxattr(from, nullptr, 0);
  if (size <= 0) return;
  std::string names(static_cast<std::size_t>(size), '\0');
  const ssize_t got = ::flistxattr(from, names.data(), names.size());
  names.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  std::string value(kMaxAttribute, '\0');
  for (std::size_t at = 0; at < names.size(); at += std::string_view(&names[at]).size() + 1) {
    const ssize_t length = ::fgetxattr(from, &names[at], value.data(), value.size());
    if (length >= 0) ::fsetxattr(to, &names[at], value.data(), static_cast<std::size_t>(length), 0);
  }
}

void make_alike(int from, int to, const std::string& name) {
  struct stat status{};
  // In this order: a new owner takes bits of the mode away.
  if (::fstat(from, &status) != 0 || ::fchown(to, status.st_uid, status.st_gid) != 0 ||
      ::fchmod(to, status.st_mode & 07777) != 0) {
    throw_errno("make folder '{}'", name);
  }
  copy_attributes(from, to);
}

// As it was before its content came.
void copy_times(const struct stat& of, int to) {
  const std::array<timespec, 2> times = {of.st_atim, of.st_mtim};
  ::futimens(to, times.data());
}

struct Name {
  int dir_fd;
  std::string text;
};

void move_piece(const Name& from, const Name& to, int depth) {
  if (::renameat(from.dir_fd, from.text.c_str(), to.dir_fd, to.text.c_str()) == 0) return;
  // There is something already when a move is taken back.
  if (errno != EXDEV && errno != ENOTEMPTY && errno != EEXIST) throw_errno("move '{}'", from.text);
  if (depth > kMaxDepth) fail(Code::exhausted, "folders more than {} deep", kMaxDepth);
  const linux::Fd folder = open_folder(from.dir_fd, from.text);
  struct stat before{};
  if (::fstat(folder.get(), &before) != 0) throw_errno("stat '{}'", from.text);
  const bool is_new = ::mkdirat(to.dir_fd, to.text.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) throw_errno("make folder '{}'", to.text);
  const linux::Fd twin = open_folder(to.dir_fd, to.text);
  if (is_new) make_alike(folder.get(), twin.get(), to.text);
  for (const std::string& name : linux::list_folder(folder.get()))
    move_piece({folder.get(), name}, {twin.get(), name}, depth + 1);
  copy_times(before, twin.get());
  if (::unlinkat(from.dir_fd, from.text.c_str(), AT_REMOVEDIR) != 0)
    throw_errno("remove folder '{}'", from.text);
}

}  // namespace

bool on_one_mount(const std::string& one, const std::string& other) {
  const auto mount = mount_of(one);
  return mount && mount == mount_of(other);
}

void move_in_pieces(const std::string& from, const std::string& to) {
  if (::rmdir(to.c_str()) != 0 && errno != ENOENT) throw_errno("move '{}' to '{}'", from, to);
  const Name here{.dir_fd = AT_FDCWD, .text = from};
  const Name there{.dir_fd = AT_FDCWD, .text = to};
  // What cannot go back stays where it is: nothing is lost.
  OnFailure take_back([&] { move_piece(there, here, 0); });
  move_piece(here, there, 0);
  take_back.release();
}

}  // namespace hearth::inside
