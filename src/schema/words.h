// Patterns, formats and characters of strings. Inside this room only.
#pragma once

#include <string>
#include <string_view>

namespace hearth::schema {

// "500m", "1Gi", "1e3": as kube writes it into schemas.
inline constexpr std::string_view kQuantityPattern =
    R"(^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$)";

// Whether a pattern, in RE2's syntax, is found in a text. Linear in both. Patterns are compiled
// once. Throws Error(invalid) for a pattern that is none.
bool matches(std::string_view pattern, std::string_view text);
// Throws Error(invalid) for a pattern that is none.
void check_pattern(std::string_view pattern);

// Whether a text is of a format: date-time, byte, uuid, ipv4, ... Any text is of an unknown one.
bool is_of_format(std::string_view format, std::string_view text);

// How many code points a text in UTF-8 has.
std::size_t count_characters(std::string_view text);

}  // namespace hearth::schema
