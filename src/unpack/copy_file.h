// The data of one file, copied to another, by the fastest way that the two file systems have:
// shared blocks, a copy inside the kernel, or a copy through memory.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <vector>

#include "unpack/tree_rules.h"

namespace hearth::unpack {

// Remembers what did not work, for the next file. Throws Error.
class FileCopier {
 public:
  explicit FileCopier(Budget& budget);

  // Both from their start. Holes stay holes.
  void copy(int from_fd, int to_fd, const struct stat& status);

 private:
  bool try_share(int from_fd, int to_fd, std::uint64_t size);
  std::uint64_t copy_range(int from_fd, int to_fd, std::int64_t begin, std::int64_t end);
  std::uint64_t copy_in_kernel(int from_fd, int to_fd, std::int64_t begin, std::int64_t end);

  Budget& budget_;
  std::vector<char> buffer_;
  bool can_share_ = true;
  bool can_copy_in_kernel_ = true;
};

}  // namespace hearth::unpack
