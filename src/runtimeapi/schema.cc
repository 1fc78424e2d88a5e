#include "runtimeapi/schema.h"

#include <chrono>
#include <cmath>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json_text.h"

namespace hearth::runtimeapi {
namespace {

namespace json = boost::json;

// Nobody waits for longer than a year.
constexpr double kLongest = 366.0 * 24 * 3600;

struct Complaint {
  std::string_view type;
  std::string where = "\"body\"";  // JSON, the items of a list
  std::string_view message;
  std::string input = "null";  // JSON
  std::string context = {};    // JSON, or nothing
};

SchemaError complain(const Complaint& complaint) {
  return SchemaError(
      fmt::format(R"({{"detail":[{{"type":"{}","loc":[{}],"msg":"{}","input":{}{}}}]}})",
                  complaint.type, complaint.where, complaint.message, complaint.input,
                  complaint.context.empty() ? "" : fmt::format(R"(,"ctx":{})", complaint.context)));
}

std::string field(std::string_view name) {
  return fmt::format("\"body\",\"{}\"", name);
}

json::value parse(std::string_view text) {
  if (text.empty()) throw complain({.type = "missing", .message = "Field required"});
  json::error_code error;
  json::stream_parser parser;
  const std::size_t read = parser.write_some(text.data(), text.size(), error);
  if (!error && parser.done() && text.find_first_not_of(" \t\r\n", read) != std::string_view::npos)
    error = json::error::extra_data;
  if (!error) parser.finish(error);
  if (error) {
    throw complain({.type = "json_invalid",
                    .where = fmt::format("\"body\",{}", read),
                    .message = "JSON decode error",
                    .input = "{}",
                    .context = fmt::format(R"({{"error":{}}})", json_quote(error.message()))});
  }
  return parser.release();
}

std::string take_command(const json::object& body) {
  const json::value* command = body.if_contains("command");
  if (command == nullptr) {
    throw complain({.type = "missing",
                    .where = field("command"),
                    .message = "Field required",
                    .input = json::serialize(body)});
  }
  if (!command->is_string()) {
    throw complain({.type = "string_type",
                    .where = field("command"),
                    .message = "Input should be a valid string",
                    .input = json::serialize(*command)});
  }
  const json::string& text = command->as_string();
  return {text.data(), text.size()};
}

std::optional<Duration> take_timeout(const json::object& body) {
  const json::value* timeout = body.if_contains("timeout_seconds");
  if (timeout == nullptr || timeout->is_null()) return std::nullopt;
  if (!timeout->is_number()) {
    throw complain({.type = "float_type",
                    .where = field("timeout_seconds"),
                    .message = "Input should be a valid number",
                    .input = json::serialize(*timeout)});
  }
  const double seconds = timeout->to_number<double>();
  if (!(seconds > 0)) {
    throw complain({.type = "greater_than",
                    .where = field("timeout_seconds"),
                    .message = "Input should be greater than 0",
                    .input = json::serialize(*timeout),
                    .context = R"({"gt":0.0})"});
  }
  return std::chrono::ceil<Duration>(std::chrono::duration<double>(std::min(seconds, kLongest)));
}

}  // namespace

SchemaError missing_field(std::string_view name) {
  return complain({.type = "missing", .where = field(name), .message = "Field required"});
}

ExecuteBody parse_execute_body(std::string_view text) {
  const json::value value = parse(text);
  const json::object* body = value.if_object();
  if (body == nullptr) {
    throw complain(
        {.type = "model_attributes_type",
         .message = "Input should be a valid dictionary or object to extract fields from",
         .input = json::serialize(value)});
  }
  return {.command = take_command(*body), .timeout = take_timeout(*body)};
}

}  // namespace hearth::runtimeapi
