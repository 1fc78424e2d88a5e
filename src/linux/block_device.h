// Which disk files are on, as those who limit input and output want it named.
#pragma once

#include <sys/types.h>

#include <string>

namespace hearth::linux {

// "8:0": the disk below the file system that `fd` is on. A partition's is the whole disk, because
// only that has a queue, which is what the kernel limits (block/blk-cgroup.c). Throws
// Error(unavailable) where there is no one disk: tmpfs, overlayfs, btrfs, network file systems.
std::string find_disk(int fd);

// The same by number; `sys_fd` is /sys/dev/block.
std::string find_disk(int sys_fd, dev_t device);

}  // namespace hearth::linux
