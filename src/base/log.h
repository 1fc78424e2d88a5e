// Structured log lines on stderr: a constant message and key/value pairs.
//
//   log::info("sandbox created", {{"id", id}, {"took_us", took}});
//
// Libraries do not log above debug, they throw; the boundary that catches logs once. Thread-safe:
// a line is one write(2). Secrets never go in.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "base/clock.h"

namespace hearth::log {

enum class Level { debug, info, warning, error };
enum class Format { text, json };

// A key and its value, already as text.
struct Field {
  template <typename T>
  Field(std::string_view field_key, const T& field_value)
      : key(field_key), value(fmt::format("{}", field_value)) {
    is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, char>;
  }

  std::string_view key;
  std::string value;
  bool is_number = false;  // printed without quotes in JSON; true and false are
};

using Fields = std::initializer_list<Field>;

// Process-wide; set once by main.
void configure(Level least, Format format);

// Both throw Error(invalid) for a name that is none, saying which there are.
Level parse_level(std::string_view name);
Format parse_format(std::string_view name);

bool enabled(Level level);
void write(Level level, std::string_view message, Fields fields);

inline void debug(std::string_view message, Fields fields = {}) {
  if (enabled(Level::debug)) write(Level::debug, message, fields);
}
inline void info(std::string_view message, Fields fields = {}) {
  write(Level::info, message, fields);
}
inline void warning(std::string_view message, Fields fields = {}) {
  write(Level::warning, message, fields);
}
inline void error(std::string_view message, Fields fields = {}) {
  write(Level::error, message, fields);
}

// The line without its newline; what write() prints. For tests.
std::string render(Format format, Level level, Time time, std::string_view message, Fields fields);

}  // namespace hearth::log
