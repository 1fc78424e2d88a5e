#include "http/head_view.h"

#include <algorithm>

#include "http/fields.h"

namespace hearth::http {
namespace {

Problem bad(std::string message) {
  return {400, Code::invalid, std::move(message)};
}

bool list_has(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (equal_ignoring_case(trim(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma, list.size() - 1) + 1);
  }
  return false;
}

// "HTTP/1.0" or "HTTP/1.1".
std::optional<Problem> read_version(std::string_view text, int& minor) {
  if (text == "HTTP/1.1" || text == "HTTP/1.0") {
    minor = text.back() - '0';
    return std::nullopt;
  }
  if (text.size() == 8 && text.starts_with("HTTP/")) {
    return Problem{505, Code::invalid, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  }
  return bad("malformed HTTP");
}

// The fields; `bytes` begins behind the first line and ends with the empty one.
std::optional<Problem> read_fields(std::string_view bytes, HeadView& head) {
  while (true) {
    const auto end = bytes.find('\r');
    if (end == std::string_view::npos || end + 2 > bytes.size()) return bad("malformed HTTP");
    if (end == 0) break;
    const std::string_view text = bytes.substr(0, end);
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || !is_token(text.substr(0, colon))) {
      return bad("malformed header field");
    }
    if (!head.add({.name = text.substr(0, colon),
                   .value = trim(text.substr(colon + 1)),
                   .line = bytes.substr(0, end + 2)})) {
      return Problem{431, Code::invalid, "too many header fields"};
    }
    bytes.remove_prefix(end + 2);
  }
  return std::nullopt;
}

// What two readers could understand differently is refused, as in http/head.h.
std::optional<Problem> read_framing(HeadView& head, BodyKind unstated) {
  const FieldView* length = nullptr;
  const FieldView* encoding = nullptr;
  for (const FieldView& field : head) {
    const bool is_length = equal_ignoring_case(field.name, "Content-Length");
    const bool is_encoding = equal_ignoring_case(field.name, "Transfer-Encoding");
    if (is_length && length != nullptr) return bad("more than one Content-Length");
    if (is_encoding && encoding != nullptr) return bad("more than one Transfer-Encoding");
    if (is_length) length = &field;
    if (is_encoding) encoding = &field;
  }
  head.framing = {.kind = unstated, .length = 0};
  if (length != nullptr && encoding != nullptr) {
    return bad("both Content-Length and Transfer-Encoding");
  }
  if (encoding != nullptr) {
    if (head.minor == 0) return bad("misplaced Transfer-Encoding");
    if (!equal_ignoring_case(encoding->value, "chunked")) {
      return Problem{501, Code::invalid, "the only Transfer-Encoding spoken here is chunked"};
    }
    head.framing.kind = BodyKind::chunked;
  }
  if (length != nullptr) {
    const auto number = parse_number(length->value);
    if (!number) return bad("malformed Content-Length");
    head.framing.length = *number;
    head.framing.kind = *number > 0 ? BodyKind::length : BodyKind::none;
  }
  return std::nullopt;
}

std::optional<Problem> check_host(const HeadView& head) {
  int hosts = 0;
  for (const FieldView& field : head) {
    if (!equal_ignoring_case(field.name, "Host")) continue;
    ++hosts;
    if (field.value.find_first_of(" \t/\\@?#,") != std::string_view::npos) {
      return bad("malformed Host");
    }
  }
  if (hosts > 1) return bad("more than one Host");
  if (hosts == 0 && head.minor > 0) return bad("no Host");  // RFC 9112 section 3.2
  return std::nullopt;
}

// Visible ASCII only: what else a target may not hold, its reader finds out.
bool is_visible(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace

const FieldView* HeadView::find(std::string_view name) const {
  for (const FieldView& field : *this) {
    if (field.name.size() == name.size() && equal_ignoring_case(field.name, name)) return &field;
  }
  return nullptr;
}

std::string_view HeadView::value(std::string_view name) const {
  const FieldView* found = find(name);
  return found != nullptr ? found->value : std::string_view();
}

bool HeadView::has_token(std::string_view name, std::string_view token) const {
  return std::any_of(begin(), end(), [&](const FieldView& field) {
    return field.name.size() == name.size() && equal_ignoring_case(field.name, name) &&
           list_has(field.value, token);
  });
}

bool HeadView::wants_keep_alive() const {
  return minor > 0 ? !has_token("Connection", "close") : has_token("Connection", "keep-alive");
}

bool HeadView::add(FieldView field) {
  if (size_ == fields_.size()) return false;
  fields_[size_++] = field;
  return true;
}

void HeadView::clear() {
  size_ = 0;
  method = target = reason = {};
  status = 0;
  minor = 1;
  framing = {};
}

std::optional<Problem> parse_request_head(std::string_view bytes, std::size_t target_bytes,
                                          HeadView& head) {
  head.clear();
  const auto end = bytes.find("\r\n");
  if (end == std::string_view::npos) return bad("malformed HTTP");
  const std::string_view line = bytes.substr(0, end);
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return bad("malformed HTTP");
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, last - first - 1);
  if (!is_token(head.method) || !is_visible(head.target)) return bad("malformed HTTP");
  if (auto problem = read_version(line.substr(last + 1), head.minor)) return problem;
  if (head.target.size() > target_bytes) {
    return Problem{414, Code::invalid, "the request target is too long"};
  }
  if (auto problem = read_fields(bytes.substr(end + 2), head)) return problem;
  if (auto problem = check_host(head)) return problem;
  return read_framing(head, BodyKind::none);
}

std::optional<Problem> parse_response_head(std::string_view bytes, bool for_head, HeadView& head) {
  head.clear();
  const auto end = bytes.find("\r\n");
  if (end == std::string_view::npos || end < 12) return bad("malformed HTTP");
  const std::string_view line = bytes.substr(0, end);
  if (auto problem = read_version(line.substr(0, 8), head.minor)) return problem;
  const auto status = parse_number(line.substr(9, 3));
  if (line[8] != ' ' || !status || *status < 100 || *status > 599) return bad("malformed status");
  if (line.size() > 12 && line[12] != ' ') return bad("malformed status");
  head.status = static_cast<unsigned>(*status);
  if (line.size() > 13) head.reason = line.substr(13);
  if (auto problem = read_fields(bytes.substr(end + 2), head)) return problem;
  if (auto problem = read_framing(head, BodyKind::until_end)) return problem;
  const bool bodiless = for_head || head.status < 200 || head.status == 204 || head.status == 304;
  if (bodiless) head.framing = {};
  return std::nullopt;
}

}  // namespace hearth::http
