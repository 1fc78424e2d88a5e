// A folder with all that is in it, copied into another: what a sandbox wrote becomes a layer.
//
// Keeps owners, modes, times, hard links, holes, and the extended attributes of is_kept_xattr().
// Leaves out sockets, device nodes, and what is mounted below the folder. Follows no links. The
// source should stand still: what changes meanwhile is copied as it is met, or fails. Throws Error:
// invalid (too deep), exhausted (limits, disk full), forbidden, internal.
#pragma once

#include <cstdint>

namespace hearth::unpack {

struct CopyRequest {
  int source_fd = -1;
  int root_fd = -1;  // an empty folder
  // The source is the upper layer of an overlay: whiteouts and opaque folders are kept.
  bool overlay_marks = false;
  std::uint64_t max_bytes = 0;
  std::uint64_t max_entries = 0;
};

// Returns what the copy takes up.
std::uint64_t copy_tree(const CopyRequest& request);

}  // namespace hearth::unpack
