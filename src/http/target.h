// Request targets as strangers write them (RFC 9112 section 3.2, RFC 3986).
//
// Nothing is cleaned up silently. Percent-encoding is undone exactly once, by whoever needs the
// decoded text; what does not decode, decodes to a NUL byte, or is "." or ".." in any spelling is
// refused, because the next reader of the path could understand it differently.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::http {

// Borrows the text that it was parsed from.
struct Target {
  std::string_view authority;  // of an absolute target; empty otherwise
  std::string_view path;       // still encoded; "*" for the whole server
  std::string_view query;      // still encoded, without '?'
};

// Origin form ("/path?query"), absolute form ("http://host/path?query") and "*". Nothing for the
// authority form (only CONNECT has it) and for bytes that may not stand in a target.
std::optional<Target> parse_target(std::string_view text);

// Nothing for "%", "%4", "%zz", "%00" and a NUL as it is.
std::optional<std::string> percent_decode(std::string_view text);

// One segment of a path, or several with slashes between: decoded, and nothing also where a
// component is "." or "..". A decoded segment may contain '/', where the client wrote %2F.
std::optional<std::string> decode_path_segment(std::string_view text);

// Text for one path segment: everything but unreserved characters is encoded.
std::string percent_encode(std::string_view text);

// "a=1&b=x+y" in order; '+' is a space. Throws Error(invalid).
std::vector<std::pair<std::string, std::string>> query_parameters(std::string_view query);

// The first parameter of that name. Throws Error(invalid) for a query that does not decode.
std::optional<std::string> find_query_parameter(std::string_view query, std::string_view name);

}  // namespace hearth::http
