#include "runtime/volumes.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/id.h"
#include "base/on_failure.h"
#include "linux/files.h"
#include "linux/mounts.h"
#include "runtime/disks.h"
#include "runtime/file_tree.h"
#include "runtime/volume_groups.h"

namespace hearth::runtime {
namespace {

std::string path_of(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

constexpr std::string_view kHalfMade = ".new-";

std::string label_of(const std::string& id) {
  return "hearth volume " + id;
}

// What a new file system has in its root, and a new folder has not.
void remove_rescue_folder(int folder_fd, const std::string& file, const std::string& id) {
  const linux::Fd mount = mount_disk_file(folder_fd, file, label_of(id));
  if (::unlinkat(mount.get(), "lost+found", AT_REMOVEDIR) != 0 && errno != ENOENT)
    throw_errno("empty a new volume");
}

// Below one of the allowed folders, no link on the way: whoever can change a link there must not be
// able to lead us elsewhere.
linux::Fd open_allowed(const std::string& path, const std::vector<std::string>& allowed) {
  const auto above = std::ranges::find_if(allowed, [&](const std::string& folder) {
    return path == folder || path.starts_with(folder + "/");
  });
  if (above == allowed.end()) {
    fail(Code::forbidden,
         "'{}' may not be mounted into sandboxes; 'hearth up --allow-host-path' names what may",
         path);
  }
  const linux::Fd folder = linux::open_file(*above, O_PATH | O_DIRECTORY);
  std::string rest = path.substr(above->size());
  rest.erase(0, rest.find_first_not_of('/'));
  if (rest.empty()) return linux::open_at(folder.get(), ".", O_PATH);
  open_how how{.flags = O_PATH | O_CLOEXEC,
               .mode = 0,
               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  linux::Fd found(
      static_cast<int>(::syscall(SYS_openat2, folder.get(), rest.c_str(), &how, sizeof how)));
  if (!found && (errno == EXDEV || errno == ELOOP))
    fail(Code::forbidden, "host path '{}' has a link or '..' in it, which might lead anywhere",
         path);
  if (!found) throw_errno("open host path '{}'", path);
  return found;
}

constexpr std::uint64_t kNoWayOut =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

linux::Fd open_below(int folder_fd, const std::string& path, std::uint64_t flags) {
  open_how how{.flags = flags | O_CLOEXEC, .mode = 0, .resolve = kNoWayOut};
  return linux::Fd(
      static_cast<int>(::syscall(SYS_openat2, folder_fd, path.c_str(), &how, sizeof how)));
}

// The folder `path` below one that sandboxes write to, made as far as it is missing. A link
// anywhere is refused: a sandbox may have put it there.
linux::Fd make_path_below(int folder_fd, const std::string& path) {
  linux::Fd place = linux::open_at(folder_fd, ".", O_PATH | O_DIRECTORY);
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t slash = std::min(path.find('/', from), path.size());
    const std::string part = path.substr(from, slash - from);
    from = slash + 1;
    if (::mkdirat(place.get(), part.c_str(), 0755) != 0 && errno != EEXIST)
      throw_errno("make folder '{}' of a volume", path);
    linux::Fd next = open_below(place.get(), part, O_PATH);
    if (!next && (errno == ELOOP || errno == EXDEV))
      fail(Code::forbidden, "folder '{}' of a volume has a link in it, which might lead anywhere",
           path);
    if (!next) throw_errno("open folder '{}' of a volume", path);
    place = std::move(next);
  }
  return place;
}

void open_while_empty(int place_fd, std::uint32_t mode) {
  struct stat status{};
  if (::fstat(place_fd, &status) != 0) throw_errno("look at a volume");
  if (!S_ISDIR(status.st_mode)) return;
  const linux::Fd folder = linux::open_at(place_fd, ".", O_RDONLY | O_DIRECTORY);
  if (!linux::list_folder(folder.get()).empty()) return;
  if (::fchmod(folder.get(), mode) != 0) throw_errno("set the mode of a volume");
}

std::string tree_name(std::size_t number) {
  return fmt::format("tree-{}", number);
}

}  // namespace

Volumes::Volumes(int folder_fd, std::vector<std::string> host_paths)
    : folder_fd_(folder_fd), host_paths_(std::move(host_paths)) {
  for (std::string& path : host_paths_) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (!path.starts_with('/') || path == "/")
      fail(Code::invalid, "'{}' is no folder whose files sandboxes may be given", path);
  }
  for (const std::string& name : linux::list_folder(folder_fd_)) {
    if (name.starts_with(kHalfMade)) linux::remove_all_at(folder_fd_, name);
  }
}

// Whoever prepares has said use() for its own already.
bool Volumes::used_by_others(const std::string& volume, const std::vector<MountSpec>& own) const {
  const auto count = std::ranges::count_if(own, [&](const MountSpec& mount) {
    return mount.kind == MountKind::volume && mount.source == volume;
  });
  return users_.with([&](const auto& users) {
    const auto found = users.find(volume);
    return found != users.end() && found->second > static_cast<unsigned>(count);
  });
}

PreparedMounts Volumes::prepare(const std::vector<MountSpec>& mounts, const MountOwner& owner) {
  PreparedMounts prepared;
  for (const MountSpec& mount : mounts) {
    if (is_etc_text(mount)) continue;
    linux::Fd fd;
    switch (mount.kind) {
      case MountKind::volume:
        fd = mount_volume(mount, owner, used_by_others(mount.source, mounts));
        break;
      case MountKind::host:
        fd = mount_host(mount, owner);
        break;
      case MountKind::memory:
        fd = mount_memory(mount, owner);
        break;
      case MountKind::file:
        fd = mount_file(mount, owner, prepared.fds.size());
        break;
      case MountKind::tree:
        fd = mount_tree(mount, owner, prepared.fds.size());
        break;
    }
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) throw_errno("look at the mount for '{}'", mount.target);
    const bool read_only =
        mount.read_only || mount.kind == MountKind::file || mount.kind == MountKind::tree;
    linux::set_mount_flags(
        fd.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0));
    prepared.attachments.push_back(
        {.target = mount.target, .folder = S_ISDIR(status.st_mode) != 0});
    prepared.fds.push_back(std::move(fd));
  }
  return prepared;
}

