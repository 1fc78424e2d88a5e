// What header fields are made of (RFC 9110, section 5.6).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace hearth::http {

constexpr std::array<bool, 256> make_token_table() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}
inline constexpr std::array<bool, 256> kTokenCharacters = make_token_table();

// The name of a field, a method.
inline bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return kTokenCharacters[static_cast<unsigned char>(c)];
  });
}

inline bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text,
                             [](unsigned char c) { return (c >= 0x20 && c != 0x7F) || c == '\t'; });
}

// Without the blanks around it.
inline std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace hearth::http
