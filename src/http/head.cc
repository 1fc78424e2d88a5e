// Beast splits and checks the lines; what it would let pass, or leave to its caller, is checked
// here before and after.
#include "http/head.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace hearth::http {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using BeastText = boost::beast::string_view;

std::string to_text(BeastText text) {
  return {text.data(), text.size()};
}

// Told to skip the body: our own Framing reads that. (Beast asserts on some ways in which a peer
// may split the bytes of an empty chunked body, and an assertion would end the process.)
template <bool kIsRequest>
class Splitter final : public http::basic_parser<kIsRequest> {
 public:
  Splitter(Head& head, const Limits& limits) : head_(head), limits_(limits) {
    this->skip(true);
    this->header_limit(static_cast<std::uint32_t>(limits.head_bytes));
    this->body_limit(boost::none);
  }

 private:
  void on_request_impl(http::verb, BeastText method, BeastText target, int version,
                       error_code&) override {
    head_.method = to_text(method);
    head_.target = to_text(target);
    head_.minor = version - 10;
  }
  void on_response_impl(int code, BeastText, int version, error_code&) override {
    head_.status = static_cast<unsigned>(code);
    head_.minor = version - 10;
  }
  void on_field_impl(http::field, BeastText name, BeastText value, error_code& error) override {
    if (head_.headers.size() >= limits_.fields) {
      error = http::error::header_limit;
      return;
    }
    head_.headers.add(to_text(name), to_text(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(BeastText, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, BeastText, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastText, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  Head& head_;
  const Limits& limits_;
};

Problem bad(std::string message) {
  return {400, Code::invalid, std::move(message)};
}

// "HTTP/2.0" deserves a better answer than "HTTP/x".
bool is_other_version(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\r'));
  const auto at = line.rfind(" HTTP/");
  if (at == std::string_view::npos) return false;
  const std::string_view version = line.substr(at + 6);
  return version.size() == 3 && std::isdigit(static_cast<unsigned char>(version[0])) != 0 &&
         version[1] == '.' && std::isdigit(static_cast<unsigned char>(version[2])) != 0;
}

template <bool kIsRequest>
std::optional<Problem> split(std::string_view bytes, const Limits& limits, Head& head) {
  Splitter<kIsRequest> splitter(head, limits);
  error_code error;
  const std::size_t used = splitter.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error == http::error::header_limit) {
    return Problem{431, Code::invalid, "too many or too long header fields"};
  }
  if (error == http::error::bad_version && is_other_version(bytes)) {
    return Problem{505, Code::invalid, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  }
  if (error) return bad(fmt::format("malformed HTTP: {}", error.message()));
  if (used != bytes.size() || !splitter.is_header_done()) return bad("malformed HTTP");
  return std::nullopt;
}

struct BodyFields {
  int lengths = 0;
  int encodings = 0;
  std::string_view length;
  std::string_view encoding;
};

BodyFields find_body_fields(const Headers& headers) {
  BodyFields found;
  for (const Field& field : headers) {
    if (equal_ignoring_case(field.name, "Content-Length")) {
      ++found.lengths;
      found.length = field.value;
    } else if (equal_ignoring_case(field.name, "Transfer-Encoding")) {
      ++found.encodings;
      found.encoding = field.value;
    }
  }
  return found;
}

// What the fields say; `unstated` where they say nothing.
std::optional<Problem> read_framing(Head& head, BodyKind unstated) {
  const BodyFields fields = find_body_fields(head.headers);
  head.framing.kind = unstated;
  if (fields.lengths > 1) return bad("more than one Content-Length");
  if (fields.lengths > 0 && fields.encodings > 0) {
    return bad("both Content-Length and Transfer-Encoding");
  }
  if (fields.encodings > 0) {
    if (fields.encodings > 1 || head.minor == 0) return bad("misplaced Transfer-Encoding");
    if (!equal_ignoring_case(fields.encoding, "chunked")) {
      return Problem{501, Code::invalid, "the only Transfer-Encoding spoken here is chunked"};
    }
    head.framing.kind = BodyKind::chunked;
  }
  if (fields.lengths > 0) {
    const auto length = parse_number(fields.length);
    if (!length) return bad("malformed Content-Length");
    head.framing.length = *length;
    head.framing.kind = head.framing.length > 0 ? BodyKind::length : BodyKind::none;
  }
  return std::nullopt;
}

std::optional<Problem> check_host(const Head& head) {
  int hosts = 0;
  for (const Field& field : head.headers) {
    if (!equal_ignoring_case(field.name, "Host")) continue;
    ++hosts;
    if (field.value.find_first_of(" \t/\\@?#,") != std::string::npos) return bad("malformed Host");
  }
  if (hosts > 1) return bad("more than one Host");
  if (hosts == 0 && head.minor > 0) return bad("no Host");  // RFC 9112 section 3.2
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number, base);
  if (stop != end || error != std::errc()) return std::nullopt;
  return number;
}

bool Head::wants_keep_alive() const {
  return minor > 0 ? !headers.has_token("Connection", "close")
                   : headers.has_token("Connection", "keep-alive");
}

HeadScanner::Found HeadScanner::scan(std::string_view bytes) {
  while (at_ < bytes.size()) {
    const char c = bytes[at_];
    if (c == '\r') {
      if (at_ + 1 == bytes.size()) return Found::more;
      if (bytes[at_ + 1] != '\n') return Found::bad;
      at_ += 2;
      if (line_length_ == 0) return Found::complete;
      line_length_ = 0;
      continue;
    }
    const bool is_fold = at_ > 0 && line_length_ == 0 && (c == ' ' || c == '\t');
    const bool is_control = (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
    if (is_control || is_fold) return Found::bad;
    ++line_length_;
    ++at_;
  }
  return Found::more;
}

std::optional<Problem> parse_request_head(std::string_view bytes, const Limits& limits,
                                          Head& head) {
  if (auto problem = split<true>(bytes, limits, head)) return problem;
  if (head.target.size() > limits.target_bytes) {
    return Problem{414, Code::invalid, "the request target is too long"};
  }
  if (auto problem = check_host(head)) return problem;
  return read_framing(head, BodyKind::none);
}

std::optional<Problem> parse_response_head(std::string_view bytes, const Limits& limits,
                                           bool for_head, Head& head) {
  if (auto problem = split<false>(bytes, limits, head)) return problem;
  if (auto problem = read_framing(head, BodyKind::until_end)) return problem;
  const bool bodiless = for_head || head.status < 200 || head.status == 204 || head.status == 304;
  if (bodiless) head.framing = {};
  return std::nullopt;
}

}  // namespace hearth::http
