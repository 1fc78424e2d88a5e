// Named folders that outlive sandboxes, and everything else that is mounted into them.
//
//   volumes/NAME/     files of a volume; owners as sandboxes see them (0 .. 65535)
//   volumes/NAME.ID   the same with a size: a disk (disks.h), whose label ID is its own for ever
//   volumes/.new-ID   being made; of no use after a crash
//
// Thread-safe. Everything throws Error.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "guest/boot.h"
#include "linux/fd.h"
#include "linux/namespaces.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

// Whose mounts they are.
struct MountOwner {
  linux::IdRange ids;
  int mapping_fd = -1;  // user namespace with the same mapping
  int folder_fd = -1;   // in memory, for files; goes with the sandbox
};

struct PreparedMounts {
  std::vector<guest::Attachment> attachments;
  std::vector<linux::Fd> fds;  // detached mounts, one for each
};

class Volumes {
 public:
  // Removes what a crash left half-made. `folder_fd` is borrowed. `host_paths` are the only places
  // that host mounts may come from.
  Volumes(int folder_fd, std::vector<std::string> host_paths);

  // Leaves out files for /etc/hosts and /etc/resolv.conf, which are written and not mounted: what
  // an image has there may be a link. Throws Error: invalid (a name, a target, a size), forbidden
  // (a host path), not_found.
  PreparedMounts prepare(const std::vector<MountSpec>& mounts, const MountOwner& owner);

  // Sandboxes that use volumes: what is used cannot be removed.
  void use(const std::vector<MountSpec>& mounts);
  void release(const std::vector<MountSpec>& mounts);

  void create(const std::string& name, std::uint64_t bytes);
  std::vector<Volume> list() const;
  void remove(const std::string& name);

 private:
  // How a volume is called in the folder.
  struct File {
    std::string volume;
    std::string id;  // empty: it has no size

    std::string name() const { return id.empty() ? volume : volume + '.' + id; }
  };
  std::vector<File> files() const;
  std::optional<File> find_file(const std::string& volume) const;
  void refuse_existing(const std::string& volume) const;
  void create_disk(const std::string& name, std::uint64_t bytes);
  bool used_by_others(const std::string& volume, const std::vector<MountSpec>& own) const;
  linux::Fd mount_volume(const MountSpec& mount, const MountOwner& owner, bool in_use);
  linux::Fd mount_host(const MountSpec& mount, const MountOwner& owner) const;
  static linux::Fd mount_memory(const MountSpec& mount, const MountOwner& owner);
  static linux::Fd mount_file(const MountSpec& mount, const MountOwner& owner, std::size_t number);
  static linux::Fd mount_tree(const MountSpec& mount, const MountOwner& owner, std::size_t number);
  // As it is kept, without anybody's ids: a mount, or the folder if only a part of it is wanted.
  linux::Fd open_volume(const MountSpec& mount);

  int folder_fd_;
  std::vector<std::string> host_paths_;
  std::mutex changes_;  // of what is in the folder, and of what is mounted from it
  Guarded<std::map<std::string, unsigned>> users_;  // of volumes, how many
};

// Whether it is for /etc/hosts or /etc/resolv.conf, and written there.
bool is_etc_text(const MountSpec& mount);
// What is to be written at that path, according to `mounts`: "" where something is mounted there.
// Nothing: they do not say.
std::optional<std::string> find_etc_text(const std::vector<MountSpec>& mounts,
                                         std::string_view path);

// Where prepare() put the files of the changing tree on `target`: the name of a folder in the
// sandbox's. Throws Error(not_found) when there is none among `mounts`.
std::string find_tree(const std::vector<MountSpec>& mounts, const std::string& target);

// Throws Error(invalid).
void check_volume_name(const std::string& name);

// Throws Error(invalid) for what could never be prepared.
void check(const std::vector<MountSpec>& mounts);

}  // namespace hearth::runtime
