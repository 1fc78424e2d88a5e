// What HTTP says about giving out files (RFC 9110). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/http.h"

namespace hearth::envd {

enum class Encoding { identity, gzip };
// The client's favourite of what we have; nothing if it takes neither.
std::optional<Encoding> choose_encoding(const http::Headers& headers);
// Whether it takes bytes as they are, favourite or not.
bool takes_identity(const http::Headers& headers);

// "Fri, 02 Jan 2026 03:04:05 GMT"
std::string format_http_date(Time time);
std::optional<Time> parse_http_date(std::string_view text);

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};
struct RangeAnswer {
  enum class Kind { whole, part, not_modified, precondition_failed, unsatisfiable };
  Kind kind = Kind::whole;
  ByteRange range;  // of a part
};
// What a GET of a file of this size and age is answered with. Files have no entity tags. Several
// ranges at once are answered with the whole, which is allowed.
RangeAnswer evaluate_conditions(const http::Headers& headers, std::uint64_t size, Time modified);

// Whether the request is about parts or versions, which gzip would confuse.
bool has_conditions(const http::Headers& headers);

// By the name's extension, or by its first bytes.
std::string content_type_of(std::string_view name, std::string_view first_bytes);

// "inline; filename=a.txt", quoted or encoded as far as necessary.
std::string content_disposition(std::string_view name);

}  // namespace hearth::envd
