#include "schema/words.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include <re2/re2.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/ip_text.h"
#include "base/time_text.h"

namespace hearth::schema {
namespace {

// More than all CRDs of a server have; beyond it the memory starts anew.
constexpr std::size_t kMostPatterns = 4096;

std::shared_ptr<const re2::RE2> compile(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto compiled =
      std::make_shared<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!compiled->ok())
    fail(Code::invalid, "pattern '{}' is not a regular expression: {}", pattern, compiled->error());
  return compiled;
}

std::shared_ptr<const re2::RE2> compiled_pattern(std::string_view pattern) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const re2::RE2>, std::less<>> known;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(pattern); found != known.end()) return found->second;
  }
  auto compiled = compile(pattern);
  const std::lock_guard lock(mutex);
  if (known.size() >= kMostPatterns) known.clear();
  known.emplace(pattern, compiled);
  return compiled;
}

// "2026-02-28"; days that do not exist are none.
bool is_date(std::string_view text) {
  if (!matches(R"(^\d{4}-\d\d-\d\d$)", text)) return false;
  const auto digits = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  const std::chrono::year_month_day day(std::chrono::year(digits(0) * 100 + digits(2)),
                                        std::chrono::month(static_cast<unsigned>(digits(5))),
                                        std::chrono::day(static_cast<unsigned>(digits(8))));
  return day.ok();
}

// RFC 3339, of any year: people write 9999 for never.
bool is_date_time(std::string_view text) {
  constexpr std::string_view kClock =
      R"(^[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$)";
  constexpr std::size_t kDate = 10;
  return text.size() > kDate && is_date(text.substr(0, kDate)) &&
         matches(kClock, text.substr(kDate));
}

bool is_cidr(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view address = text.substr(0, slash);
  const std::string_view bits = text.substr(slash + 1);
  if (bits.empty() || bits.size() > 3 || (bits.size() > 1 && bits.front() == '0')) return false;
  int number = 0;
  for (const char c : bits) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
  }
  return (parse_ipv4(address) && number <= 32) || (parse_ipv6(address) && number <= 128);
}

bool is_uuid(std::string_view text) {
  return matches("^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$", text);
}

bool is_host_name(std::string_view text) {
  return text.size() <= 255 && matches(R"(^([a-zA-Z0-9_]([-a-zA-Z0-9_]{0,61}[a-zA-Z0-9_])?)"
                                       R"((\.[a-zA-Z0-9_]([-a-zA-Z0-9_]{0,61}[a-zA-Z0-9_])?)*)$)",
                                       text);
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  const auto compiled = compiled_pattern(pattern);
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled);
}

void check_pattern(std::string_view pattern) {
  compiled_pattern(pattern);
}

bool is_of_format(std::string_view format, std::string_view text) {
  if (format == "date-time") return is_date_time(text);
  if (format == "date") return is_date(text);
  if (format == "byte") return base64_decode(text).has_value();
  if (format == "duration") {
    if (text.starts_with('-')) text.remove_prefix(1);
    return parse_duration(text).has_value();
  }
  if (format == "ipv4") return parse_ipv4(text).has_value();
  if (format == "ipv6") return parse_ipv6(text).has_value();
  if (format == "cidr") return is_cidr(text);
  if (format == "uuid" || format == "uuid3" || format == "uuid4" || format == "uuid5")
    return is_uuid(text);
  if (format == "hostname") return is_host_name(text);
  if (format == "mac") return matches("^(?i)[0-9a-f]{2}([:-][0-9a-f]{2}){5}$", text);
  if (format == "email") return matches(R"(^[^@\s]+@[^@\s]+$)", text);
  if (format == "uri") return matches(R"(^([a-zA-Z][a-zA-Z0-9+.-]*:|/)\S*$)", text);
  return true;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace hearth::schema
