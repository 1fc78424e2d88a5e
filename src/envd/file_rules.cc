#include "envd/file_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "base/json_text.h"
#include "base/time_text.h"
#include "http/fields.h"
#include "http/head.h"
#include "http/target.h"

namespace hearth::envd {
namespace {

constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// What is before the first separator, trimmed; moves behind it.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return http::trim(part);
}

// "q=0.5" in thousandths; 1000 for what is none.
int quality_of(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = next_part(parameters, ';');
    if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) continue;
    std::string digits(parameter.substr(2));
    std::erase(digits, '.');
    if (digits.empty() || digits.size() > 4) return 1000;
    digits.append(4 - digits.size(), '0');
    return static_cast<int>(
        std::min<std::uint64_t>(http::parse_number(digits).value_or(1000), 1000));
  }
  return 1000;
}

struct Extension {
  std::string_view ending;
  std::string_view type;
};
constexpr Extension kExtensions[] = {
    {".avif", "image/avif"},
    {".css", "text/css; charset=utf-8"},
    {".gif", "image/gif"},
    {".htm", "text/html; charset=utf-8"},
    {".html", "text/html; charset=utf-8"},
    {".jpeg", "image/jpeg"},
    {".jpg", "image/jpeg"},
    {".js", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".pdf", "application/pdf"},
    {".png", "image/png"},
    {".svg", "image/svg+xml"},
    {".wasm", "application/wasm"},
    {".webp", "image/webp"},
    {".xml", "text/xml; charset=utf-8"},
};

struct Beginning {
  std::string_view bytes;
  std::string_view type;
};
constexpr Beginning kBeginnings[] = {
    {"%PDF-", "application/pdf"},
    {"\x89PNG\r\n\x1a\n", "image/png"},
    {"\xff\xd8\xff", "image/jpeg"},
    {"GIF87a", "image/gif"},
    {"GIF89a", "image/gif"},
    {"\x1f\x8b\x08", "application/x-gzip"},
    {"PK\x03\x04", "application/zip"},
    {"<!DOCTYPE HTML", "text/html; charset=utf-8"},
    {"<!doctype html", "text/html; charset=utf-8"},
    {"<html", "text/html; charset=utf-8"},
    {"<?xml", "text/xml; charset=utf-8"},
};

bool is_binary(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r' && byte != '\f' &&
         byte != 0x1B;
}

// "first-last", "first-", "-last": nothing for what is none, a size of 0 for what is not there.
std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t size) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first = http::trim(text.substr(0, dash));
  const std::string_view last = http::trim(text.substr(dash + 1));
  const auto end = http::parse_number(last);
  if ((!last.empty() && !end) || (first.empty() && last.empty())) return std::nullopt;
  if (first.empty()) {
    const std::uint64_t length = std::min(*end, size);
    return ByteRange{.begin = size - length, .size = length};
  }
  const auto begin = http::parse_number(first);
  if (!begin || (end && *end < *begin)) return std::nullopt;
  if (*begin >= size) return ByteRange{};
  const std::uint64_t behind = end ? std::min(*end, size - 1) + 1 : size;
  return ByteRange{.begin = *begin, .size = behind - *begin};
}

// What a client says about encodings, in thousandths.
struct Qualities {
  std::optional<int> gzip;
  std::optional<int> identity;
  std::optional<int> any;
  bool identity_first = false;

  // Unless it is ruled out, it is always possible.
  bool takes_identity() const { return identity ? *identity > 0 : any.value_or(1) > 0; }
};

Qualities read_qualities(const http::Headers& headers) {
  Qualities said;
  std::string_view rest = headers.value("Accept-Encoding");
  while (!rest.empty()) {
    std::string_view item = next_part(rest, ',');
    const std::string_view name = next_part(item, ';');
    const int quality = quality_of(item);
    if (http::equal_ignoring_case(name, "gzip")) said.gzip = quality;
    if (http::equal_ignoring_case(name, "identity")) {
      said.identity = quality;
      said.identity_first = !said.gzip;
    }
    if (name == "*") said.any = quality;
  }
  return said;
}

}  // namespace

bool takes_identity(const http::Headers& headers) {
  return read_qualities(headers).takes_identity();
}

