// File systems of a fixed size, each in a file on the engine's own disk: whatever is written to
// one, it takes up no more than that.
//
// It is an ext4 in a sparse file, mounted through a loop device. Sandboxes are given the mount and
// never the file: what the kernel reads as a file system is what the kernel wrote.
//
// Everything here blocks (a new disk takes some 40 ms) and throws Error: invalid for a size that
// cannot be, unavailable for what this machine lacks, exhausted for a full disk.
#pragma once

#include <cstdint>
#include <string>

#include "linux/fd.h"

namespace hearth::runtime {

// Throws Error(invalid).
void check_disk_size(std::uint64_t bytes);

// A disk of which nobody knows but who has its mount, which is detached and returned. Its file has
// lost its name in `folder_fd` already: with the last use it is gone, whichever process dies when.
// What is on it does not outlive the machine's next start, and is not kept safe from it.
struct PrivateDisk {
  linux::Fd mount;
  std::uint64_t device = 0;  // its number, for as long as it is in use
};
PrivateDisk make_private_disk(int folder_fd, std::uint64_t bytes);

// Takes a private disk away while it is still in use: what waits to be written never is. Only an
// attempt: it saves time and nothing else. `folder_fd`, which a guest may have handed us, is left
// alone unless it is on `device`.
void give_up_disk(int folder_fd, std::uint64_t device) noexcept;

// A disk that lasts: a new file, formatted.
void make_disk_file(int folder_fd, const std::string& file, std::uint64_t bytes);

// Mounts one, detached. `label` is its own for ever: a file system that is in use already is
// found again by it, because a second one in the same file would destroy both.
linux::Fd mount_disk_file(int folder_fd, const std::string& file, const std::string& label);

}  // namespace hearth::runtime
