#include "inside/confined_path.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/id.h"
#include "linux/files.h"

namespace hearth::inside {
namespace {

// As many as the kernel follows (path_resolution(7)).
constexpr int kMaxLinks = 40;

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    if (!name.empty() && name != ".") names.emplace_back(name);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return names;
}

std::string join(const std::vector<std::string>& names, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < count; ++i) path += (i == 0 ? "" : "/") + names[i];
  return path.empty() ? "." : path;
}

[[noreturn]] void throw_outside() {
  fail(Code::forbidden, "the path leads out of its folder");
}

[[noreturn]] void throw_changed(std::string_view name) {
  fail(Code::conflict, "'{}' changed while it was looked at", name);
}

// Whether nothing of that name can be there.
bool is_absence(int error) {
  return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

std::optional<struct stat> look_at(int folder_fd, const std::string& name) {
  struct stat status{};
  if (::fstatat(folder_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return status;
  if (is_absence(errno)) return std::nullopt;
  throw_errno("look at '{}'", name);
}

std::string read_link(int folder_fd, const std::string& name) {
  std::string text(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(folder_fd, name.c_str(), text.data(), text.size());
  if (size < 0) throw_changed(name);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// The rest of an absolute path behind a folder's name; nothing if it leads elsewhere.
std::optional<std::string_view> strip_folder(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.substr(1);
  if (!path.starts_with(folder)) return std::nullopt;
  path.remove_prefix(folder.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  return path;
}

// A folder, with those above it. Only who asks for it decides where it is: links are fine.
void make_folders(const std::string& path, const guest::User& owner) {
  for (std::size_t at = path.find_first_not_of('/'); at != std::string::npos;) {
    at = path.find('/', at);
    const std::string folder = path.substr(0, at);
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
      throw_errno("make the folder '{}'", folder);
    if (at != std::string::npos) at = path.find_first_not_of('/', at);
  }
  if (::chown(path.c_str(), owner.uid, owner.gid) != 0)
    throw_errno("give the folder '{}' its owner", path);
}

// Empty for a folder that has been replaced meanwhile.
std::string real_path_of(const std::string& path, int folder_fd) {
  std::string text(PATH_MAX, '\0');
  if (::realpath(path.c_str(), text.data()) == nullptr) return {};
  text.resize(std::strlen(text.c_str()));
  struct stat there{};
  struct stat ours{};
  const bool is_same = ::lstat(text.c_str(), &there) == 0 && ::fstat(folder_fd, &ours) == 0 &&
                       there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
  return is_same ? text : std::string();
}

}  // namespace

ConfinedRoot::ConfinedRoot(const std::string& path, const guest::User& owner) {
  if (!path.starts_with('/')) fail(Code::invalid, "'{}' is no absolute path", path);
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  root_ = linux::Fd(::open(path.c_str(), kFlags));
  if (!root_ && errno == ENOENT) {
    make_folders(path, owner);
    root_ = linux::Fd(::open(path.c_str(), kFlags));
  }
  if (!root_) throw_errno("open the folder '{}'", path);
  const auto asked = split(path);
  spellings_.push_back(asked.empty() ? "/" : "/" + join(asked, asked.size()));
  if (std::string real = real_path_of(path, root_.get());
      !real.empty() && real != spellings_.front())
    spellings_.push_back(std::move(real));
}

struct ConfinedRoot::Walk {
  Place place;
  std::vector<std::string> pending;  // the last one is the next
  int links = 0;

  void put_in_front(std::string_view path) {
    const auto names = split(path);
    pending.insert(pending.end(), names.rbegin(), names.rend());
  }
};

linux::Fd ConfinedRoot::open_below(const std::vector<std::string>& names, std::size_t count) const {
  open_how how{};
  how.flags = static_cast<unsigned>(kFolderFlags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const std::string path = join(names, count);
  linux::Fd folder(
      static_cast<int>(::syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof how)));
  if (!folder) throw_changed(path);
  return folder;
}

void ConfinedRoot::follow(Walk& walk, const std::string& name) const {
  if (++walk.links > kMaxLinks) fail(Code::not_found, "links in a circle at '{}'", name);
  const std::string target = read_link(walk.place.folder.get(), name);
  if (!target.starts_with('/')) return walk.put_in_front(target);
  for (const std::string& spelling : spellings_) {
    const auto rest = strip_folder(target, spelling);
    if (!rest) continue;
    walk.place.names.clear();
    walk.place.existing = 0;
    walk.place.folder = linux::duplicate(root_.get());
    return walk.put_in_front(*rest);
  }
  throw_outside();
}

void ConfinedRoot::step(Walk& walk, const std::string& name) const {
  Place& place = walk.place;
  if (name == "..") {
    if (place.names.empty()) throw_outside();
    place.names.pop_back();
    if (place.existing > place.names.size()) {
      place.existing = place.names.size();
      // Not by the kernel's "..": where that leads is for whoever moves folders to say.
      place.folder = open_below(place.names, place.existing);
    }
    return;
  }
  // Below what is not there, or is no folder, there are only names.
  const bool is_inside_folder = place.existing == place.names.size();
  const auto status = is_inside_folder ? look_at(place.folder.get(), name) : std::nullopt;
  if (status && S_ISLNK(status->st_mode)) return follow(walk, name);
  place.names.push_back(name);
  if (!status || !S_ISDIR(status->st_mode)) return;
  linux::Fd entered(::openat(place.folder.get(), name.c_str(), kFolderFlags));
  if (!entered) throw_changed(name);
  place.folder = std::move(entered);
  ++place.existing;
}

Place ConfinedRoot::locate(std::string_view path) const {
  if (path.size() >= PATH_MAX) fail(Code::invalid, "the path is longer than a path can be");
  if (path.find('\0') != std::string_view::npos) fail(Code::invalid, "the path has a zero byte");
  Walk walk;
  walk.place.folder = linux::duplicate(root_.get());
  walk.put_in_front(path);
  while (!walk.pending.empty()) {
    const std::string name = std::move(walk.pending.back());
    walk.pending.pop_back();
    step(walk, name);
  }

  Place place = std::move(walk.place);
  if (place.existing == place.names.size()) {
    place.kind = Place::Kind::folder;
    if (::fstat(place.folder.get(), &place.status) != 0) throw_errno("look at a folder");
  } else if (place.existing + 1 == place.names.size()) {
    if (const auto status = look_at(place.folder.get(), place.names.back())) {
      place.status = *status;
      place.kind = S_ISREG(status->st_mode) ? Place::Kind::file : Place::Kind::other;
    }
  }
  return place;
}

linux::Fd ConfinedRoot::make_parent(const Place& place, const guest::User& owner) const {
  HEARTH_ASSERT(!place.is_root());
  if (place.kind == Place::Kind::folder) return open_below(place.names, place.names.size() - 1);
  linux::Fd folder = linux::duplicate(place.folder.get());
  for (std::size_t i = place.existing; i + 1 < place.names.size(); ++i) {
    const std::string& name = place.names[i];
    const bool is_new = ::mkdirat(folder.get(), name.c_str(), 0755) == 0;
    if (!is_new && errno != EEXIST) throw_errno("make the folder '{}'", name);
    linux::Fd inner(::openat(folder.get(), name.c_str(), kFolderFlags));
    if (!inner) fail(Code::invalid, "'{}' is no folder", name);
    if (is_new &&
        ::fchownat(folder.get(), name.c_str(), owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) != 0)
      throw_errno("give the folder '{}' its owner", name);
    folder = std::move(inner);
  }
  return folder;
}

void ConfinedRoot::remove(const Place& place, bool with_content) const {
  if (place.kind == Place::Kind::nothing) fail(Code::not_found, "there is nothing to remove");
  if (place.is_root()) {
    if (!with_content) fail(Code::conflict, "the root folder stays");
    for (const std::string& name : linux::list_folder(root_.get()))
      linux::remove_all_at(root_.get(), name);
    return;
  }
  const bool is_folder = place.kind == Place::Kind::folder;
  const linux::Fd parent = is_folder ? open_below(place.names, place.names.size() - 1)
                                     : linux::duplicate(place.folder.get());
  const std::string& name = place.names.back();
  if (is_folder && with_content) return linux::remove_all_at(parent.get(), name);
  if (::unlinkat(parent.get(), name.c_str(), is_folder ? AT_REMOVEDIR : 0) == 0) return;
  if (errno == ENOTEMPTY || errno == EEXIST) fail(Code::conflict, "'{}' is not empty", name);
  throw_errno("remove '{}'", name);
}

linux::Fd open_for_reading(const Place& place) {
  if (place.kind == Place::Kind::nothing) fail(Code::not_found, "there is no such file");
  if (place.kind != Place::Kind::file) fail(Code::invalid, "it is no regular file");
  // It may be something else by now: a pipe, on which one would wait, or a link.
  linux::Fd file(::openat(place.folder.get(), place.names.back().c_str(),
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ELOOP) throw_changed(place.names.back());
  if (!file) throw_errno("open '{}'", place.names.back());
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) throw_errno("look at '{}'", place.names.back());
  if (!S_ISREG(status.st_mode)) throw_changed(place.names.back());
  return file;
}

NewFile::NewFile(int folder_fd, std::string_view prefix, unsigned mode, const guest::User& owner)
    : folder_fd_(folder_fd), name_(fmt::format("{}{}", prefix, random_hex(8))) {
  file_ = linux::open_at(folder_fd, name_, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600);
  // The owner first: a change of owner takes some bits of the mode away.
  if (::fchown(file_.get(), owner.uid, owner.gid) != 0 || ::fchmod(file_.get(), mode) != 0) {
    const int error = errno;
    ::unlinkat(folder_fd_, name_.c_str(), 0);
    throw_errno_text(error, "give a new file its owner and mode");
  }
}

NewFile::~NewFile() {
  if (!name_.empty()) ::unlinkat(folder_fd_, name_.c_str(), 0);
}

void NewFile::finish(const std::string& name) {
  if (::fsync(file_.get()) != 0) throw_errno("write '{}' to disk", name);
  if (::renameat(folder_fd_, name_.c_str(), folder_fd_, name.c_str()) != 0) {
    if (errno == EISDIR) fail(Code::invalid, "'{}' is a folder", name);
    throw_errno("put '{}' in its place", name);
  }
  name_.clear();
}

}  // namespace hearth::inside