std::optional<Encoding> choose_encoding(const http::Headers& headers) {
  if (http::trim(headers.value("Accept-Encoding")).empty()) return Encoding::identity;
  const Qualities said = read_qualities(headers);
  const int for_gzip = said.gzip.value_or(said.any.value_or(0));
  if (for_gzip == 0)
    return said.takes_identity() ? std::optional(Encoding::identity) : std::nullopt;
  const int for_identity = said.identity.value_or(0);
  if (for_identity > for_gzip || (for_identity == for_gzip && said.identity_first))
    return Encoding::identity;
  return Encoding::gzip;
}

std::string format_http_date(Time time) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays.at(static_cast<std::size_t>(parts.tm_wday)), parts.tm_mday,
                     kMonths.at(static_cast<std::size_t>(parts.tm_mon)), parts.tm_year + 1900,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::optional<Time> parse_http_date(std::string_view text) {
  // "Fri, 02 Jan 2026 03:04:05 GMT", as every client of today writes it.
  constexpr std::size_t kLength = 29;
  if (text.size() != kLength || !text.ends_with(" GMT")) return std::nullopt;
  const auto month = std::ranges::find(kMonths, text.substr(8, 3));
  if (month == kMonths.end()) return std::nullopt;
  return parse_rfc3339(fmt::format("{}-{:02}-{}T{}Z", text.substr(12, 4),
                                   month - kMonths.begin() + 1, text.substr(5, 2),
                                   text.substr(17, 8)));
}

bool has_conditions(const http::Headers& headers) {
  return std::ranges::any_of(std::array{"Range", "If-Range", "If-Match", "If-None-Match",
                                        "If-Modified-Since", "If-Unmodified-Since"},
                             [&](const char* name) { return headers.find(name) != nullptr; });
}

RangeAnswer evaluate_conditions(const http::Headers& headers, std::uint64_t size, Time modified) {
  using Kind = RangeAnswer::Kind;
  const auto changed_since = [&](const char* name) -> std::optional<bool> {
    const auto since = parse_http_date(headers.value(name));
    if (!since) return std::nullopt;
    return std::chrono::floor<std::chrono::seconds>(modified) > *since;
  };
  if (const std::string* match = headers.find("If-Match")) {
    if (http::trim(*match) != "*") return {.kind = Kind::precondition_failed, .range = {}};
  } else if (changed_since("If-Unmodified-Since").value_or(false)) {
    return {.kind = Kind::precondition_failed, .range = {}};
  }
  if (const std::string* none = headers.find("If-None-Match")) {
    if (http::trim(*none) == "*") return {.kind = Kind::not_modified, .range = {}};
  } else if (!changed_since("If-Modified-Since").value_or(true)) {
    return {.kind = Kind::not_modified, .range = {}};
  }
  const std::string_view wanted = headers.value("Range");
  constexpr std::string_view kUnit = "bytes=";
  if (!wanted.starts_with(kUnit) || wanted.find(',') != std::string_view::npos) return {};
  if (headers.find("If-Range") != nullptr && changed_since("If-Range").value_or(true)) return {};
  const auto range = parse_range(wanted.substr(kUnit.size()), size);
  if (!range || range->size == 0) return {.kind = Kind::unsatisfiable, .range = {}};
  return {.kind = Kind::part, .range = *range};
}

std::string content_type_of(std::string_view name, std::string_view first_bytes) {
  const std::size_t dot = name.rfind('.');
  for (const Extension& each : kExtensions) {
    if (dot != std::string_view::npos && http::equal_ignoring_case(name.substr(dot), each.ending))
      return std::string(each.type);
  }
  for (const Beginning& each : kBeginnings) {
    if (first_bytes.starts_with(each.bytes)) return std::string(each.type);
  }
  const bool binary = std::ranges::any_of(first_bytes.substr(0, 512), is_binary);
  return binary ? "application/octet-stream" : "text/plain; charset=utf-8";
}

std::string content_disposition(std::string_view name) {
  const auto is_token = [](char c) {
    return c > ' ' && c < 0x7F &&
           std::string_view("()<>@,;:\\\"/[]?=").find(c) == std::string_view::npos;
  };
  const auto is_printable = [](char c) { return c >= ' ' && c < 0x7F; };
  if (!name.empty() && std::ranges::all_of(name, is_token))
    return fmt::format("inline; filename={}", name);
  if (!std::ranges::all_of(name, is_printable))
    return fmt::format("inline; filename*=utf-8''{}", http::percent_encode(name));
  std::string quoted;
  for (const char c : name) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return fmt::format("inline; filename=\"{}\"", quoted);
}

}  // namespace hearth::envd
