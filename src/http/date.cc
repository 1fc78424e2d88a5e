#include "http/date.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "http/head.h"

namespace hearth::http {
namespace {

using namespace std::chrono;

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Where the fields of a date stand.
constexpr std::size_t kLength = 29;
constexpr std::string_view kForm = "ddd, ## mmm #### ##:##:## GMT";

bool has_form(std::string_view text) {
  if (text.size() != kLength) return false;
  for (std::size_t i = 0; i < kLength; ++i) {
    const char wanted = kForm[i];
    if (wanted == 'd' || wanted == 'm') continue;  // compared as words
    if (wanted == '#' ? (text[i] < '0' || text[i] > '9') : text[i] != wanted) return false;
  }
  return true;
}

int number_at(std::string_view text, std::size_t at, std::size_t count) {
  return static_cast<int>(parse_number(text.substr(at, count)).value_or(0));
}

}  // namespace

std::string format_date(Time time) {
  const auto second = floor<seconds>(time);
  const auto day = floor<days>(second);
  const year_month_day date(day);
  const hh_mm_ss clock(second - day);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()),
                     kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

std::optional<Time> parse_date(std::string_view text) {
  if (!has_form(text)) return std::nullopt;
  const auto month_at = std::ranges::find(kMonths, text.substr(8, 3));
  const auto day_at = std::ranges::find(kDays, text.substr(0, 3));
  if (month_at == kMonths.end() || day_at == kDays.end()) return std::nullopt;

  const year_month_day date(year(number_at(text, 12, 4)),
                            month(static_cast<unsigned>(month_at - kMonths.begin()) + 1),
                            day(static_cast<unsigned>(number_at(text, 5, 2))));
  const int hour = number_at(text, 17, 2);
  const int minute = number_at(text, 20, 2);
  const int second = number_at(text, 23, 2);
  // What Time can hold: nanoseconds since 1970 in 64 bits.
  const bool holds = date.year() >= year(1700) && date.year() <= year(2200);
  if (!date.ok() || !holds || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  if (weekday(sys_days(date)) != weekday(static_cast<unsigned>(day_at - kDays.begin())))
    return std::nullopt;
  return sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
}

}  // namespace hearth::http
