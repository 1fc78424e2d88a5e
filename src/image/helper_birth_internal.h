// The first moments of a helper: from a fresh clone in new namespaces to its program. Private to
// unpack_helper.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::image {

inline constexpr std::size_t kHelperFds = 6;

// Must outlive the clone's life in our memory.
struct HelperBirth {
  int fds[kHelperFds] = {};  // become 0, 1, 2, ...; everything else is closed
  int boot_fd = -1;          // where the byte to begin comes from and a failure goes
  int parent_fd = -1;        // the other end: as long as the child holds one too, it never closes
  int program_fd = -1;
};

// What goes over boot_fd instead of a report. No message of a channel is that short.
struct BirthFailure {
  std::int32_t error = 0;
};

// For linux::CloneRequest; `birth` is a HelperBirth*. Waits for a byte, becomes root of its user
// namespace, executes the program. Never returns.
void enter_helper(void* birth);

}  // namespace hearth::image
