// What is common to all who take requests in, however they come.
#pragma once

#include <optional>

#include "net/words.h"

namespace hearth::net {

// Fills in path, query and host. Returns what is wrong with its target: 400, or 501 for a CONNECT.
std::optional<Problem> accept_target(Request& request);

// What is longer than a route takes.
Problem too_long(std::uint64_t limit);

}  // namespace hearth::net