linux::Fd Volumes::mount_volume(const MountSpec& mount, const MountOwner& owner, bool in_use) {
  linux::Fd volume = open_volume(mount);
  linux::Fd place;
  if (!mount.sub_path.empty()) place = make_path_below(volume.get(), mount.sub_path);
  if (mount.mode != 0) open_while_empty(place ? place.get() : volume.get(), mount.mode);
  regroup(volume.get(), mount.group, mount.regroup, in_use);
  // (Of a disk, which is mounted nowhere, since Linux 6.15.)
  if (place) volume = linux::clone_mount(path_of(place.get()));
  linux::set_mount_idmap(volume.get(), owner.mapping_fd);
  return volume;
}

linux::Fd Volumes::open_volume(const MountSpec& mount) {
  // Before the lock: it takes long.
  if (mount.bytes != 0 && !find_file(mount.source)) {
    try {
      create_disk(mount.source, mount.bytes);
    } catch (const Error& error) {
      if (error.code() != Code::already_exists) throw;  // another container of the pod was first
    }
  }
  const std::lock_guard lock(changes_);
  const auto file = find_file(mount.source);
  if (file && !file->id.empty())
    return mount_disk_file(folder_fd_, file->name(), label_of(file->id));
  if (!file && ::mkdirat(folder_fd_, mount.source.c_str(), 0755) != 0)
    throw_errno("make volume '{}'", mount.source);
  // A part of it is cloned by who knows which.
  if (!mount.sub_path.empty())
    return linux::open_at(folder_fd_, mount.source, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  return linux::clone_mount(fmt::format("{}/{}", path_of(folder_fd_), mount.source));
}

std::vector<Volumes::File> Volumes::files() const {
  std::vector<File> files;
  for (const std::string& name : linux::list_folder(folder_fd_)) {
    const std::size_t dot = name.find('.');
    if (dot == 0) continue;  // half-made
    files.push_back({.volume = name.substr(0, dot),
                     .id = dot == std::string::npos ? "" : name.substr(dot + 1)});
  }
  return files;
}

std::optional<Volumes::File> Volumes::find_file(const std::string& volume) const {
  const std::vector<File> all = files();
  const auto found = std::ranges::find(all, volume, &File::volume);
  if (found == all.end()) return std::nullopt;
  return *found;
}

void Volumes::refuse_existing(const std::string& volume) const {
  if (find_file(volume)) fail(Code::already_exists, "there is a volume '{}' already", volume);
}

void Volumes::create(const std::string& name, std::uint64_t bytes) {
  check_volume_name(name);
  if (bytes != 0) return create_disk(name, bytes);
  const std::lock_guard lock(changes_);
  refuse_existing(name);
  if (::mkdirat(folder_fd_, name.c_str(), 0755) != 0) throw_errno("make volume '{}'", name);
}

void Volumes::create_disk(const std::string& name, std::uint64_t bytes) {
  refuse_existing(name);
  const File file{.volume = name, .id = random_hex(8)};
  const std::string half_made = std::string(kHalfMade) + file.id;
  try {
    make_disk_file(folder_fd_, half_made, bytes);
    OnFailure remove([&] { ::unlinkat(folder_fd_, half_made.c_str(), 0); });
    remove_rescue_folder(folder_fd_, half_made, file.id);
    const std::lock_guard lock(changes_);
    refuse_existing(name);
    if (::renameat(folder_fd_, half_made.c_str(), folder_fd_, file.name().c_str()) != 0)
      throw_errno("name it");
    remove.release();
  } catch (const Error& error) {
    fail(error.code(), "make volume '{}' of {} bytes: {}", name, bytes, error.what());
  }
}

// The folder's owner is root inside, everybody else nobody: what the sandbox writes is the owner's,
// and what others own there is out of its reach.
linux::Fd Volumes::mount_host(const MountSpec& mount, const MountOwner& owner) const {
  const linux::Fd place = open_allowed(mount.source, host_paths_);
  struct stat status{};
  if (::fstat(place.get(), &status) != 0) throw_errno("look at host path '{}'", mount.source);
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
    fail(Code::invalid, "host path '{}' is neither a folder nor a file", mount.source);
  // What root inside writes there is the owner's: a setuid program of root's would be anybody's way
  // to root out here.
  struct statvfs system{};
  if (::fstatvfs(place.get(), &system) != 0) throw_errno("look at host path '{}'", mount.source);
  const bool of_root = status.st_uid == 0 || status.st_gid == 0;
  if (of_root && !mount.read_only && (system.f_flag & ST_NOSUID) == 0) {
    fail(Code::forbidden,
         "host path '{}' is root's: mount it read-only, give it to another user and group, or "
         "have it on a file system mounted nosuid",
         mount.source);
  }
  const linux::IdRange root{.first = owner.ids.first, .count = 1};
  const linux::Fd mapping = linux::make_user_namespace({.inside = status.st_uid, .range = root},
                                                       {.inside = status.st_gid, .range = root});
  linux::Fd clone = linux::clone_mount(path_of(place.get()));
  linux::set_mount_idmap(clone.get(), mapping.get());
  return clone;
}

linux::Fd Volumes::mount_memory(const MountSpec& mount, const MountOwner& owner) {
  const bool is_given = mount.regroup != Regroup::never;
  const std::string root = fmt::to_string(owner.ids.first);
  const std::string group = fmt::to_string(owner.ids.first + (is_given ? mount.group : 0));
  return linux::make_detached_mount("tmpfs",
                                    {{"size", fmt::to_string(mount.bytes)},
                                     {"mode", is_given ? "2777" : "1777"},
                                     {"uid", root},
                                     {"gid", group}},
                                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

linux::Fd Volumes::mount_file(const MountSpec& mount, const MountOwner& owner, std::size_t number) {
  const std::string name = fmt::format("file-{}", number);
  const linux::Fd file =
      linux::open_at(owner.folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0440);
  linux::write_all(file.get(), mount.content);
  if (::fchown(file.get(), owner.ids.first, owner.ids.first + mount.group) != 0)
    throw_errno("give a file to the sandbox");
  if (::fchmod(file.get(), mount.mode != 0 ? mount.mode : 0444) != 0)
    throw_errno("open a file to the sandbox");
  return linux::clone_mount(fmt::format("{}/{}", path_of(owner.folder_fd), name));
}

linux::Fd Volumes::mount_tree(const MountSpec& mount, const MountOwner& owner, std::size_t number) {
  const std::string name = tree_name(number);
  make_file_tree(owner.folder_fd, name, mount, owner.ids);
  return linux::clone_mount(fmt::format("{}/{}", path_of(owner.folder_fd), name));
}

bool is_etc_text(const MountSpec& mount) {
  return mount.kind == MountKind::file &&
         (mount.target == "/etc/resolv.conf" || mount.target == "/etc/hosts");
}

std::optional<std::string> find_etc_text(const std::vector<MountSpec>& mounts,
                                         std::string_view path) {
  const auto found = std::ranges::find(mounts, path, &MountSpec::target);
  if (found == mounts.end()) return std::nullopt;
  return is_etc_text(*found) ? found->content : "";
}

std::string find_tree(const std::vector<MountSpec>& mounts, const std::string& target) {
  std::size_t number = 0;
  for (const MountSpec& mount : mounts) {
    if (mount.kind == MountKind::tree && mount.changes && mount.target == target)
      return tree_name(number);
    if (!is_etc_text(mount)) ++number;
  }
  fail(Code::not_found, "nothing that changes is mounted on '{}'", target);
}

void Volumes::use(const std::vector<MountSpec>& mounts) {
  users_.with([&](auto& users) {
    for (const MountSpec& mount : mounts) {
      if (mount.kind == MountKind::volume) ++users[mount.source];
    }
  });
}

void Volumes::release(const std::vector<MountSpec>& mounts) {
  users_.with([&](auto& users) {
    for (const MountSpec& mount : mounts) {
      if (mount.kind != MountKind::volume) continue;
      const auto found = users.find(mount.source);
      if (found != users.end() && --found->second == 0) users.erase(found);
    }
  });
}

std::vector<Volume> Volumes::list() const {
  std::vector<Volume> volumes;
  for (const File& file : files()) {
    struct statx status{};
    if (::statx(folder_fd_, file.name().c_str(), AT_SYMLINK_NOFOLLOW,
                STATX_BASIC_STATS | STATX_BTIME, &status) != 0) {
      continue;
    }
    const bool used = users_.with([&](const auto& users) { return users.contains(file.volume); });
    Volume volume{.name = file.volume,
                  .created = Time(std::chrono::seconds(status.stx_btime.tv_sec)),
                  .used = used};
    if (!file.id.empty()) {
      volume.size_bytes = status.stx_size;
      volume.taken_bytes = status.stx_blocks * 512;  // of that size, whatever the disk's are
    }
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

void Volumes::remove(const std::string& name) {
  const std::lock_guard lock(changes_);
  const auto file = find_file(name);
  if (!file) fail(Code::not_found, "there is no volume '{}'", name);
  // With the lock held: nobody begins to use it meanwhile.
  users_.with([&](const auto& users) {
    if (users.contains(name)) fail(Code::conflict, "a sandbox uses volume '{}'", name);
    linux::remove_all_at(folder_fd_, file->name());
  });
}

}  // namespace hearth::runtime
