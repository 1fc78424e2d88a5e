#include "unpack/copy_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>

#include "base/error.h"
#include "image/unpack_job.h"
#include "linux/fd.h"
#include "linux/files.h"
#include "unpack/copy_file.h"

namespace hearth::unpack {
namespace {

// Of one file, all names together; the kernel's own limit.
constexpr std::size_t kMaxXattrNames = 65536;
constexpr std::size_t kMaxXattrValue = 65536;

std::array<timespec, 2> times_of(const struct stat& status) {
  return {status.st_mtim, status.st_mtim};
}

bool is_whiteout(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
}

class Copier {
 public:
  explicit Copier(const CopyRequest& request)
      : request_(request), budget_(request.max_bytes, request.max_entries), files_(budget_) {}

  std::uint64_t run() {
    struct stat status{};
    if (::fstat(request_.source_fd, &status) != 0) throw_errno("stat the folder to copy");
    if (!S_ISDIR(status.st_mode)) fail(Code::invalid, "only a folder can be copied");
    device_ = status.st_dev;
    budget_.add_folder();
    // A description of our own: what we were handed may be no more than a path (O_PATH).
    const linux::Fd source = linux::open_at(request_.source_fd, ".", O_RDONLY | O_DIRECTORY);
    const linux::Fd root = linux::open_at(request_.root_fd, ".", O_RDONLY | O_DIRECTORY);
    copy_content(source.get(), root.get(), "", 1);
    set_metadata(source.get(), root.get(), status, ".");
    return budget_.bytes();
  }

 private:
  struct Item {
    int from_fd = -1;  // the folders it is in
    int to_fd = -1;
    const std::string& name;
    std::string path;  // from the root
    int depth = 0;
  };

  void copy_content(int from_fd, int to_fd, const std::string& path, int depth) {
    for (const std::string& name : linux::list_folder(from_fd)) {
      copy_item({.from_fd = from_fd,
                 .to_fd = to_fd,
                 .name = name,
                 .path = path.empty() ? name : path + "/" + name,
                 .depth = depth});
    }
  }

