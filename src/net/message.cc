#include <algorithm>
#include <array>
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

Gather chunk(std::string& size_line, std::string_view bytes) {
  size_line = fmt::format("{:x}\r\n", bytes.size());
  return {asio::buffer(size_line), asio::buffer(bytes), asio::buffer("\r\n", 2)};
}

Gather gather(std::string_view first, std::string_view second) {
  return {asio::buffer(first), asio::buffer(second), asio::const_buffer()};
}

}  // namespace hearth::net
