// Base64 (RFC 4648 section 4), for "user:password".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::registry {

std::string base64_encode(std::string_view bytes);

// With or without padding at the end; nothing for text that is none.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace hearth::registry
