#include "http/target.h"

#include <algorithm>

#include "base/error.h"
#include "http/http.h"

namespace hearth::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

bool has_dot_segment(std::string_view path) {
  while (true) {
    const auto slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    if (segment == "." || segment == "..") return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

// Strips "http://host" or "https://host" into target.authority. False for what is neither that nor
// a path.
bool take_authority(std::string_view& rest, Target& target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(rest.substr(0, scheme.size()), scheme)) continue;
    rest.remove_prefix(scheme.size());
    target.authority = rest.substr(0, rest.find_first_of("/?"));
    rest.remove_prefix(target.authority.size());
    // A user name in front of the host is how links lie about where they lead (RFC 9110 4.2.4).
    return !target.authority.empty() &&
           target.authority.find_first_of("@\\,") == std::string_view::npos;
  }
  return rest.starts_with('/');
}

std::string decode_query_text(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  auto decoded = percent_decode(spaced);
  if (!decoded) fail(Code::invalid, "query has a bad percent-encoding: '{}'", text);
  return *std::move(decoded);
}

}  // namespace

std::optional<Target> parse_target(std::string_view text) {
  const bool printable =
      std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c != 0x7F && c != '#'; });
  if (text.empty() || !printable) return std::nullopt;
  Target target;
  if (text == "*") {
    target.path = text;
    return target;
  }
  std::string_view rest = text;
  if (!take_authority(rest, target)) return std::nullopt;
  const auto question = std::min(rest.find('?'), rest.size());
  target.path = rest.substr(0, question);
  if (target.path.empty()) target.path = "/";
  target.query = rest.substr(std::min(question + 1, rest.size()));
  return target;
}

std::optional<std::string> percent_decode(std::string_view text) {
  // Nearly all of it means itself.
  if (text.find('%') == text.npos && text.find('\0') == text.npos) return std::string(text);
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\0') return std::nullopt;
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high | low) == 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::optional<std::string> decode_path_segment(std::string_view text) {
  auto decoded = percent_decode(text);
  if (decoded && has_dot_segment(*decoded)) return std::nullopt;
  return decoded;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c)) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15];
  }
  return encoded;
}

std::vector<std::pair<std::string, std::string>> query_parameters(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const auto equals = std::min(pair.find('='), pair.size());
    parameters.emplace_back(decode_query_text(pair.substr(0, equals)),
                            decode_query_text(pair.substr(std::min(equals + 1, pair.size()))));
  }
  return parameters;
}

std::optional<std::string> find_query_parameter(std::string_view query, std::string_view name) {
  for (auto& [key, value] : query_parameters(query)) {
    if (key == name) return std::move(value);
  }
  return std::nullopt;
}

}  // namespace hearth::http
