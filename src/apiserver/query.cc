#include "apiserver/query.h"

#include <charconv>

#include <fmt/format.h>

#include "http/http.h"
#include "http/target.h"
#include "model/status.h"

namespace hearth::apiserver {

Query::Query(std::string_view query) {
  try {
    parameters_ = http::query_parameters(query);
  } catch (const Error& error) {
    model::throw_bad_request(error.what());
  }
}

std::string_view Query::text(std::string_view name) const {
  for (const auto& [key, value] : parameters_)
    if (key == name) return value;
  return {};
}

bool Query::has(std::string_view name) const {
  for (const auto& [key, value] : parameters_)
    if (key == name) return true;
  return false;
}

std::vector<std::string> Query::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : parameters_)
    if (key == name) values.push_back(value);
  return values;
}

std::optional<bool> Query::optional_flag(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  const std::string_view value = text(name);
  return value != "0" && !http::equal_ignoring_case(value, "false");
}

bool Query::flag(std::string_view name) const {
  return optional_flag(name).value_or(false);
}

std::optional<std::int64_t> Query::number(std::string_view name) const {
  const std::string_view value = text(name);
  if (value.empty()) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    model::throw_bad_request(
        fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", value));
  return number;
}

}  // namespace hearth::apiserver
