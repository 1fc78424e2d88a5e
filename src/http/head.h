// The head of a message: from its first byte to the empty line.
//
// Stricter than HTTP allows where two readers could disagree about where a message ends (request
// smuggling): bare CR or LF, control characters, folded lines, a second Content-Length, both
// Content-Length and Transfer-Encoding, a transfer encoding other than exactly "chunked".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"
#include "http/limits.h"

namespace hearth::http {

enum class BodyKind {
  none,       // the message ends with its head
  length,     // as many bytes as Content-Length says
  chunked,    // RFC 9112 section 7.1
  until_end,  // all that comes before the connection ends; responses only
};

struct Framing {
  BodyKind kind = BodyKind::none;
  std::uint64_t length = 0;  // of BodyKind::length
};

struct Head {
  std::string method;   // of a request
  std::string target;   // of a request
  unsigned status = 0;  // of a response
  int minor = 1;        // HTTP/1.minor
  Headers headers;
  Framing framing;

  bool wants_keep_alive() const;
};

// All of `text` as digits of `base` (10 or 16), no sign, no space. Nothing for what is none, or
// more than 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text, int base = 10);

// Finds the end of a head in bytes that arrive piece by piece; looks at each byte once.
class HeadScanner {
 public:
  enum class Found {
    more,      // no end yet
    complete,  // size() bytes are the head
    bad,       // not HTTP; no need to read on
  };

  // `bytes` are all so far: those of the last call and perhaps more.
  Found scan(std::string_view bytes);
  std::size_t size() const { return at_; }

 private:
  std::size_t at_ = 0;
  std::size_t line_length_ = 0;
};

// `bytes` is what a HeadScanner found complete. Returns a problem, or fills `head`.
std::optional<Problem> parse_request_head(std::string_view bytes, const Limits& limits, Head& head);
// `for_head`: the request was HEAD, whose responses have no body whatever they say.
std::optional<Problem> parse_response_head(std::string_view bytes, const Limits& limits,
                                           bool for_head, Head& head);

}  // namespace hearth::http
