#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/time_text.h"

namespace hearth::log {
namespace {

struct Settings {
  std::atomic<Level> least{Level::info};
  std::atomic<Format> format{Format::text};
};
Settings settings;

constexpr std::array<std::pair<std::string_view, Level>, 4> kLevels = {{
    {"debug", Level::debug},
    {"info", Level::info},
    {"warning", Level::warning},
    {"error", Level::error},
}};

std::string_view level_name(Level level) {
  return std::ranges::find(kLevels, level, &std::pair<std::string_view, Level>::second)->first;
}

// Text values are quoted only where a reader could mistake their end.
bool needs_quotes(std::string_view value) {
  return value.empty() || std::ranges::any_of(value, [](unsigned char c) {
           return c <= ' ' || c == '"' || c == '=' || c >= 0x7F;
         });
}

std::string render_text(Level level, Time time, std::string_view message, Fields fields) {
  std::string line =
      fmt::format("{} {:<7} {}", format_rfc3339(time, 3), level_name(level), message);
  for (const Field& field : fields) {
    line += fmt::format(" {}={}", field.key,
                        needs_quotes(field.value) ? json_quote(field.value) : field.value);
  }
  return line;
}

std::string render_json(Level level, Time time, std::string_view message, Fields fields) {
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","message":{})",
                                 format_rfc3339(time, 3), level_name(level), json_quote(message));
  for (const Field& field : fields) {
    line += fmt::format(",{}:{}", json_quote(field.key),
                        field.is_number ? field.value : json_quote(field.value));
  }
  return line + '}';
}

}  // namespace

void configure(Level least, Format format) {
  settings.least = least;
  settings.format = format;
}

Level parse_level(std::string_view name) {
  for (const auto& [known, level] : kLevels) {
    if (known == name) return level;
  }
  fail(Code::invalid, "there is no log level '{}'; there are debug, info, warning and error", name);
}

Format parse_format(std::string_view name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  fail(Code::invalid, "there is no log format '{}'; there are text and json", name);
}

bool enabled(Level level) {
  return level >= settings.least.load(std::memory_order_relaxed);
}

std::string render(Format format, Level level, Time time, std::string_view message, Fields fields) {
  return format == Format::json ? render_json(level, time, message, fields)
                                : render_text(level, time, message, fields);
}

void write(Level level, std::string_view message, Fields fields) {
  if (!enabled(level)) return;
  const std::string line =
      render(settings.format, level, std::chrono::system_clock::now(), message, fields) + '\n';
  // One write keeps lines of several threads and processes apart. A log that cannot be written has
  // nowhere to complain to.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace hearth::log
