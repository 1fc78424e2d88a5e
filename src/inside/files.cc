#include "inside/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "guest/users.h"
#include "inside/content.h"
#include "inside/folder_move.h"
#include "inside/paths.h"
#include "linux/files.h"

namespace hearth::inside {
namespace {

// Folders in folders that list() enters: each level costs a descriptor.
constexpr std::uint32_t kMaxDepth = 256;

[[noreturn]] void throw_for(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
      fail(Code::not_found, "file not found: {}", path);
    case ENOTDIR:
      fail(Code::invalid, "path is not a directory: {}", path);
    case ELOOP:
      fail(Code::conflict, "too many links on the way to '{}'", path);
    case ENAMETOOLONG:
      fail(Code::invalid, "the path is too long: {}", path);
    case ENOSPC:
    case EDQUOT:
      fail(Code::exhausted, "not enough disk space available");
    default:
      throw_errno_text(error, path);
  }
}

Entry::Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return Entry::Kind::file;
  return S_ISDIR(mode) ? Entry::Kind::folder : Entry::Kind::other;
}

Time time_of(const timespec& time) {
  return Time(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

Entry make_entry(int dir_fd, const std::string& name, const std::string& path,
                 const struct stat& status, Names& names) {
  Entry entry;
  entry.name = base_name(path);
  entry.path = path;
  entry.kind = kind_of(status.st_mode);
  entry.mode = status.st_mode & 0777;
  entry.size = status.st_size;
  entry.permissions = permission_text(status.st_mode);
  entry.owner = names.user(status.st_uid);
  entry.group = names.group(status.st_gid);
  entry.modified = time_of(status.st_mtim);
  if (S_ISLNK(status.st_mode)) {
    struct stat target{};
    const bool leads_somewhere = ::fstatat(dir_fd, name.c_str(), &target, 0) == 0;
    entry.kind = leads_somewhere ? kind_of(target.st_mode) : Entry::Kind::other;
    entry.mode = leads_somewhere ? target.st_mode & 0777 : 0;
    entry.is_link = true;
    entry.link_target = resolve(path).value_or(path);
  } else if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
    entry.metadata = read_metadata(path);
  }
  return entry;
}

class Lister {
 public:
  explicit Lister(const std::function<void(Entry)>& each) : each_(each) {}

  void list(int dir_fd, const std::string& path, std::uint32_t depth) {
    for (const std::string& name : linux::list_folder(dir_fd)) {
      struct stat status{};
      // What has gone since is not there.
      if (::fstatat(dir_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      const std::string inner = path == "/" ? path + name : path + '/' + name;
      each_(make_entry(dir_fd, name, inner, status, names_));
      if (depth <= 1 || !S_ISDIR(status.st_mode)) continue;
      const linux::Fd folder(::openat(
          dir_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
      if (folder) list(folder.get(), inner, depth - 1);
    }
  }

 private:
  const std::function<void(Entry)>& each_;
  Names names_;
};

linux::Fd open_folder(const std::string& path) {
  linux::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (!folder) throw_for(errno, path);
  return folder;
}

}  // namespace

std::string permission_text(std::uint32_t mode) {
  std::string text;
  if (S_ISDIR(mode)) text += 'd';
  if (S_ISLNK(mode)) text += 'L';
  if (S_ISBLK(mode) || S_ISCHR(mode)) text += 'D';
  if (S_ISFIFO(mode)) text += 'p';
  if (S_ISSOCK(mode)) text += 'S';
  if ((mode & S_ISUID) != 0) text += 'u';
  if ((mode & S_ISGID) != 0) text += 'g';
  if (S_ISCHR(mode)) text += 'c';
  if ((mode & S_ISVTX) != 0) text += 't';
  if (text.empty()) text += '-';
  for (int bit = 8; bit >= 0; --bit) text += (mode >> bit & 1) != 0 ? "xwr"[bit % 3] : '-';
  return text;
}

const std::string& Names::user(std::uint32_t uid) {
  const auto found = users_.find(uid);
  return found != users_.end() ? found->second
                               : users_.emplace(uid, guest::user_name_here(uid)).first->second;
}

const std::string& Names::group(std::uint32_t gid) {
  const auto found = groups_.find(gid);
  return found != groups_.end() ? found->second
                                : groups_.emplace(gid, guest::group_name_here(gid)).first->second;
}

std::optional<std::string> resolve(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), ::free);
  return resolved ? std::optional<std::string>(resolved.get()) : std::nullopt;
}

Entry describe(const std::string& path, Names& names) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) throw_for(errno == ENOTDIR ? ENOENT : errno, path);
  return make_entry(AT_FDCWD, path, path, status, names);
}

void list(const std::string& path, std::uint32_t depth, const std::function<void(Entry)>& each) {
  const linux::Fd folder = open_folder(path);
  Lister(each).list(folder.get(), path, std::min(depth, kMaxDepth));
}

bool make_folder(const std::string& path, Owner owner) {
  linux::Fd at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  bool made = false;
  std::size_t begin = 1;
  while (begin < path.size()) {
    const std::size_t slash = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, slash - begin);
    const std::string so_far = path.substr(0, slash);
    begin = slash + 1;
    made = ::mkdirat(at.get(), name.c_str(), 0755) == 0;
    if (!made && errno != EEXIST) throw_for(errno, so_far);
    if (made && ::fchownat(at.get(), name.c_str(), owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) != 0)
      throw_for(errno, so_far);
    linux::Fd next(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next) throw_for(errno, so_far);
    at = std::move(next);
  }
  return made;
}

void move(const std::string& from, const std::string& to, Owner owner) {
  struct stat status{};
  if (::lstat(from.c_str(), &status) != 0) throw_for(errno == ENOTDIR ? ENOENT : errno, from);
  make_folder(std::string(folder_of(to)), owner);
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int error = errno;
  if (error == EXDEV) return move_in_pieces(from, to);
  if (error == EINVAL) fail(Code::invalid, "'{}' cannot be moved below itself, to '{}'", from, to);
  throw_errno_text(error, fmt::format("move '{}' to '{}'", from, to));
}

void remove(const std::string& path) {
  if (path == "/") fail(Code::invalid, "the root folder cannot be removed");
  const std::string folder(folder_of(path));
  const linux::Fd parent(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent && (errno == ENOENT || errno == ENOTDIR)) return;
  if (!parent) throw_for(errno, folder);
  linux::remove_all_at(parent.get(), std::string(base_name(path)));
}

}  // namespace hearth::inside
