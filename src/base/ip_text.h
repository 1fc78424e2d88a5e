// Addresses of the Internet Protocol, as people write them.
#pragma once

#include <netinet/in.h>

#include <optional>
#include <string_view>

namespace hearth {

// The whole text or nothing. inet_pton() alone stops at a NUL, whatever comes behind it.
std::optional<in_addr> parse_ipv4(std::string_view text);
std::optional<in6_addr> parse_ipv6(std::string_view text);

}  // namespace hearth
