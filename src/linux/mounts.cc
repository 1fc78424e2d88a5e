#include "linux/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace hearth::linux {
namespace {

// mount(2) copies one page of options and ends it wherever that falls (fs/namespace.c,
// copy_mount_options).
constexpr std::size_t kOptionsLimit = 4096;

// Options are separated by commas, lower layers by colons; a backslash takes the meaning away from
// both and from itself. Overlayfs undoes that for every path, not only for lowerdir
// (fs/overlayfs/params.c, ovl_unescape).
std::string escape_layer(std::string_view path) {
  std::string escaped;
  for (const char c : path) {
    if (c == '\\' || c == ',' || c == ':') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// True for `path` itself and everything above it.
bool is_or_contains(const std::string& ancestor, const std::string& path) {
  if (!path.starts_with(ancestor)) return false;
  return path.size() == ancestor.size() || ancestor == "/" || path[ancestor.size()] == '/';
}

// One round over the table. True when something was detached.
bool detach_unkept(const std::vector<std::string>& keep) {
  bool any = false;
  for (const MountEntry& entry : mount_table()) {
    const bool kept = std::ranges::any_of(
        keep, [&](const std::string& path) { return is_or_contains(entry.mount_point, path); });
    if (kept || entry.mount_point == "/") continue;
    // Takes what is mounted below along. Fails for those gone that way, for those covered by
    // another mount, and for locked ones; whatever stays only costs time.
    any |= ::umount2(entry.mount_point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
  }
  return any;
}

}  // namespace

Mount& Mount::operator=(Mount&& other) noexcept {
  if (this != &other) {
    detach();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

void Mount::detach() noexcept {
  if (!path_.empty()) ::umount2(path_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  path_.clear();
}

Mount make_mount(const MountSpec& spec) {
  if (spec.options.size() >= kOptionsLimit) {
    fail(Code::invalid, "mount {} on '{}': more than {} bytes of options", spec.type, spec.path,
         kOptionsLimit - 1);
  }
  if (::mount(spec.source.c_str(), spec.path.c_str(), spec.type.c_str(), spec.flags,
              spec.options.c_str()) != 0) {
    throw_errno("mount {} '{}' on '{}' with '{}'", spec.type, spec.source, spec.path, spec.options);
  }
  return Mount(spec.path);
}

Fd clone_mount(const std::string& path, bool recursive) {
  const unsigned flags =
      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? static_cast<unsigned>(AT_RECURSIVE) : 0U);
  Fd mount(::open_tree(AT_FDCWD, path.c_str(), flags));
  if (!mount) throw_errno("clone the mount at '{}'", path);
  return mount;
}

Fd make_detached_mount(const std::string& type,
                       const std::vector<std::pair<std::string, std::string>>& options,
                       std::uint64_t flags) {
  const Fd context(static_cast<int>(::syscall(SYS_fsopen, type.c_str(), FSOPEN_CLOEXEC)));
  if (!context) throw_errno("make a file system of type {}", type);
  for (const auto& [name, value] : options) {
    const bool flag = value.empty();
    if (::syscall(SYS_fsconfig, context.get(), flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING,
                  name.c_str(), flag ? nullptr : value.c_str(), 0) != 0) {
      throw_errno("set option {}={} of a {}", name, value, type);
    }
  }
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    throw_errno("make a {}", type);
  Fd mount(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, flags)));
  if (!mount) throw_errno("mount a {}", type);
  return mount;
}

void set_mount_idmap(int mount_fd, int userns_fd, std::uint64_t flags) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP | flags;
  attributes.userns_fd = static_cast<std::uint64_t>(userns_fd);
  if (::mount_setattr(mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) !=
      0) {
    throw_errno("map the owners of a mount");
  }
}

void set_mount_flags(int mount_fd, std::uint64_t set, std::uint64_t clear) {
  mount_attr attributes{};
  attributes.attr_set = set;
  attributes.attr_clr = clear;
  if (::mount_setattr(mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) !=
      0) {
    throw_errno("set flags {:#x} of a mount, clear {:#x}", set, clear);
  }
}

void attach_mount(int mount_fd, const std::string& path) {
  if (::move_mount(mount_fd, "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    throw_errno("attach a mount at '{}'", path);
  }
}

std::string overlay_options(const OverlayLayers& layers) {
  std::string options = "lowerdir=";
  for (const std::string& lower : layers.lowers) {
    if (&lower != &layers.lowers.front()) options += ':';
    options += escape_layer(lower);
  }
  if (!layers.upper.empty()) {
    options += fmt::format(",upperdir={},workdir={}", escape_layer(layers.upper),
                           escape_layer(layers.work));
  }
  if (layers.userxattr) options += ",userxattr";
  if (layers.volatile_upper) options += ",volatile";
  for (const std::string& option : layers.extra) options += "," + option;
  return options;
}

void make_slim_mount_namespace(const std::vector<std::string>& keep) {
  if (::unshare(CLONE_NEWNS) != 0) throw_errno("make a mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    throw_errno("make all mounts private");
  }
  std::vector<std::string> kept;
  kept.reserve(keep.size());
  for (const std::string& path : keep) kept.push_back(without_trailing_slash(path));
  // Each round uncovers what the last one took away; mounts stack a few deep at most.
  constexpr int kRounds = 16;
  for (int round = 0; round < kRounds && detach_unkept(kept); ++round) {
  }
}

}  // namespace hearth::linux
