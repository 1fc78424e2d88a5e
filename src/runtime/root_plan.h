// The file system of a sandbox, as the list of steps that builds it (see init/airlock.h).
//
//   a private tmpfs, which holds everything the sandbox writes and goes with it
//     ├── l0, l1, …   the image's layers, with owners mapped to the sandbox's own ids
//     └── root        overlay over them; /usr is an overlay of its own where the image says so
//           ├── proc  what tells of the host masked, settings read-only
//           ├── sys   read-only
//           └── dev   six harmless devices, own terminals, own shared memory
#pragma once

#include <cstdint>
#include <vector>

#include "init/airlock.h"

namespace hearth::runtime {

struct RootRequest {
  std::vector<int> layer_fds;      // detached mounts, topmost first
  std::vector<int> usr_layer_fds;  // the same for /usr; empty: /usr is in the other layers
  std::uint64_t disk_bytes = 0;    // of the writable layer; 0: as the kernel likes
};

std::vector<init::Step> plan_root(const RootRequest& request);

}  // namespace hearth::runtime
