// Gives the files of a volume to a group, so that all who have it may use them.
#pragma once

#include <sys/types.h>

#include "runtime/spec.h"

namespace hearth::runtime {

// As a kubelet does it for fsGroup: everything below `folder_fd`, itself included, is given to the
// group, which may read and write it (and enter folders); what is made in a folder later is the
// group's, too (set-group-ID). Sandboxes may write to it meanwhile: no link is followed, and no
// other file system entered. What vanishes on the way is passed over. `in_use`: by a sandbox, now.
// Throws Error; exhausted for folders that are too deep.
void regroup(int folder_fd, gid_t group, Regroup how, bool in_use);

}  // namespace hearth::runtime
