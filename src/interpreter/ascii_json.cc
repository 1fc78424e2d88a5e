#include "interpreter/ascii_json.h"

#include <iterator>

#include <fmt/format.h>

#include "base/json_text.h"

namespace hearth::interpreter {
namespace {

// Without a way out in the middle: so it takes many bytes at a time.
bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

// Takes the well-formed character at the front of `text` off it.
char32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  char32_t character = length == 1 ? first : first & (0x7FU >> length);
  for (const char c : text.substr(1, length - 1))
    character = character << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  text.remove_prefix(length);
  return character;
}

void append_escaped(std::string& to, char32_t character) {
  const auto put = [&](std::uint32_t unit) {
    fmt::format_to(std::back_inserter(to), "\\u{:04x}", unit);
  };
  if (character < 0x10000) return put(character);
  character -= 0x10000;
  put(0xD800 + (character >> 10));
  put(0xDC00 + (character & 0x3FF));
}

void append_as_ascii(std::string& to, std::string_view text) {
  if (is_ascii(text)) {
    to += text;
    return;
  }
  const std::string clean = to_utf8(text);
  for (std::string_view rest = clean; !rest.empty();) {
    if (static_cast<unsigned char>(rest.front()) < 0x80) {
      to += rest.front();
      rest.remove_prefix(1);
    } else {
      append_escaped(to, take_character(rest));
    }
  }
}

}  // namespace

void AsciiJson::append(std::string& to, std::string_view piece) {
  std::string joined;
  if (!cut_.empty()) {
    joined = std::move(cut_);
    joined += piece;
    piece = joined;
  }
  const std::size_t whole = whole_characters(piece);
  append_as_ascii(to, piece.substr(0, whole));
  cut_ = piece.substr(whole);
}

std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // the middle of one
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace hearth::interpreter
