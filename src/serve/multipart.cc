#include "serve/multipart.h"

#include <algorithm>
#include <utility>

#include "http/fields.h"
#include "http/target.h"

namespace hearth::serve {
namespace {

// RFC 2046 section 5.1.1.
constexpr std::size_t kMaxBoundary = 70;
// A part's head has three fields; a path in it may be long.
constexpr std::size_t kMaxHead = std::size_t{32} << 10;
constexpr std::size_t kMaxFields = 64;
// Each costs a file, or at least a head to look at.
constexpr std::size_t kMaxParts = 100'000;

// Only before these is a backslash an escape: browsers used to send paths of Windows as they are.
bool is_escapable(char c) {
  return std::string_view("()<>@,;:\\\"/[]?=").find(c) != std::string_view::npos;
}

struct Parameter {
  std::string_view name;
  std::string value;
};

// The parameter at the front of `rest`, which begins behind a ';', and moves behind it.
Parameter next_parameter(std::string_view& rest) {
  Parameter parameter;
  const std::size_t end = rest.find_first_of("=;");
  parameter.name = http::trim(rest.substr(0, end));
  rest.remove_prefix(std::min(end, rest.size()));
  if (!rest.starts_with('=')) return parameter;
  rest = http::trim(rest.substr(1));
  if (!rest.starts_with('"')) {
    const std::string_view value = rest.substr(0, rest.find(';'));
    parameter.value = http::trim(value);
    rest.remove_prefix(value.size());
    return parameter;
  }
  std::size_t i = 1;
  for (; i < rest.size() && rest[i] != '"'; ++i) {
    if (rest[i] == '\\' && i + 1 < rest.size() && is_escapable(rest[i + 1])) ++i;
    parameter.value += rest[i];
  }
  rest.remove_prefix(std::min(i + 1, rest.size()));
  return parameter;
}

// The longest end of `text` that `pattern` begins with.
std::size_t begun_at_end(std::string_view text, std::string_view pattern) {
  std::size_t length = std::min(text.size(), pattern.size() - 1);
  while (length > 0 && text.substr(text.size() - length) != pattern.substr(0, length)) --length;
  return length;
}

MultipartReader::Part describe(http::Headers headers) {
  MultipartReader::Part part;
  const std::string_view disposition = headers.value("Content-Disposition");
  part.name = find_header_parameter(disposition, "name").value_or("");
  part.filename = find_header_parameter(disposition, "filename");
  // RFC 8187: charset'language'percent-encoded.
  if (const auto extended = find_header_parameter(disposition, "filename*")) {
    const std::size_t quote = extended->find('\'', extended->find('\'') + 1);
    if (http::equal_ignoring_case(extended->substr(0, extended->find('\'')), "utf-8") &&
        quote != std::string::npos) {
      if (auto decoded = http::percent_decode(extended->substr(quote + 1)))
        part.filename = std::move(decoded);
    }
  }
  part.headers = std::move(headers);
  return part;
}

}  // namespace

std::optional<std::string> find_header_parameter(std::string_view header, std::string_view name) {
  std::size_t semicolon = header.find(';');
  while (semicolon != std::string_view::npos) {
    header.remove_prefix(semicolon + 1);
    Parameter parameter = next_parameter(header);
    if (http::equal_ignoring_case(parameter.name, name)) return std::move(parameter.value);
    semicolon = header.find(';');
  }
  return std::nullopt;
}

MultipartReader::MultipartReader(Source body, std::string_view content_type)
    : body_(std::move(body)) {
  if (!http::equal_ignoring_case(http::trim(content_type.substr(0, content_type.find(';'))),
                                 "multipart/form-data")) {
    fail(Code::invalid, "the content type is not multipart/form-data");
  }
  const auto boundary = find_header_parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kMaxBoundary)
    fail(Code::invalid, "the content type names no boundary between its parts");
  delimiter_ = "\r\n--" + *boundary;
  kept_ = "\r\n";  // the first delimiter may be at the very beginning
  current_ = kept_;
}

// More bytes behind those that are here; false when there are none.
bool MultipartReader::fill() {
  std::string rest(current_);  // the next piece takes the place of this one
  const std::string_view piece = body_();
  if (rest.empty()) {
    current_ = piece;
  } else {
    kept_ = std::move(rest);
    kept_ += piece;
    current_ = kept_;
  }
  return !piece.empty();
}

std::string_view MultipartReader::take(std::size_t count) {
  const std::string_view taken = current_.substr(0, count);
  current_.remove_prefix(taken.size());
  return taken;
}

std::string_view MultipartReader::read_piece() {
  while (in_part_) {
    const std::size_t at = current_.find(delimiter_);
    in_part_ = at != 0;
    if (!in_part_) break;
    if (at != std::string_view::npos) return take(at);
    const std::size_t safe = current_.size() - begun_at_end(current_, delimiter_);
    if (safe > 0) return take(safe);
    if (!fill()) fail(Code::invalid, "the multipart body ends in the middle of a part");
  }
  return {};
}

std::string MultipartReader::read_line() {
  std::size_t end = 0;
  while ((end = current_.find("\r\n")) == std::string_view::npos) {
    if (current_.size() >= kMaxHead + 2) fail(Code::invalid, "the head of a part is too long");
    if (!fill()) fail(Code::invalid, "the multipart body ends in the head of a part");
  }
  if (end > kMaxHead) fail(Code::invalid, "the head of a part is too long");
  std::string line(take(end));
  take(2);
  return line;
}

http::Headers MultipartReader::read_head() {
  http::Headers headers;
  std::size_t size = 0;
  for (std::string line = read_line(); !line.empty(); line = read_line()) {
    size += line.size();
    if (size > kMaxHead || headers.size() >= kMaxFields)
      fail(Code::invalid, "the head of a part is too long");
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0)
      fail(Code::invalid, "the head of a part has a line without a name");
    headers.add(line.substr(0, colon),
                std::string(http::trim(std::string_view(line).substr(colon + 1))));
  }
  return headers;
}

std::optional<MultipartReader::Part> MultipartReader::next_part() {
  while (!read_piece().empty()) {
  }
  if (is_over_) return std::nullopt;
  take(delimiter_.size());
  while (current_.size() < 2) {
    if (!fill()) fail(Code::invalid, "the multipart body ends in a boundary");
  }
  if (current_.starts_with("--")) {
    is_over_ = true;
    return std::nullopt;
  }
  if (!http::trim(read_line()).empty())
    fail(Code::invalid, "a boundary of the multipart body goes on where it should end");
  if (++parts_ > kMaxParts) fail(Code::invalid, "the multipart body has too many parts");
  Part part = describe(read_head());
  in_part_ = true;
  return part;
}

}  // namespace hearth::serve
