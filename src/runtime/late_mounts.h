// Mounts for a sandbox that runs already.
//
// Its PID 1 has given up the right to mount, and the host never follows a path that a sandbox
// controls. So a child of ours enters its user and mount namespaces for as long as it takes: what
// it can reach there is the sandbox's, as is every right that it has. It walks to the target folder
// by folder, follows no link, and puts the mount there by descriptor.
#pragma once

#include <span>
#include <string>

#include "linux/pidfd.h"

namespace hearth::runtime {

struct LateMount {
  int fd = -1;         // detached; borrowed
  std::string target;  // a folder, as check(MountSpec) wants it; what is missing of it is made
};

// All or none; folders that were made stay. `process` is the sandbox's PID 1. Throws Error: invalid
// when a link, a file or something of the kernel's is in the way, not_found when what was there a
// moment ago is not.
void attach_late(const linux::Pidfd& process, std::span<const LateMount> mounts);

// Takes them away again, whoever uses them.
void detach_late(const linux::Pidfd& process, std::span<const LateMount> mounts);

}  // namespace hearth::runtime
