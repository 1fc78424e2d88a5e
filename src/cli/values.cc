#include "cli/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/time_text.h"

namespace hearth::cli {
namespace {

struct Number {
  double value = 0;
  std::string_view rest;  // what follows it
};

// Digits with at most one point; no sign, no exponent.
std::optional<Number> read_number(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view digits = text.substr(0, end);
  if (digits.empty() || !std::ranges::any_of(digits, [](char c) { return c != '.'; }))
    return std::nullopt;
  Number number{.rest = text.substr(end)};
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(),
                                             number.value, std::chars_format::fixed);
  if (error != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// The power of 1024 that a unit such as "m", "Mi", "MB" or "MiB" stands for.
std::optional<int> unit_power(std::string_view unit) {
  std::string lower(unit);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower.empty() || lower == "b") return 0;
  constexpr std::string_view kUnits = "kmgt";
  const std::size_t found = kUnits.find(lower.front());
  const std::string_view tail = std::string_view(lower).substr(1);
  if (found == std::string_view::npos ||
      (!tail.empty() && tail != "b" && tail != "i" && tail != "ib")) {
    return std::nullopt;
  }
  return static_cast<int>(found) + 1;
}

// How many letters must be inserted, removed or replaced to get from one word to the other
// (Levenshtein), one row of the table at a time.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::uint64_t parse_size(std::string_view flag, std::string_view text) {
  const auto number = read_number(text);
  const auto power = number ? unit_power(number->rest) : std::nullopt;
  if (!power)
    fail(Code::invalid, "{}: '{}' is no size; write 512m, 1.5g or a number of bytes", flag, text);
  const double bytes = number->value * std::pow(1024.0, *power);
  // Above this a double no longer holds every byte, and no machine has as much.
  constexpr double kMost = 1ull << 53;
  if (bytes > kMost) fail(Code::invalid, "{}: '{}' is more than any machine has", flag, text);
  return static_cast<std::uint64_t>(bytes);
}

std::uint32_t parse_cpus(std::string_view flag, std::string_view text) {
  const auto number = read_number(text);
  if (!number || !number->rest.empty()) {
    fail(Code::invalid, "{}: '{}' is no number of processors; write 2, 1.5 or 0.25", flag, text);
  }
  constexpr double kMost = 100'000;
  if (number->value > kMost)
    fail(Code::invalid, "{}: '{}' is more than any machine has", flag, text);
  const auto millis = static_cast<std::uint32_t>(std::lround(number->value * 1000));
  // The kernel's own least is 1 ms in every 100 ms.
  constexpr std::uint32_t kLeast = 10;
  if (millis < kLeast && number->value > 0)
    fail(Code::invalid, "{}: '{}' is too little; the least is 0.01", flag, text);
  return millis;
}

std::uint32_t parse_count(std::string_view flag, std::string_view text, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) {
    fail(Code::invalid, "{}: '{}' is not a whole number from 0 to {}", flag, text, most);
  }
  return value;
}

Duration parse_timeout(std::string_view flag, std::string_view text) {
  const bool bare =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const auto time = parse_duration(bare ? std::string(text) + 's' : std::string(text));
  if (!time || *time <= Duration::zero()) {
    fail(Code::invalid, "{}: '{}' is no time; write 30s, 2m30s or 500ms", flag, text);
  }
  return *time;
}

Time parse_moment(std::string_view flag, std::string_view text) {
  if (const auto moment = parse_rfc3339(text)) return *moment;
  const auto age = parse_duration(text);
  if (!age)
    fail(Code::invalid, "{}: '{}' is no time; write 10m, 1h30m or 2026-01-02T03:04:05Z", flag,
         text);
  const Time now = std::chrono::system_clock::now();
  return *age < now.time_since_epoch() ? now - *age : Time{};
}

void check_environment(std::string_view flag, std::string_view entry) {
  const std::size_t equals = entry.find('=');
  if (equals != 0 && equals != std::string_view::npos) return;
  // What was meant as a value may be a secret: it is not repeated.
  if (equals == 0)
    fail(Code::invalid, "{}: an entry has no name before its '='; write NAME=value", flag);
  fail(Code::invalid, "{}: '{}' has no value; write {}=value", flag, entry,
       entry.empty() ? "NAME" : entry);
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value >= 100 || value == std::floor(value);
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, kUnits[unit]);
}

std::string shell_quote(std::string_view text) {
  const auto safe = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-./:@%+,=").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, safe)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted += R"('\'')";
    else
      quoted += c;
  }
  return quoted + '\'';
}

std::string_view find_nearest(std::string_view text, std::span<const std::string_view> candidates) {
  std::string_view nearest;
  // A third of the letters wrong is a slip, more is another word.
  std::size_t least = std::max<std::size_t>(1, text.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace hearth::cli
