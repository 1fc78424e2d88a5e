// JSON of anybody's as JSON in ASCII: what is beyond it becomes \uXXXX.
//
// Clients cut the stream of events where it must not be cut: at U+2028 and its kind, which some
// take for the end of a line, and inside a character that two pieces of the network share.
#pragma once

#include <string>
#include <string_view>

namespace hearth::interpreter {

class AsciiJson {
 public:
  // Appends `piece` to `to`. The beginning of a character at its end waits for the next piece;
  // what is no UTF-8 becomes U+FFFD.
  void append(std::string& to, std::string_view piece);

 private:
  std::string cut_;  // the beginning of a character
};

// As much of `text` as does not end inside a UTF-8 sequence.
std::size_t whole_characters(std::string_view text);

}  // namespace hearth::interpreter
