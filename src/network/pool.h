// Which addresses an engine's sandboxes get, and what its things are called on the host. Two
// engines on one machine share neither.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network/policy.h"

namespace hearth::network {

// What the tag becomes: all names of one engine on the host.
struct Names {
  std::string table;          // "hearth-TAG"
  std::string link_prefix;    // "h3f9a1-"
  std::string gateway_label;  // "lo:h3f9a1", on the gateway's address
};
// Throws Error(invalid) for a tag that is no label of at most 32.
Names names_of(const std::string& tag);

// "h3f9a1-12c": the letter tells a new link from one with the same index that is still dying.
std::string link_name(const Names& names, std::uint32_t index, unsigned generation);
// The index in a name that link_name made.
std::optional<std::uint32_t> find_index(const Names& names, std::string_view link);

// Ranges to try, in order: the tag decides where to begin, so that engines rarely meet. /16 each.
std::vector<Cidr> pool_candidates(std::string_view tag);

// The first address is the gateway's, the sandboxes' follow.
std::uint32_t gateway_of(const Cidr& pool);
std::uint32_t address_of(const Cidr& pool, std::uint32_t index);
// How many sandboxes have room.
std::uint32_t room_in(const Cidr& pool);

}  // namespace hearth::network
