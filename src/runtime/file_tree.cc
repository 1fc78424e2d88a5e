#include "runtime/file_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/wire.h"
#include "linux/fd.h"
#include "linux/files.h"

namespace hearth::runtime {
namespace {

constexpr const char* kData = "..data";
constexpr const char* kNextData = "..data_tmp";

struct Owner {
  uid_t user;
  gid_t group;
};

void give(int fd, const Owner& owner) {
  if (::fchown(fd, owner.user, owner.group) != 0) throw_errno("give files to the sandbox");
}

linux::Fd open_folder(int above_fd, const std::string& name) {
  open_how how{.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
               .mode = 0,
               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
  linux::Fd folder(
      static_cast<int>(::syscall(SYS_openat2, above_fd, name.c_str(), &how, sizeof how)));
  if (!folder) throw_errno("open a folder of files");
  return folder;
}

linux::Fd make_folder(int above_fd, const std::string& name, const Owner& owner) {
  const bool is_new = ::mkdirat(above_fd, name.c_str(), 0755) == 0;
  if (!is_new && errno != EEXIST) throw_errno("make a folder for files");
  linux::Fd folder = open_folder(above_fd, name);
  if (is_new) give(folder.get(), owner);
  return folder;
}

void write_file(int tree_fd, const MountFile& file, const Owner& owner) {
  linux::Fd folder = linux::open_at(tree_fd, ".", O_RDONLY | O_DIRECTORY);
  std::size_t from = 0;
  for (std::size_t slash = file.path.find('/'); slash != std::string::npos;
       slash = file.path.find('/', from)) {
    folder = make_folder(folder.get(), file.path.substr(from, slash - from), owner);
    from = slash + 1;
  }
  const linux::Fd made = linux::open_at(folder.get(), file.path.substr(from),
                                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400);
  linux::write_all(made.get(), file.content);
  give(made.get(), owner);
  if (::fchmod(made.get(), file.mode) != 0) throw_errno("set the mode of a file");
}

// The folder's name for these files.
std::string version_of(const MountSpec& tree) {
  wire::Writer all;
  for (const MountFile& file : tree.files) all.text(file.path).text(file.content).u32(file.mode);
  all.u32(tree.group);
  return fmt::format("..{:016x}", std::hash<std::string>()(std::move(all).take()));
}

// Empty for none.
std::string current_version(int tree_fd) {
  std::array<char, 64> text{};
  const ssize_t length = ::readlinkat(tree_fd, kData, text.data(), text.size());
  if (length < 0 && errno != ENOENT) throw_errno("look which files count");
  return length < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(length));
}

void make_link(int tree_fd, const std::string& name, const std::string& to, const Owner& owner) {
  if (::symlinkat(to.c_str(), tree_fd, name.c_str()) != 0) {
    if (errno == EEXIST) return;  // touched again, it would be news for whoever watches
    throw_errno("make a link for files");
  }
  if (::fchownat(tree_fd, name.c_str(), owner.user, owner.group, AT_SYMLINK_NOFOLLOW) != 0)
    throw_errno("give a link to the sandbox");
}

void write_version(int tree_fd, const std::string& version, const MountSpec& tree,
                   const Owner& owner) {
  linux::remove_all_at(tree_fd, version);  // half of it, of a life before this one
  const linux::Fd folder = make_folder(tree_fd, version, owner);
  for (const MountFile& file : tree.files) write_file(folder.get(), file, owner);
}

void change_to(int tree_fd, const std::string& version, const Owner& owner) {
  linux::remove_all_at(tree_fd, kNextData);
  make_link(tree_fd, kNextData, version, owner);
  if (::renameat(tree_fd, kNextData, tree_fd, kData) != 0) throw_errno("change the files");
}

// Links for what is new, none for what is gone, and nothing of versions that do not count.
void tidy(int tree_fd, const std::string& version, const MountSpec& tree, const Owner& owner) {
  std::set<std::string> seen;
  for (const MountFile& file : tree.files) seen.insert(file.path.substr(0, file.path.find('/')));
  for (const std::string& name : seen)
    make_link(tree_fd, name, fmt::format("{}/{}", kData, name), owner);
  for (const std::string& name : linux::list_folder(tree_fd)) {
    const bool counts = name == kData || name == version || seen.contains(name);
    if (!counts) linux::remove_all_at(tree_fd, name);
  }
}

}  // namespace

void make_file_tree(int folder_fd, const std::string& name, const MountSpec& tree,
                    const linux::IdRange& ids) {
  const Owner owner{ids.first, ids.first + tree.group};
  if (::mkdirat(folder_fd, name.c_str(), 0755) != 0) throw_errno("make a folder for files");
  const linux::Fd folder = open_folder(folder_fd, name);
  give(folder.get(), {ids.first, ids.first});
  if (tree.changes) return replace_file_tree(folder_fd, name, tree, ids);
  for (const MountFile& file : tree.files) write_file(folder.get(), file, owner);
}

void replace_file_tree(int folder_fd, const std::string& name, const MountSpec& tree,
                       const linux::IdRange& ids) {
  const Owner owner{ids.first, ids.first + tree.group};
  const linux::Fd folder = open_folder(folder_fd, name);
  const std::string version = version_of(tree);
  if (current_version(folder.get()) != version) {
    write_version(folder.get(), version, tree, owner);
    change_to(folder.get(), version, owner);
  }
  tidy(folder.get(), version, tree, owner);
}

}  // namespace hearth::runtime