  void copy_item(const Item& item) {
    struct stat status{};
    if (::fstatat(item.from_fd, item.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return;  // it did not stand still
      throw_errno("stat '{}'", item.path);
    }
    budget_.add_entry();
    if (S_ISDIR(status.st_mode)) return copy_folder(item);
    if (S_ISSOCK(status.st_mode) || S_ISBLK(status.st_mode)) return;
    if (S_ISCHR(status.st_mode)) {
      if (request_.overlay_marks && is_whiteout(status)) make_node(item, S_IFCHR);
      return;
    }
    if (status.st_nlink > 1 && link_to_copy(item, status)) return;
    if (S_ISREG(status.st_mode)) return copy_file(item);
    if (S_ISLNK(status.st_mode)) {
      copy_symlink(item);
    } else {
      make_node(item, S_IFIFO | (status.st_mode & 07777));
    }
    set_metadata_at(item, status);
  }

  // True when another name of the same file was copied already; otherwise this is the first.
  bool link_to_copy(const Item& item, const struct stat& status) {
    const auto [known, first] = copied_.try_emplace(status.st_ino, item.path);
    if (first) return false;
    if (::linkat(request_.root_fd, known->second.c_str(), item.to_fd, item.name.c_str(), 0) != 0)
      throw_errno("link '{}' to '{}'", item.path, known->second);
    return true;
  }

  void copy_folder(const Item& item) {
    if (item.depth > image::kMaxTreeDepth)
      fail(Code::invalid, "'{}': more than {} folders deep", item.path, image::kMaxTreeDepth);
    const linux::Fd from =
        linux::open_at(item.from_fd, item.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    struct stat status{};
    if (::fstat(from.get(), &status) != 0) throw_errno("stat '{}'", item.path);
    if (::mkdirat(item.to_fd, item.name.c_str(), 0700) != 0)
      throw_errno("make folder '{}'", item.path);
    budget_.add_folder();
    const linux::Fd to = linux::open_at(item.to_fd, item.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    // What is mounted there is not part of it; the folder is.
    if (status.st_dev == device_) copy_content(from.get(), to.get(), item.path, item.depth + 1);
    set_metadata(from.get(), to.get(), status, item.path);
  }

  void copy_file(const Item& item) {
    const linux::Fd from =
        linux::open_at(item.from_fd, item.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat status{};
    if (::fstat(from.get(), &status) != 0) throw_errno("stat '{}'", item.path);
    if (!S_ISREG(status.st_mode)) fail(Code::conflict, "'{}' did not stand still", item.path);
    const linux::Fd to =
        linux::open_at(item.to_fd, item.name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600);
    files_.copy(from.get(), to.get(), status);
    set_metadata(from.get(), to.get(), status, item.path);
  }

  void copy_symlink(const Item& item) {
    std::array<char, 4096> target;
    const ssize_t size =
        ::readlinkat(item.from_fd, item.name.c_str(), target.data(), target.size() - 1);
    if (size < 0) throw_errno("read link '{}'", item.path);
    target[static_cast<std::size_t>(size)] = '\0';
    if (::symlinkat(target.data(), item.to_fd, item.name.c_str()) != 0)
      throw_errno("make link '{}'", item.path);
  }

  void make_node(const Item& item, mode_t mode) {
    if (::mknodat(item.to_fd, item.name.c_str(), mode, makedev(0, 0)) != 0)
      throw_errno("make '{}'", item.path);
  }

  bool is_kept(const std::string& name, std::string_view value) const {
    if (is_kept_xattr(name)) return true;
    return request_.overlay_marks && name == kOpaqueXattr && value == kOpaqueValue;
  }

  void copy_xattrs(int from_fd, int to_fd, const std::string& path) {
    ssize_t size = ::flistxattr(from_fd, nullptr, 0);
    if (size == 0 || (size < 0 && errno == EOPNOTSUPP)) return;
    std::string names(kMaxXattrNames, '\0');
    if (size > 0) size = ::flistxattr(from_fd, names.data(), names.size());
    if (size < 0) throw_errno("list the attributes of '{}'", path);
    names.resize(static_cast<std::size_t>(size));
    std::string value;
    for (std::size_t at = 0; at < names.size();) {
      const std::string name(names.c_str() + at);
      at += name.size() + 1;
      value.resize(kMaxXattrValue);
      const ssize_t got = ::fgetxattr(from_fd, name.c_str(), value.data(), value.size());
      if (got < 0) continue;  // not for us to see
      value.resize(static_cast<std::size_t>(got));
      if (!is_kept(name, value)) continue;
      if (::fsetxattr(to_fd, name.c_str(), value.data(), value.size(), 0) == 0) continue;
      if (!name.starts_with("user.") && (errno == EPERM || errno == EOPNOTSUPP)) continue;
      throw_errno("set attribute '{}' of '{}'", name, path);
    }
  }

  // Owner first: changing it takes set-user-id bits and capabilities away. Ids outside our range
  // come and go as 65534.
  void set_metadata(int from_fd, int to_fd, const struct stat& status, const std::string& path) {
    if (::fchown(to_fd, status.st_uid, status.st_gid) != 0)
      throw_errno("set the owner of '{}'", path);
    if (::fchmod(to_fd, status.st_mode & 07777) != 0) throw_errno("set the mode of '{}'", path);
    copy_xattrs(from_fd, to_fd, path);
    if (::futimens(to_fd, times_of(status).data()) != 0) throw_errno("set the time of '{}'", path);
  }

  void set_metadata_at(const Item& item, const struct stat& status) {
    if (::fchownat(item.to_fd, item.name.c_str(), status.st_uid, status.st_gid,
                   AT_SYMLINK_NOFOLLOW) != 0)
      throw_errno("set the owner of '{}'", item.path);
    // Our own, just made: no link can be in its place.
    if (S_ISFIFO(status.st_mode) &&
        ::fchmodat(item.to_fd, item.name.c_str(), status.st_mode & 07777, 0) != 0)
      throw_errno("set the mode of '{}'", item.path);
    if (::utimensat(item.to_fd, item.name.c_str(), times_of(status).data(), AT_SYMLINK_NOFOLLOW) !=
        0)
      throw_errno("set the time of '{}'", item.path);
  }

  CopyRequest request_;
  Budget budget_;
  FileCopier files_;
  dev_t device_ = 0;
  std::map<ino_t, std::string> copied_;  // files with several names: where the first one went
};

}  // namespace

std::uint64_t copy_tree(const CopyRequest& request) {
  return Copier(request).run();
}

}  // namespace hearth::unpack
