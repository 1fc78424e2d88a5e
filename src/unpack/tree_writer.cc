#include "unpack/tree_writer.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>

#include "base/error.h"
#include "image/unpack_job.h"
#include "linux/files.h"

namespace hearth::unpack {
namespace {

constexpr std::uint64_t kMaxId = 65535;
constexpr std::size_t kMaxLink = 4095;

// As if root_fd were "/". An empty Fd where there is nothing, or no folder and one is wanted.
linux::Fd open_in_root(int root_fd, const std::string& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  const long fd = ::syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how);
  if (fd >= 0) return linux::Fd(static_cast<int>(fd));
  if (errno == ENOENT || errno == ENOTDIR) return {};
  if (errno == ELOOP || errno == EXDEV)
    fail(Code::invalid, "'{}': leads through what is no folder", path);
  throw_errno("open '{}'", path);
}

std::optional<struct stat> find_status(int dir_fd, const std::string& name) {
  struct stat status{};
  if (::fstatat(dir_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return status;
  if (errno == ENOENT) return std::nullopt;
  throw_errno("stat '{}'", name);
}

bool is_whiteout(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
}

// Links can make a folder much deeper than the path to it has parts. Looks at the way back up.
void check_depth(int root_fd, int folder_fd, const std::string& path) {
  struct stat root{};
  if (::fstat(root_fd, &root) != 0) throw_errno("stat the root");
  linux::Fd up;
  int at_fd = folder_fd;
  for (int depth = 0; depth < image::kMaxTreeDepth; ++depth) {
    struct stat status{};
    if (::fstat(at_fd, &status) != 0) throw_errno("stat '{}'", path);
    if (status.st_ino == root.st_ino && status.st_dev == root.st_dev) return;
    up = linux::open_at(at_fd, "..", O_PATH | O_DIRECTORY | O_NOFOLLOW);
    at_fd = up.get();
  }
  fail(Code::invalid, "'{}': more than {} folders deep", path, image::kMaxTreeDepth);
}

void set_opaque(int folder_fd, const std::string& path) {
  if (::fsetxattr(folder_fd, kOpaqueXattr, kOpaqueValue.data(), kOpaqueValue.size(), 0) != 0)
    throw_errno("make folder '{}' opaque", path);
}

timespec to_timespec(const PaxTime& time) {
  return {.tv_sec = time.seconds, .tv_nsec = time.nanoseconds};
}

std::array<timespec, 2> times_of(const PaxTime& mtime) {
  return {to_timespec(mtime), to_timespec(mtime)};
}

void check_owner(const TarEntry& entry) {
  if (entry.uid > kMaxId || entry.gid > kMaxId)
    fail(Code::invalid, "'{}': owner {}:{}, the highest that fits is {}", entry.path, entry.uid,
         entry.gid, kMaxId);
}

void set_xattrs(int fd, const TarEntry& entry) {
  for (const auto& [name, value] : entry.xattrs) {
    if (!is_kept_xattr(name)) continue;
    if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0) continue;
    // File capabilities that this kernel does not take, or that are none.
    const bool optional = !name.starts_with("user.");
    if (optional && (errno == EPERM || errno == EINVAL || errno == EOPNOTSUPP)) continue;
    if (errno == E2BIG || errno == ERANGE || errno == EINVAL)
      fail(Code::invalid, "'{}': attribute '{}' of {} bytes", entry.path, name, value.size());
    throw_errno("set attribute '{}' of '{}'", name, entry.path);
  }
}

// Owner first: changing it takes set-user-id bits and capabilities away.
void set_metadata(int fd, const TarEntry& entry) {
  if (::fchown(fd, static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid)) != 0)
    throw_errno("set the owner of '{}'", entry.path);
  if (::fchmod(fd, entry.mode) != 0) throw_errno("set the mode of '{}'", entry.path);
  set_xattrs(fd, entry);
}

// For what cannot be opened.
void set_metadata_at(int dir_fd, const std::string& name, const TarEntry& entry) {
  if (::fchownat(dir_fd, name.c_str(), static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid),
                 AT_SYMLINK_NOFOLLOW) != 0)
    throw_errno("set the owner of '{}'", entry.path);
  const auto times = times_of(entry.mtime);
  if (::utimensat(dir_fd, name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
    throw_errno("set the time of '{}'", entry.path);
}

}  // namespace

// The folder that the first `count` parts name, made if it is not there.
const linux::Fd& TreeWriter::open_parent(const std::vector<std::string>& parts, std::size_t count) {
  const std::string path = join_path({parts.begin(), parts.begin() + static_cast<long>(count)});
  if (parent_ && path == parent_path_) return parent_;
  linux::Fd folder = open_in_root(root_fd_, path, O_RDONLY | O_DIRECTORY);
  if (!folder) folder = make_missing_folder(parts, count);
  check_depth(root_fd_, folder.get(), path);
  parent_ = std::move(folder);
  parent_path_ = path;
  return parent_;
}

linux::Fd TreeWriter::make_missing_folder(const std::vector<std::string>& parts,
                                          std::size_t count) {
  TarEntry plain;
  plain.kind = TarEntry::Kind::folder;
  plain.mode = 0755;
  for (std::size_t i = 0; i < count; ++i) {
    plain.path = join_path({parts.begin(), parts.begin() + static_cast<long>(i) + 1});
    if (open_in_root(root_fd_, plain.path, O_PATH | O_DIRECTORY)) continue;
    const linux::Fd& parent = open_parent(parts, i);
    // A link that leads nowhere would be in the way.
    if (const auto status = find_status(parent.get(), parts[i]); status && !is_whiteout(*status))
      fail(Code::invalid, "'{}': leads through what is no folder", plain.path);
    budget_.add_entry();
    add_folder({.parent_fd = parent.get(), .name = parts[i], .path = plain.path}, plain);
  }
  const std::string path = join_path({parts.begin(), parts.begin() + static_cast<long>(count)});
  linux::Fd folder = open_in_root(root_fd_, path, O_RDONLY | O_DIRECTORY);
  if (!folder) fail(Code::internal, "folder '{}' is gone", path);
  return folder;
}

void TreeWriter::add(const TarEntry& entry, TarReader& reader) {
  budget_.add_entry();
  const std::vector<std::string> parts = split_path(entry.path);
  if (parts.empty()) return add_root(entry);
  const Whiteout whiteout = parse_whiteout(parts);
  const linux::Fd& parent = open_parent(parts, parts.size() - 1);
  if (whiteout.kind != Whiteout::Kind::none && entry.kind != TarEntry::Kind::file &&
      entry.kind != TarEntry::Kind::hard_link)
    fail(Code::invalid, "'{}': a whiteout that is no file", entry.path);
  if (whiteout.kind == Whiteout::Kind::opaque) return set_opaque(parent.get(), parent_path_);
  if (whiteout.kind == Whiteout::Kind::removed)
    return add_whiteout({.parent_fd = parent.get(), .name = whiteout.name, .path = entry.path});

  check_owner(entry);
  const Place place{.parent_fd = parent.get(), .name = parts.back(), .path = join_path(parts)};
  switch (entry.kind) {
    case TarEntry::Kind::file:
      return add_file(place, entry, reader);
    case TarEntry::Kind::folder:
      return add_folder(place, entry);
    case TarEntry::Kind::symlink:
      return add_symlink(place, entry);
    case TarEntry::Kind::hard_link:
      return add_hard_link(place, entry);
    case TarEntry::Kind::fifo:
      return add_fifo(place, entry);
    case TarEntry::Kind::device:
      fail(Code::invalid, "'{}': images may not contain device nodes", entry.path);
  }
}

void TreeWriter::add_root(const TarEntry& entry) {
  if (entry.kind != TarEntry::Kind::folder)
    fail(Code::invalid, "'{}': the root can only be a folder", entry.path);
  check_owner(entry);
  const linux::Fd root = open_in_root(root_fd_, ".", O_RDONLY | O_DIRECTORY);
  set_metadata(root.get(), entry);
  remember_time(".", entry);
}

void TreeWriter::add_whiteout(const Place& place) {
  if (const auto status = find_status(place.parent_fd, place.name)) {
    // This layer has something there itself. It hides what is below, unless both are folders.
    if (!S_ISDIR(status->st_mode)) return;
    const linux::Fd folder =
        linux::open_at(place.parent_fd, place.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return set_opaque(folder.get(), place.path);
  }
  if (::mknodat(place.parent_fd, place.name.c_str(), S_IFCHR, makedev(0, 0)) != 0)
    throw_errno("make the whiteout '{}'", place.path);
}

bool TreeWriter::clear_place(const Place& place) {
  const auto status = find_status(place.parent_fd, place.name);
  if (!status) return false;
  linux::remove_all_at(place.parent_fd, place.name);
  // Nothing below it is there any more, which may include the folder we hold.
  if (S_ISDIR(status->st_mode)) folder_times_.erase(place.path);
  return is_whiteout(*status);
}

void TreeWriter::add_file(const Place& place, const TarEntry& entry, TarReader& reader) {
  constexpr int kFlags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
  linux::Fd file(::openat(place.parent_fd, place.name.c_str(), kFlags, 0600));
  if (!file && errno == EEXIST) {
    clear_place(place);
    file = linux::Fd(::openat(place.parent_fd, place.name.c_str(), kFlags, 0600));
  }
  if (!file) throw_errno("make file '{}'", place.path);
  write_data(file.get(), place, entry, reader);
  set_metadata(file.get(), entry);
  if (::futimens(file.get(), times_of(entry.mtime).data()) != 0)
    throw_errno("set the time of '{}'", place.path);
}

void TreeWriter::write_data(int fd, const Place& place, const TarEntry& entry, TarReader& reader) {
  static thread_local std::array<char, std::size_t{256} << 10> buffer;
  std::uint64_t written = 0;
  std::uint64_t end = 0;
  for (const Extent& extent : entry.extents) {
    if (extent.length == 0) continue;
    if (::lseek(fd, static_cast<off_t>(extent.offset), SEEK_SET) < 0)
      throw_errno("write '{}'", place.path);
    end = extent.offset;
    while (end < extent.offset + extent.length) {
      const std::uint64_t left = extent.offset + extent.length - end;
      const std::size_t most = std::min<std::uint64_t>(left, buffer.size());
      const std::size_t got = reader.read_data(std::span(buffer).first(most));
      if (got == 0) fail(Code::invalid, "'{}': less data than announced", entry.path);
      budget_.add_data(got);
      linux::write_all(fd, {buffer.data(), got});
      written += got;
      end += got;
    }
  }
  budget_.end_file(written);
  // A hole at the end.
  if (end < entry.size && ::ftruncate(fd, static_cast<off_t>(entry.size)) != 0)
    throw_errno("set the size of '{}'", place.path);
}

void TreeWriter::add_folder(const Place& place, const TarEntry& entry) {
  bool opaque = false;
  if (::mkdirat(place.parent_fd, place.name.c_str(), 0700) == 0) {
    budget_.add_folder();
  } else {
    if (errno != EEXIST) throw_errno("make folder '{}'", place.path);
    const auto status = find_status(place.parent_fd, place.name);
    if (!status || !S_ISDIR(status->st_mode)) {
      // A folder that is new here, where the layers below have another one: not their content.
      opaque = clear_place(place);
      if (::mkdirat(place.parent_fd, place.name.c_str(), 0700) != 0)
        throw_errno("make folder '{}'", place.path);
      budget_.add_folder();
    }
  }
  const linux::Fd folder =
      linux::open_at(place.parent_fd, place.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (opaque) set_opaque(folder.get(), place.path);
  set_metadata(folder.get(), entry);
  remember_time(place.path, entry);
}

void TreeWriter::add_symlink(const Place& place, const TarEntry& entry) {
  if (entry.link.empty() || entry.link.size() > kMaxLink ||
      entry.link.find('\0') != std::string::npos)
    fail(Code::invalid, "'{}': a link to nothing, or of more than {} bytes", entry.path, kMaxLink);
  clear_place(place);
  if (::symlinkat(entry.link.c_str(), place.parent_fd, place.name.c_str()) != 0)
    throw_errno("make link '{}'", place.path);
  set_metadata_at(place.parent_fd, place.name, entry);
}

void TreeWriter::add_hard_link(const Place& place, const TarEntry& entry) {
  std::vector<std::string> parts = split_path(entry.link);
  if (parts.empty()) fail(Code::invalid, "'{}': a hard link to the root", entry.path);
  const std::string name = std::move(parts.back());
  parts.pop_back();
  const linux::Fd folder = open_in_root(root_fd_, join_path(parts), O_PATH | O_DIRECTORY);
  const auto target = folder ? find_status(folder.get(), name) : std::nullopt;
  if (!target)
    fail(Code::invalid, "'{}': a hard link to '{}', which is not in this layer", entry.path,
         entry.link);
  if (S_ISDIR(target->st_mode) || is_whiteout(*target))
    fail(Code::invalid, "'{}': a hard link to '{}', which is no file", entry.path, entry.link);
  const auto present = find_status(place.parent_fd, place.name);
  if (present && present->st_ino == target->st_ino) return;
  clear_place(place);
  if (::linkat(folder.get(), name.c_str(), place.parent_fd, place.name.c_str(), 0) != 0) {
    if (errno == ENOENT || errno == EMLINK)
      fail(Code::invalid, "'{}': a hard link to '{}': {}", entry.path, entry.link,
           errno_text(errno));
    throw_errno("link '{}' to '{}'", place.path, entry.link);
  }
}

void TreeWriter::add_fifo(const Place& place, const TarEntry& entry) {
  clear_place(place);
  if (::mknodat(place.parent_fd, place.name.c_str(), S_IFIFO | 0600, 0) != 0)
    throw_errno("make pipe '{}'", place.path);
  set_metadata_at(place.parent_fd, place.name, entry);
  // Not a link, we have just made it.
  if (::fchmodat(place.parent_fd, place.name.c_str(), entry.mode, 0) != 0)
    throw_errno("set the mode of '{}'", entry.path);
}

// What comes into a folder later would change its time.
void TreeWriter::remember_time(const std::string& path, const TarEntry& entry) {
  folder_times_[path] = entry.mtime;
}

void TreeWriter::finish() {
  parent_.reset();
  for (const auto& [path, time] : folder_times_) {
    // Replaced by something else since, perhaps.
    linux::Fd folder;
    try {
      folder = open_in_root(root_fd_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    } catch (const Error& error) {
      if (error.code() != Code::invalid) throw;
    }
    if (!folder) continue;
    if (::futimens(folder.get(), times_of(time).data()) != 0)
      throw_errno("set the time of '{}'", path);
  }
}

std::uint64_t apply_archive(ByteInput& input, int root_fd, std::uint64_t max_bytes,
                            std::uint64_t max_entries) {
  Budget budget(max_bytes, max_entries);
  budget.add_folder();  // the root
  TarReader reader(input);
  TreeWriter writer(root_fd, budget);
  while (const auto entry = reader.next()) writer.add(*entry, reader);
  writer.finish();
  input.drain();
  return budget.bytes();
}

}  // namespace hearth::unpack
