// Folders of files that come with a sandbox's order, in memory: secrets, configuration.
//
// Plain ones hold their files. One that changes is laid out as kubelets do it, so that whoever
// reads sees all of the old files or all of the new:
//   ..HASH/a/b          the files; HASH is of what they are
//   ..data -> ..HASH    which of them count, replaced in one step
//   a -> ..data/a       what people see
//
// A sandbox has them mounted read-only: nothing in here is ever its doing. Everything throws Error.
#pragma once

#include <string>

#include "linux/namespaces.h"
#include "runtime/spec.h"

namespace hearth::runtime {

// Makes the folder `name` below `folder_fd`, for a tree (MountKind) of a sandbox with these ids.
void make_file_tree(int folder_fd, const std::string& name, const MountSpec& tree,
                    const linux::IdRange& ids);

// Of one that changes: puts other files in the place of those that are there. The same ones again
// change nothing.
void replace_file_tree(int folder_fd, const std::string& name, const MountSpec& tree,
                       const linux::IdRange& ids);

}  // namespace hearth::runtime
