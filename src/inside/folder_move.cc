#include "inside/folder_move.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>

#include "base/error.h"
#include "base/id.h"
#include "base/on_failure.h"
#include "linux/fd.h"
#include "linux/files.h"

namespace hearth::inside {
namespace {

// Folders in folders: each level costs two descriptors.
constexpr int kMaxDepth = 200;
// The kernel takes no longer value of an attribute.
constexpr std::size_t kMaxAttribute = std::size_t{64} << 10;
constexpr std::size_t kPiece = std::size_t{16} << 20;
// Of 255 bytes, with room for what is put behind it.
constexpr std::size_t kMostOfAName = 220;

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

void copy_times(const struct stat& of, int to) {
  const std::array<timespec, 2> times = {of.st_atim, of.st_mtim};
  ::futimens(to, times.data());
}

struct Name {
  int dir_fd;
  std::string text;
};

// Of a file that is being copied, beside where it will be.
std::string half_made(const std::string& path) {
  const std::string_view folder(path.data(), path.rfind('/') + 1);
  const std::string_view name = std::string_view(path).substr(folder.size());
  return fmt::format("{}{}.moving-{}", folder, name.substr(0, kMostOfAName), random_hex(8));
}

void copy_bytes(int from, int to) {
  while (true) {
    const ssize_t sent = ::sendfile(to, from, nullptr, kPiece);
    if (sent == 0) return;
    if (sent < 0 && errno != EINTR) throw_errno("copy a file");
  }
}

void copy_file(const Name& from, const Name& to, const struct stat& status) {
  const linux::Fd file = linux::open_at(from.dir_fd, from.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const linux::Fd twin =
      linux::open_at(to.dir_fd, to.text, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600);
  copy_bytes(file.get(), twin.get());
  make_alike(file.get(), twin.get(), to.text);
  copy_times(status, twin.get());
}

void copy_link(const Name& from, const Name& to, const struct stat& status) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(from.dir_fd, from.text.c_str(), target.data(), target.size());
  if (size < 0) throw_errno("read link '{}'", from.text);
  target.resize(static_cast<std::size_t>(size));
  if (::symlinkat(target.c_str(), to.dir_fd, to.text.c_str()) != 0 ||
      ::fchownat(to.dir_fd, to.text.c_str(), status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) !=
          0)
    throw_errno("make link '{}'", to.text);
}

// To another file system; the place of a file that is there is taken at once.
void move_file(const Name& from, const Name& to, const struct stat& status) {
  const Name half{.dir_fd = to.dir_fd, .text = half_made(to.text)};
  OnFailure forget([&] { ::unlinkat(half.dir_fd, half.text.c_str(), 0); });
  if (S_ISREG(status.st_mode))
    copy_file(from, half, status);
  else if (S_ISLNK(status.st_mode))
    copy_link(from, half, status);
  else
    throw_errno_text(EXDEV, fmt::format("move '{}', which is no file", from.text));
  if (::renameat(half.dir_fd, half.text.c_str(), to.dir_fd, to.text.c_str()) != 0)
    throw_errno("move '{}'", from.text);
  forget.release();
  if (::unlinkat(from.dir_fd, from.text.c_str(), 0) != 0) throw_errno("remove '{}'", from.text);
}

void move_piece(const Name& from, const Name& to, int depth) {
  if (::renameat(from.dir_fd, from.text.c_str(), to.dir_fd, to.text.c_str()) == 0) return;
  // There is something already when a move is taken back.
  if (errno != EXDEV && errno != ENOTEMPTY && errno != EEXIST) throw_errno("move '{}'", from.text);
  struct stat status{};
  if (::fstatat(from.dir_fd, from.text.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    throw_errno("stat '{}'", from.text);
  if (!S_ISDIR(status.st_mode)) return move_file(from, to, status);
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

void move_in_pieces(const std::string& from, const std::string& to) {
  struct stat status{};
  if (::lstat(from.c_str(), &status) != 0) throw_errno("stat '{}'", from);
  const Name here{.dir_fd = AT_FDCWD, .text = from};
  const Name there{.dir_fd = AT_FDCWD, .text = to};
  if (!S_ISDIR(status.st_mode)) return move_file(here, there, status);
  if (::rmdir(to.c_str()) != 0 && errno != ENOENT) throw_errno("move '{}' to '{}'", from, to);
  // What cannot go back stays where it is: nothing is lost.
  OnFailure take_back([&] { move_piece(there, here, 0); });
  move_piece(here, there, 0);
  take_back.release();
}

}  // namespace hearth::inside
