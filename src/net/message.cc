#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include <boost/asio/error.hpp>

#include "base/error.h"
#include "net/message_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Enough for nearly every head; an idle connection keeps no more.
constexpr std::size_t kSmall = 4 << 10;

// As much as one read of a large body takes: what a unix socket hands over at once anyway.
constexpr std::size_t kWindow = 64 << 10;

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c > 0x20 && c < 0x7F && std::strchr("\"(),/:;<=>?@[\\]{}", c) == nullptr;
  });
}

bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text,
                             [](unsigned char c) { return (c >= 0x20 && c != 0x7F) || c == '\t'; });
}

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

// Formatted once a second for each thread.
const std::string& date_text() {
  thread_local time_t when = 0;
  thread_local std::string text;
  const time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (now != when) {
    tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 40> buffer{};
    text.assign(buffer.data(),
                strftime(buffer.data(), buffer.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts));
    when = now;
  }
  return text;
}

std::string status_line(unsigned status) {
  return fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
}

}  // namespace

asio::awaitable<Outcome> MessageReader::read_head(HeadKind kind, Duration first, Duration whole) {
  head_ = {};
  decoder_ = {};
  begin_ += std::exchange(shown_, 0);
  if (!has_unread() && storage_.size() > kSmall) storage_ = {};
  HeadScanner scanner;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  while (true) {
    if (has_unread()) {
      if (const auto outcome = look_for_head(kind, scanner)) co_return *outcome;
    }
    const auto now = std::chrono::steady_clock::now();
    if (has_unread() && !deadline) deadline = now + whole;
    const Duration patience = deadline ? Duration(*deadline - now) : first;
    const error_code error = co_await fill(patience);
    if (error == asio::error::timed_out) co_return Outcome::timeout;
    if (error) co_return has_unread() ? Outcome::broken : Outcome::end;
  }
}

std::optional<Outcome> MessageReader::look_for_head(HeadKind kind, HeadScanner& scanner) {
  // An empty line before a request is what some clients leave behind a body (RFC 9112 section 2.2).
  if (kind == HeadKind::request && scanner.size() == 0 && unread().starts_with("\r\n")) begin_ += 2;
  switch (scanner.scan(unread())) {
    case HeadScanner::Found::bad:
      return refuse({400, Code::invalid, "malformed HTTP"});
    case HeadScanner::Found::more:
      if (unread().size() < limits_.head_bytes) return std::nullopt;
      if (kind == HeadKind::request && unread().find('\r') == std::string_view::npos) {
        return refuse({414, Code::invalid, "the request target is too long"});
      }
      return refuse({431, Code::invalid, "the header fields are too long"});
    case HeadScanner::Found::complete:
      break;
  }
  const std::string_view bytes = unread().substr(0, scanner.size());
  auto problem =
      kind == HeadKind::request
          ? parse_request_head(bytes, limits_, head_)
          : parse_response_head(bytes, limits_, kind == HeadKind::response_to_head, head_);
  begin_ += scanner.size();
  if (problem) return refuse(*std::move(problem));
  decoder_ = BodyDecoder(head_.framing);
  return Outcome::ok;
}

Outcome MessageReader::refuse(Problem problem) {
  problem_ = std::move(problem);
  return Outcome::refused;
}

asio::awaitable<MessageReader::Piece> MessageReader::read_piece(Duration patience) {
  begin_ += std::exchange(shown_, 0);
  while (!decoder_.is_done()) {
    const BodyDecoder::Step step = decoder_.take(unread());
    if (step.bad) co_return Piece{refuse({400, Code::invalid, "malformed chunk"}), {}};
    if (!step.body.empty()) {
      shown_ = step.used;
      co_return Piece{Outcome::ok, step.body};
    }
    begin_ += step.used;
    if (step.used > 0) continue;

    const error_code error = co_await fill(patience);
    if (error == asio::error::timed_out) co_return Piece{Outcome::timeout, {}};
    if (error == asio::error::eof && decoder_.ends_with_connection()) {
      decoder_ = {};
    } else if (error) {
      co_return Piece{Outcome::broken, {}};
    }
  }
  co_return Piece{};
}

std::string MessageReader::take_unread() {
  begin_ += std::exchange(shown_, 0);
  std::string bytes(unread());
  begin_ = end_;
  return bytes;
}

void MessageReader::make_room() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0 && end_ == storage_.size()) {
    std::copy(storage_.data() + begin_, storage_.data() + end_, storage_.data());
    end_ -= std::exchange(begin_, 0);
  }
  const bool is_busy = last_fill_full_ && storage_.size() < kWindow;
  if (end_ == storage_.size() || is_busy) {
    const std::size_t most = std::max(limits_.head_bytes, kWindow);
    storage_.resize(std::clamp(storage_.size() * 2, std::min(kSmall, most), most));
  }
}

asio::awaitable<error_code> MessageReader::fill(Duration patience) {
  make_room();
  const std::size_t room = storage_.size() - end_;
  HEARTH_ASSERT(room > 0);
  const Transfer got =
      co_await stream_.read_some(asio::buffer(storage_.data() + end_, room), patience);
  end_ += got.bytes;
  last_fill_full_ = got.bytes == room;
  co_return got.error;
}

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

Gather chunk(std::string& size_line, std::string_view bytes) {
  size_line = fmt::format("{:x}\r\n", bytes.size());
  return {asio::buffer(size_line), asio::buffer(bytes), asio::buffer("\r\n", 2)};
}

Gather gather(std::string_view first, std::string_view second) {
  return {asio::buffer(first), asio::buffer(second), asio::const_buffer()};
}

}  // namespace hearth::net
