// JSON strings, for rooms that write a little JSON and never read any.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// `text` with its quotes, escaped. Bytes that are not UTF-8 become U+FFFD, so that the result is
// always valid JSON.
std::string json_quote(std::string_view text);

// `text` with U+FFFD for every byte that is not UTF-8.
std::string to_utf8(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace hearth
