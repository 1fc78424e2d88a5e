#include "model/age.h"

#include <chrono>

#include <fmt/format.h>

#include "base/time_text.h"

namespace hearth::model {
namespace {

std::string two(long long large, char large_unit, long long small, char small_unit) {
  return small == 0 ? fmt::format("{}{}", large, large_unit)
                    : fmt::format("{}{}{}{}", large, large_unit, small, small_unit);
}

}  // namespace

std::string age_text(Duration age) {
  const long long seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  // Clocks differ a little; more than that is a mistake.
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  const long long minutes = seconds / 60;
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 3 * 60) return fmt::format("{}m", minutes);
  const long long hours = minutes / 60;
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return fmt::format("{}h", hours);
  const long long days = hours / 24;
  if (days < 8) return two(days, 'd', hours % 24, 'h');
  if (days < 2 * 365) return fmt::format("{}d", days);
  if (days < 8 * 365) return two(days / 365, 'y', days % 365, 'd');
  return fmt::format("{}y", days / 365);
}

std::string age_since(std::string_view time, Time now) {
  if (time.empty()) return "<unknown>";
  const auto parsed = parse_rfc3339(time);
  return parsed ? age_text(now - *parsed) : "<invalid>";
}

}  // namespace hearth::model
