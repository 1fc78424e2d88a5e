#include "http/render.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "http/date.h"
#include "http/fields.h"

namespace hearth::http {
namespace {

void append_field(std::string& out, const Field& field) {
  if (!is_token(field.name) || !is_field_value(field.value)) {
    fail(Code::internal, "header field '{}' has a character that cannot be sent", field.name);
  }
  out.append(field.name).append(": ").append(field.value).append("\r\n");
}

bool is_framing(std::string_view name) {
  constexpr std::array kNames = {"Connection", "Content-Length", "Transfer-Encoding", "Keep-Alive"};
  return std::ranges::any_of(kNames, [&](auto known) { return equal_ignoring_case(name, known); });
}

void append_fields(std::string& out, const Headers& headers, const std::vector<Field>& framing) {
  for (const Field& field : headers) {
    if (!is_framing(field.name)) append_field(out, field);
  }
  for (const Field& field : framing) append_field(out, field);
  out += "\r\n";
}

// Formatted once a second for each thread. Not by gmtime(3), which reads a file the first time: of
// the sandbox, and while somebody waits for an answer.
const std::string& date_text() {
  thread_local Time when;
  thread_local std::string text;
  const Time now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (now != when) {
    text = format_date(now);
    when = now;
  }
  return text;
}

std::string status_line(unsigned status) {
  return fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
}

}  // namespace

std::string render_head(const Response& response, const std::vector<Field>& framing) {
  std::string out = status_line(response.status);
  if (response.headers.find("Date") == nullptr) append_field(out, {"Date", date_text()});
  append_fields(out, response.headers, framing);
  return out;
}

std::string render_head(const Request& request, const std::vector<Field>& framing) {
  const bool sendable =
      is_token(request.method) && !request.target.empty() &&
      std::ranges::all_of(request.target, [](unsigned char c) { return c > 0x20 && c != 0x7F; });
  if (!sendable) fail(Code::invalid, "cannot send a request for '{}'", request.target);
  std::string out = fmt::format("{} {} HTTP/1.1\r\n", request.method, request.target);
  append_fields(out, request.headers, framing);
  return out;
}

std::string render_upgrade(const Response& response) {
  std::string out = status_line(response.status);
  for (const Field& field : response.headers) append_field(out, field);
  return out + "\r\n";
}

}  // namespace hearth::http
