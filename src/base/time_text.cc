#include "base/time_text.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace hearth {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Reads exactly `count` digits off the front of `text`.
std::optional<int> take_number(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

// Over `count` characters from `at` on. Every object that is written has a few times in it: fmt
// takes ten times as long.
void put_number(std::string& text, std::size_t at, std::size_t count, std::int64_t value) {
  for (std::size_t i = count; i > 0; --i, value /= 10)
    text[at + i - 1] = static_cast<char>('0' + value % 10);
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Duration> take_fraction(std::string_view& text) {
  Duration::rep nanoseconds = 0;
  int digits = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (++digits > 9) return std::nullopt;
    nanoseconds = nanoseconds * 10 + (text.front() - '0');
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  for (; digits < 9; ++digits) nanoseconds *= 10;
  return Duration(nanoseconds);
}

// "Z", or "+hh:mm" east of Greenwich.
std::optional<minutes> take_offset(std::string_view& text) {
  if (take(text, "Zz")) return minutes(0);
  if (text.empty()) return std::nullopt;
  const int sign = text.front() == '-' ? -1 : 1;
  if (!take(text, "+-")) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || !take(text, ":")) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
  return sign * (hours(*hour) + minutes(*minute));
}

}  // namespace

std::string format_rfc3339(Time time, int fraction_digits) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::string text = "0000-00-00T00:00:00";
  put_number(text, 0, 4, static_cast<int>(date.year()));
  put_number(text, 5, 2, static_cast<unsigned>(date.month()));
  put_number(text, 8, 2, static_cast<unsigned>(date.day()));
  put_number(text, 11, 2, clock.hours().count());
  put_number(text, 14, 2, clock.minutes().count());
  put_number(text, 17, 2, clock.seconds().count());
  if (fraction_digits > 0) {
    text += ".000000000";
    put_number(text, 20, 9, clock.subseconds().count());
    text.resize(20 + static_cast<std::size_t>(fraction_digits));
  }
  text += 'Z';
  return text;
}

std::optional<Time> parse_rfc3339(std::string_view text) {
  const auto year = take_number(text, 4);
  if (!year || !take(text, "-")) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, "-")) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day || !take(text, "Tt ")) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || !take(text, ":")) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || !take(text, ":")) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second) return std::nullopt;

  Duration fraction{};
  if (take(text, ".")) {
    const auto taken = take_fraction(text);
    if (!taken) return std::nullopt;
    fraction = *taken;
  }
  const auto offset = take_offset(text);
  if (!offset || !text.empty()) return std::nullopt;

  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  // A leap second (60) is accepted and counts as the next second, as POSIX time has none.
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  // What 64 bits of nanoseconds hold: 1678 to 2261.
  if (*year < 1678 || *year > 2261) return std::nullopt;
  return Time(std::chrono::sys_days(date)) + hours(*hour) + minutes(*minute) + seconds(*second) +
         fraction - *offset;
}

std::string format_age(Duration age) {
  const auto total = std::max<long long>(0, std::chrono::floor<seconds>(age).count());
  const long long day = total / 86400;
  const long long hour = total / 3600 % 24;
  const long long minute = total / 60 % 60;
  const long long second = total % 60;
  const auto two = [](long long large, char large_unit, long long small, char small_unit) {
    return small == 0 ? fmt::format("{}{}", large, large_unit)
                      : fmt::format("{}{}{}{}", large, large_unit, small, small_unit);
  };
  if (day > 0) return two(day, 'd', hour, 'h');
  if (hour > 0) return two(hour, 'h', minute, 'm');
  if (minute > 0) return two(minute, 'm', second, 's');
  return fmt::format("{}s", second);
}

std::optional<Duration> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double nanoseconds;
  };
  // Longer names first: "ms" is not "m".
  static constexpr std::array<Unit, 6> kUnits = {
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};

  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    double value = 0;
    double scale = 1;
    bool digits = false;
    bool point = false;
    while (!text.empty() && (text.front() == '.' || (text.front() >= '0' && text.front() <= '9'))) {
      if (text.front() == '.') {
        if (point) return std::nullopt;
        point = true;
      } else {
        digits = true;
        value = value * 10 + (text.front() - '0');
        if (point) scale *= 10;
      }
      text.remove_prefix(1);
    }
    if (!digits) return std::nullopt;
    const Unit* unit = nullptr;
    for (const Unit& candidate : kUnits) {
      if (text.starts_with(candidate.name)) {
        unit = &candidate;
        break;
      }
    }
    if (unit == nullptr) return std::nullopt;
    text.remove_prefix(unit->name.size());
    total += value / scale * unit->nanoseconds;
  }
  if (total > 9.1e18) return std::nullopt;
  return Duration(std::llround(total));
}

}  // namespace hearth
