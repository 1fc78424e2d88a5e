#include "linux/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "linux/fd.h"

namespace hearth::linux {
namespace {

// Takes a folder apart from its leaves up, with one descriptor however deep it is.
class Remover {
 public:
  Remover(int dir_fd, const std::string& name, dev_t device) : device_(device) {
    enter(dir_fd, name);
  }

  // All but the folder itself.
  void run() {
    while (true) {
      Level& level = levels_.back();
      if (!level.left.empty()) {
        const std::string name = std::move(level.left.back());
        level.left.pop_back();
        if (::unlinkat(at_.get(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
        if (errno != EISDIR) throw_errno("remove '{}'", name);
        enter(at_.get(), name);
      } else if (levels_.size() > 1) {
        leave();
      } else {
        return;
      }
    }
  }

 private:
  struct Level {
    std::string name;
    ino_t inode = 0;
    std::vector<std::string> left;
  };

  void enter(int dir_fd, const std::string& name) {
    Fd folder = open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const struct stat status = look_at(folder, name);
    levels_.push_back({.name = name, .inode = status.st_ino, .left = list_folder(folder.get())});
    at_ = std::move(folder);
  }

  // Where somebody has moved the folder meanwhile, what is above it is not ours.
  void leave() {
    const std::string name = std::move(levels_.back().name);
    levels_.pop_back();
    Fd above = open_at(at_.get(), "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (look_at(above, name).st_ino != levels_.back().inode)
      fail(Code::conflict, "folder '{}' was moved while it was removed", name);
    at_ = std::move(above);
    if (::unlinkat(at_.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      throw_errno("remove folder '{}'", name);
  }

  struct stat look_at(const Fd& folder, const std::string& name) const {
    struct stat status{};
    if (::fstat(folder.get(), &status) != 0) throw_errno("stat '{}'", name);
    if (status.st_dev != device_) fail(Code::conflict, "'{}' is another file system", name);
    return status;
  }

  const dev_t device_;
  Fd at_;
  std::vector<Level> levels_;
};

std::string fresh_name(const std::string& name) {
  return name + ".new";
}

// The bytes in a new file beside the old one.
Fd write_fresh(int dir_fd, const std::string& name, std::string_view bytes) {
  const std::string fresh = fresh_name(name);
  ::unlinkat(dir_fd, fresh.c_str(), 0);
  Fd file = open_at(dir_fd, fresh, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600);
  write_all(file.get(), bytes);
  return file;
}

void put_in_place(int dir_fd, const std::string& name) {
  if (::renameat(dir_fd, fresh_name(name).c_str(), dir_fd, name.c_str()) != 0)
    throw_errno("replace '{}'", name);
}

}  // namespace

std::vector<std::string> list_folder(int dir_fd) {
  // A description of its own: readdir(3) moves the position.
  Fd own = open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(own.get()), &::closedir);
  if (!folder) throw_errno("list a folder");
  own.release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr && errno != 0) throw_errno("list a folder");
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

void remove_all_at(int dir_fd, const std::string& name) {
  if (::unlinkat(dir_fd, name.c_str(), 0) == 0 || errno == ENOENT) return;
  if (errno != EISDIR) throw_errno("remove '{}'", name);
  struct stat status{};
  if (::fstatat(dir_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    throw_errno("stat '{}'", name);
  Remover(dir_fd, name, status.st_dev).run();
  if (::unlinkat(dir_fd, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
    throw_errno("remove folder '{}'", name);
}

void replace_file_at(int dir_fd, const std::string& name, std::string_view bytes) {
  write_fresh(dir_fd, name, bytes);
  put_in_place(dir_fd, name);
}

void replace_file_durably_at(int dir_fd, const std::string& name, std::string_view bytes) {
  const Fd file = write_fresh(dir_fd, name, bytes);
  if (::fsync(file.get()) != 0) throw_errno("write '{}' to the disk", name);
  put_in_place(dir_fd, name);
}

}  // namespace hearth::linux
