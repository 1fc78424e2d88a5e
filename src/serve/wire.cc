#include "serve/wire.h"

#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::serve {
namespace {

constexpr http::Limits kLimits;

// Enough for nearly every request; an idle connection keeps nothing.
constexpr std::size_t kSmall = 4 << 10;

// What the kernel takes at once without keeping a thread away from its peer's departure for long.
constexpr std::size_t kFilePiece = std::size_t{1} << 20;

// What may be held back: enough for all that a short command has to say.
constexpr std::size_t kMostHeld = 4 << 10;

}  // namespace

Wire::Wire(linux::Fd socket, const Patience& patience)
    : socket_(std::move(socket)), patience_(patience) {}

void Wire::wait_for(short events, Deadline deadline, const char* what) const {
  pollfd waited{.fd = socket_.get(), .events = events, .revents = 0};
  while (true) {
    const int ready = ::poll(&waited, 1, deadline.poll_milliseconds());
    if (ready > 0) return;
    if (ready == 0) fail(Code::timeout, "the peer took too long to {}", what);
    if (errno != EINTR) throw_errno("wait for a peer");
  }
}

bool Wire::receive(std::size_t room, Deadline deadline) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  const std::size_t before = buffer_.size();
  buffer_.resize(before + room);
  while (true) {
    const ssize_t got = ::recv(socket_.get(), buffer_.data() + before, room, MSG_DONTWAIT);
    if (got >= 0) {
      buffer_.resize(before + static_cast<std::size_t>(got));
      return got > 0;
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EAGAIN) {
      wait_for(POLLIN, deadline, "send");
      continue;
    }
    buffer_.resize(before);
    fail(Code::unavailable, "the peer left: {}", errno_text(error));
  }
}

std::optional<http::Head> Wire::read_head() {
  hurried_ = Deadline::never();
  http::HeadScanner scanner;
  const Deadline deadline = Deadline::after(patience_.head);
  while (true) {
    const auto found = scanner.scan(unread());
    if (found == http::HeadScanner::Found::bad)
      throw BadHead({.status = 400, .code = Code::invalid, .message = "this is not HTTP"});
    if (found == http::HeadScanner::Found::complete) break;
    if (unread().size() > kLimits.head_bytes) {
      throw BadHead(
          {.status = 431, .code = Code::invalid, .message = "the request's head is too large"});
    }
    if (receive(kSmall, deadline)) continue;
    if (unread().empty()) return std::nullopt;
    fail(Code::unavailable, "the peer left in the middle of a head");
  }
  http::Head head;
  const std::string_view bytes = unread().substr(0, scanner.size());
  if (const auto problem = http::parse_request_head(bytes, kLimits, head)) throw BadHead(*problem);
  use(scanner.size());
  return head;
}

bool Wire::fill(std::size_t room) {
  return receive(room, hurried_.is_never() ? Deadline::after(patience_.read) : hurried_);
}

void Wire::rest() {
  if (begin_ == buffer_.size()) {
    buffer_ = {};
    begin_ = 0;
  }
}

void Wire::write(std::initializer_list<std::string_view> pieces) {
  std::array<iovec, 5> vectors{};
  std::size_t count = 0;
  std::size_t size = held_.size();
  const auto add = [&](std::string_view piece) {
    if (!piece.empty()) vectors.at(count++) = {const_cast<char*>(piece.data()), piece.size()};
  };
  for (const std::string_view piece : pieces) size += piece.size();
  if (holds_back_ && size <= kMostHeld) {
    for (const std::string_view piece : pieces) held_ += piece;
    return;
  }
  const std::string held = std::exchange(held_, {});
  add(held);
  for (const std::string_view piece : pieces) add(piece);
  send(std::span(vectors).first(count));
}

void Wire::flush() {
  std::string held = std::exchange(held_, {});
  iovec whole{.iov_base = held.data(), .iov_len = held.size()};
  if (!held.empty()) send({&whole, 1});
}

void Wire::let_go() {
  holds_back_ = false;
  flush();
}

void Wire::send(std::span<iovec> pieces) const {
  iovec* next = pieces.data();
  std::size_t count = pieces.size();
  while (count > 0) {
    msghdr message{};
    message.msg_iov = next;
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      wait_for(POLLOUT, Deadline::after(patience_.write), "read");
      continue;
    }
    if (sent < 0) fail(Code::unavailable, "the peer left: {}", errno_text(errno));
    for (auto done = static_cast<std::size_t>(sent); count > 0; ++next, --count) {
      if (done < next->iov_len) {
        next->iov_base = static_cast<char*>(next->iov_base) + done;
        next->iov_len -= done;
        break;
      }
      done -= next->iov_len;
    }
  }
}

void Wire::send_file(int file, std::uint64_t offset, std::uint64_t size) {
  flush();
  auto position = static_cast<off_t>(offset);
  while (size > 0) {
    const std::size_t most = std::min<std::uint64_t>(size, kFilePiece);
    // Where the socket's buffer is full there is nothing to do but wait; not asleep in the call,
    // where patience would not count.
    wait_for(POLLOUT, Deadline::after(patience_.write), "read");
    const ssize_t sent = ::sendfile(socket_.get(), file, &position, most);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent < 0) fail(Code::unavailable, "send a file: {}", errno_text(errno));
    if (sent == 0) fail(Code::conflict, "the file became shorter while it was sent");
    size -= static_cast<std::uint64_t>(sent);
  }
}

bool Wire::peer_left() const {
  pollfd looked{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&looked, 1, 0) > 0 && (looked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace hearth::serve
