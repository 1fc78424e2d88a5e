#include "http/http.h"

#include <algorithm>
#include <array>

#include "base/json_text.h"
#include "http/fields.h"

namespace hearth::http {
namespace {

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool list_has(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (equal_ignoring_case(trim(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

struct StatusName {
  unsigned status;
  std::string_view name;
};
constexpr std::array kStatusNames = std::to_array<StatusName>({
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
});

}  // namespace

const std::string* Headers::find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (equal_ignoring_case(field.name, name)) return &field.value;
  }
  return nullptr;
}

std::string_view Headers::value(std::string_view name) const {
  const std::string* found = find(name);
  return found != nullptr ? std::string_view(*found) : std::string_view();
}

bool Headers::has_token(std::string_view name, std::string_view token) const {
  return std::ranges::any_of(fields_, [&](const Field& field) {
    return equal_ignoring_case(field.name, name) && list_has(field.value, token);
  });
}

void Headers::add(std::string name, std::string value) {
  fields_.push_back({std::move(name), std::move(value)});
}

void Headers::set(std::string_view name, std::string value) {
  remove(name);
  add(std::string(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return equal_ignoring_case(field.name, name); });
}

const std::string& Request::parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  fail(Code::internal, "route of '{}' has no parameter '{}'", path, name);
}

Response text_response(unsigned status, std::string text) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(text)};
}

Response json_response(unsigned status, std::string json) {
  return {status, {{"Content-Type", "application/json"}}, std::move(json)};
}

std::string_view reason_phrase(unsigned status) {
  const auto found = std::ranges::lower_bound(kStatusNames, status, {}, &StatusName::status);
  return found != kStatusNames.end() && found->status == status ? found->name : "Status";
}

unsigned status_from_code(Code code) {
  switch (code) {
    case Code::invalid:
      return 400;
    case Code::unauthenticated:
      return 401;
    case Code::forbidden:
      return 403;
    case Code::not_found:
      return 404;
    case Code::already_exists:
    case Code::conflict:
      return 409;
    case Code::exhausted:
      return 429;
    case Code::timeout:
      return 504;
    case Code::unavailable:
      return 503;
    case Code::internal:
      return 500;
  }
  return 500;
}

Code code_from_status(unsigned status) {
  switch (status) {
    case 401:
      return Code::unauthenticated;
    case 403:
      return Code::forbidden;
    case 404:
    case 410:
      return Code::not_found;
    case 409:
    case 412:
      return Code::conflict;
    case 429:
    case 507:
      return Code::exhausted;
    case 408:
    case 504:
      return Code::timeout;
    case 502:
    case 503:
      return Code::unavailable;
    default:
      return status >= 400 && status < 500 ? Code::invalid : Code::internal;
  }
}

Response render_json_problem(const Problem& problem) {
  return json_response(problem.status, fmt::format(R"({{"code":{},"message":{}}})",
                                                   json_quote(to_string(problem.code)),
                                                   json_quote(problem.message)));
}

bool equal_ignoring_case(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

bool equal_constant_time(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  // Volatile: the compiler may not leave when it has seen a difference.
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    difference = difference | static_cast<unsigned char>(left[i] ^ right[i]);
  return difference == 0;
}

}  // namespace hearth::http
