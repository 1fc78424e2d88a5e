// Base64 (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// With the alphabet of section 4, padded.
std::string base64_encode(std::string_view bytes);
// The same, behind what is in `text` already.
void append_base64(std::string& text, std::string_view bytes);

// Of either alphabet, with or without padding at the end; nothing for text that is none.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace hearth
