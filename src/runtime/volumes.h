// Named folders that outlive sandboxes, and everything else that is mounted into them.
//
//   volumes/NAME/   files of a volume; owners as sandboxes see them (0 .. 65535)
//
// Thread-safe. Everything throws Error.
#pragma once

#include <map>
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
  // `folder_fd` is borrowed. `host_paths` are the only places that host mounts may come from.
  Volumes(int folder_fd, std::vector<std::string> host_paths);

  // Throws Error: invalid (a name, a target, a size), forbidden (a host path), not_found.
  PreparedMounts prepare(const std::vector<MountSpec>& mounts, const MountOwner& owner);

  // Sandboxes that use volumes: what is used cannot be removed.
  void use(const std::vector<MountSpec>& mounts);
  void release(const std::vector<MountSpec>& mounts);

  std::vector<Volume> list() const;
  void remove(const std::string& name);

 private:
  linux::Fd mount_volume(const MountSpec& mount, const MountOwner& owner);
  linux::Fd mount_host(const MountSpec& mount, const MountOwner& owner) const;
  static linux::Fd mount_memory(const MountSpec& mount, const MountOwner& owner);
  static linux::Fd mount_file(const MountSpec& mount, const MountOwner& owner, std::size_t number);

  int folder_fd_;
  std::vector<std::string> host_paths_;
  Guarded<std::map<std::string, unsigned>> users_;  // of volumes, how many
};

// Throws Error(invalid) for what could never be prepared.
void check(const std::vector<MountSpec>& mounts);

}  // namespace hearth::runtime
