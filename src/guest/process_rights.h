// What every command of a sandbox is given, or denied, beside what its user says.
//
// Plain data: it crosses process boundaries.
#pragma once

#include <cstdint>
#include <vector>

#include "base/wire.h"

namespace hearth::guest {

// Which groups of the sandbox's own /etc/group a command has. Crosses process boundaries as a
// number: do not renumber.
enum class ImageGroups : std::uint8_t {
  by_user = 1,  // its user's, unless the user was named with a group
  always = 2,   // its user's, however it was named
  never = 3,    // none
};

struct ProcessRights {
  std::vector<std::uint32_t> groups;  // that commands have besides
  ImageGroups image_groups = ImageGroups::by_user;
  std::uint64_t dropped_capabilities = 0;  // as a mask

  bool operator==(const ProcessRights&) const = default;
};

void put(wire::Writer& out, const ProcessRights& rights);
ProcessRights read_process_rights(wire::Reader& in);

}  // namespace hearth::guest
