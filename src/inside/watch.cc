#include "inside/watch.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "linux/files.h"

namespace hearth::inside {
namespace {

constexpr std::uint32_t kEvents = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |
                                  IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// Each costs us a name and the kernel an inode that stays in memory.
constexpr std::size_t kMaxFolders = 65'536;
constexpr std::size_t kBuffer = std::size_t{16} << 10;
// Magic numbers that linux/magic.h leaves out.
constexpr long kCifs = 0xFF534D42;

[[noreturn]] void throw_for(int error, const std::string& path) {
  if (error == ENOENT) fail(Code::not_found, "path {} not found", path);
  if (error == ENOTDIR) fail(Code::invalid, "path {} is not a directory", path);
  if (error == ENOSPC) fail(Code::exhausted, "too many folders are watched in this sandbox");
  if (error == EMFILE) fail(Code::exhausted, "too many watchers in this sandbox");
  throw_errno_text(error, fmt::format("watch '{}'", path));
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + '/' + name;
}

bool is_in(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

// Of an entry in a folder.
std::optional<Change> change_of(std::uint32_t mask) {
  if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) return Change::create;
  if ((mask & IN_MODIFY) != 0) return Change::write;
  if ((mask & IN_ATTRIB) != 0) return Change::chmod;
  if ((mask & (IN_MOVED_FROM | IN_MOVE_SELF)) != 0) return Change::rename;
  if ((mask & (IN_DELETE | IN_DELETE_SELF)) != 0) return Change::remove;
  return std::nullopt;
}

}  // namespace

bool is_network_mount(const std::string& path) {
  struct statfs status{};
  if (::statfs(path.c_str(), &status) != 0) throw_for(errno, path);
  const long type = status.f_type;
  return type == NFS_SUPER_MAGIC || type == SMB_SUPER_MAGIC || type == SMB2_SUPER_MAGIC ||
         type == kCifs || type == FUSE_SUPER_MAGIC;
}

Watcher::Watcher(std::string path, bool recursive)
    : path_(std::move(path)),
      recursive_(recursive),
      inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!inotify_) throw_for(errno, path_);
  if (!add("")) throw_for(errno, path_);
  if (recursive_) add_tree("", nullptr);
}

std::string Watcher::whole(const std::string& folder) const {
  return folder.empty() ? path_ : path_ == "/" ? '/' + folder : path_ + '/' + folder;
}

// False, with errno, for what is not there (any more) or is no folder.
bool Watcher::add(const std::string& folder) {
  if (folders_.size() >= kMaxFolders) throw_for(ENOSPC, folder);
  // A link below the root of the tree leads out of it.
  const std::uint32_t flags = folder.empty() ? kEvents : kEvents | IN_DONT_FOLLOW;
  const int watch = ::inotify_add_watch(inotify_.get(), whole(folder).c_str(), flags);
  if (watch < 0 && (errno == ENOSPC || errno == ENOMEM)) throw_for(ENOSPC, folder);
  if (watch < 0) return false;
  folders_[watch] = folder;
  return true;
}

// Watches all folders below one that is watched. What is found is told to `each`, if there is one:
// it came to be before anybody watched.
void Watcher::add_tree(const std::string& folder, const std::function<void(WatchEvent)>* each) {
  std::vector<std::string> to_visit{folder};
  while (!to_visit.empty()) {
    const std::string next = std::move(to_visit.back());
    to_visit.pop_back();
    const linux::Fd fd(
        ::open(whole(next).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) continue;
    for (const std::string& name : linux::list_folder(fd.get())) {
      const std::string inner = join(next, name);
      if (each != nullptr && told_.insert(inner).second)
        (*each)({.name = inner, .change = Change::create});
      struct stat status{};
      if (::fstatat(fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISDIR(status.st_mode)) {
        continue;
      }
      if (add(inner)) to_visit.push_back(inner);
    }
  }
}

void Watcher::rename_tree(const std::string& from, const std::string& to) {
  for (auto& [watch, folder] : folders_) {
    if (!folder.empty() && is_in(folder, from)) folder = to + folder.substr(from.size());
  }
}

void Watcher::forget_tree(const std::string& folder) {
  std::erase_if(folders_, [&](const auto& each) {
    if (each.second.empty() || !is_in(each.second, folder)) return false;
    ::inotify_rm_watch(inotify_.get(), each.first);
    return true;
  });
}

void Watcher::drain(const std::function<void(WatchEvent)>& each) {
  alignas(inotify_event) std::array<char, kBuffer> buffer;
  bool lost = false;
  while (true) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* const name = buffer.data() + at + sizeof event;
      at += sizeof event + event.len;
      lost = lost || (event.mask & IN_Q_OVERFLOW) != 0;
      handle({.watch = event.wd,
              .mask = event.mask,
              .cookie = event.cookie,
              .name = std::string(name, ::strnlen(name, event.len))},
             each);
    }
  }
  // Folders that went out of the tree.
  for (const auto& [cookie, folder] : std::exchange(on_the_move_, {})) forget_tree(folder);
  told_.clear();
  if (!lost) return;
  if (recursive_) add_tree("", nullptr);
  fail(Code::exhausted, "more happened in '{}' than could be remembered; some of it is lost",
       path_);
}

void Watcher::handle(const Raw& raw, const std::function<void(WatchEvent)>& each) {
  const auto found = folders_.find(raw.watch);
  if (found == folders_.end()) return;
  if ((raw.mask & IN_IGNORED) != 0) {
    folders_.erase(found);
    return;
  }
  const auto change = change_of(raw.mask);
  if (!change) return;
  if (raw.name.empty()) {
    // About the folder itself: of those below, the folder they are in has told already.
    if (found->second.empty()) each({.name = ".", .change = *change});
    return;
  }
  const std::string name = join(found->second, raw.name);
  if (*change != Change::create || !told_.contains(name)) each({.name = name, .change = *change});
  if (recursive_ && (raw.mask & IN_ISDIR) != 0) handle_folder(raw, name, each);
}

void Watcher::handle_folder(const Raw& raw, const std::string& name,
                            const std::function<void(WatchEvent)>& each) {
  if ((raw.mask & IN_MOVED_FROM) != 0) on_the_move_[raw.cookie] = name;
  if ((raw.mask & (IN_CREATE | IN_MOVED_TO)) == 0) return;
  if (const auto moved = on_the_move_.extract(raw.cookie); raw.cookie != 0 && moved)
    return rename_tree(moved.mapped(), name);
  if (add(name)) add_tree(name, &each);
}

}  // namespace hearth::inside
