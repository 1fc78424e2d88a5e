// One end of a connection, for tests that say exactly what they want and see exactly what comes.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "gateway/dialler.h"
#include "http/body.h"
#include "http/head.h"
#include "linux/fd.h"

namespace hearth::gateway {

using namespace std::chrono_literals;

inline constexpr Duration kPatience = 20s;

struct Answer {
  http::Head head;
  std::string body;
  bool is_whole = false;  // its body ended as the head said
};

// One end of a connection, blocking, with patience.
class Peer {
 public:
  explicit Peer(linux::Fd socket) : socket_(std::move(socket)) {}

  static Peer connect(std::uint16_t port) {
    Dialled dialled = dial_tcp("127.0.0.1", port);
    EXPECT_TRUE(dialled.socket);
    linux::set_nonblocking(dialled.socket.get(), false);
    return Peer(std::move(dialled.socket));
  }

  int fd() const { return socket_.get(); }
  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;  // what it missed, a test sees
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  // More of what comes. False: it ended.
  bool more() {
    pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
    if (::poll(&wait, 1, static_cast<int>(patience)) != 1) {
      ADD_FAILURE() << "nothing came";
      return false;
    }
    char piece[16384];
    const ssize_t count = ::recv(socket_.get(), piece, sizeof piece, 0);
    was_reset_ = count < 0;
    if (count <= 0) return false;
    bytes_.append(piece, static_cast<std::size_t>(count));
    return true;
  }
  bool was_reset() const { return was_reset_; }
  std::string& bytes() { return bytes_; }
  // Until it ends.
  std::string rest() {
    while (more()) {
    }
    return std::exchange(bytes_, {});
  }
  std::string read(std::size_t count) {
    while (bytes_.size() < count && more()) {
    }
    std::string text = bytes_.substr(0, count);
    bytes_.erase(0, count);
    return text;
  }
  // A head as it came; empty for none.
  std::string read_head() {
    while (bytes_.find("\r\n\r\n") == std::string::npos) {
      if (!more()) return {};
    }
    return read(bytes_.find("\r\n\r\n") + 4);
  }
  // Of a body that a head announced: the bytes as they came on the wire go to `raw`.
  std::string read_body(const http::Framing& framing, bool& is_whole) {
    http::BodyDecoder decoder(framing);
    std::string body;
    while (!decoder.is_done()) {
      const auto step = decoder.take(bytes_);
      if (step.bad) return body;
      body += step.body;
      const bool is_stuck = step.used == 0;
      bytes_.erase(0, step.used);
      if (is_stuck && !more()) {
        is_whole = decoder.ends_with_connection() && !was_reset_;
        return body;
      }
    }
    is_whole = true;
    return body;
  }
  Answer read_answer(bool for_head = false) {
    Answer answer;
    const std::string head = read_head();
    if (const auto problem = http::parse_response_head(head, {}, for_head, answer.head)) {
      ADD_FAILURE() << problem->message << " in '" << head << "'";
      return answer;
    }
    answer.body = read_body(answer.head.framing, answer.is_whole);
    return answer;
  }
  http::Head read_request(std::string& body) {
    http::Head head;
    const std::string text = read_head();
    if (text.empty()) return head;
    if (const auto problem = http::parse_request_head(text, {}, head)) {
      ADD_FAILURE() << problem->message << " in '" << text << "'";
    }
    bool is_whole = false;
    body = read_body(head.framing, is_whole);
    return head;
  }
  void finish() { ::shutdown(socket_.get(), SHUT_WR); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    const std::lock_guard lock(*closing_);
    socket_.reset();
  }
  // Ends what another thread waits for here. That thread may be closing it, and the number of a
  // closed socket may be somebody else's: hence the lock.
  void cut() {
    const std::lock_guard lock(*closing_);
    ::shutdown(socket_.get(), SHUT_RDWR);
  }
  Answer ask(std::string_view request) {
    send(request);
    return read_answer();
  }

 private:
  linux::Fd socket_;
  std::unique_ptr<std::mutex> closing_ = std::make_unique<std::mutex>();
  std::string bytes_;
  bool was_reset_ = false;
};

}  // namespace hearth::gateway
