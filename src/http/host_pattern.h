// Hosts as rules name them: "api.example.com", "*.example.com" for all below it (and not itself),
// "*" for all. Pure.
#pragma once

#include <string_view>

namespace hearth::http {

// Lower case, without a dot at the end. What looks like an address is none: its last part is a
// number.
bool is_host_pattern(std::string_view text);

// `host` in lower case, without a dot at the end.
bool matches_host(std::string_view pattern, std::string_view host);

}  // namespace hearth::http
