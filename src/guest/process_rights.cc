#include "guest/process_rights.h"

#include "base/error.h"

namespace hearth::guest {
namespace {

// As many as the kernel takes: NGROUPS_MAX.
constexpr std::uint32_t kMostGroups = 65536;

ImageGroups read_image_groups(wire::Reader& in) {
  const std::uint8_t choice = in.u8();
  if (choice < static_cast<std::uint8_t>(ImageGroups::by_user) ||
      choice > static_cast<std::uint8_t>(ImageGroups::never))
    fail(Code::invalid, "there is no choice {} of groups", choice);
  return static_cast<ImageGroups>(choice);
}

}  // namespace

void put(wire::Writer& out, const ProcessRights& rights) {
  out.u32(static_cast<std::uint32_t>(rights.groups.size()));
  for (const std::uint32_t group : rights.groups) out.u32(group);
  out.u8(static_cast<std::uint8_t>(rights.image_groups)).u64(rights.dropped_capabilities);
}

ProcessRights read_process_rights(wire::Reader& in) {
  ProcessRights rights;
  const std::uint32_t count = in.u32();
  if (count > kMostGroups) fail(Code::invalid, "{} groups; at most {}", count, kMostGroups);
  for (std::uint32_t left = count; left > 0; --left) rights.groups.push_back(in.u32());
  rights.image_groups = read_image_groups(in);
  rights.dropped_capabilities = in.u64();
  return rights;
}

}  // namespace hearth::guest
