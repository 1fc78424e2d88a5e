// A connection's bytes: blocking, with patience, and with what was read ahead.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "http/head.h"
#include "linux/fd.h"

namespace hearth::serve {

struct Patience {
  Duration head = std::chrono::seconds(10);   // for a head, from its first byte on
  Duration read = std::chrono::minutes(5);    // for the next bytes of a body
  Duration drain = std::chrono::seconds(2);   // for all of a body that nobody wants
  Duration write = std::chrono::hours(1);     // until a peer takes something: streams are slow
  Duration idle = std::chrono::seconds(640);  // between requests; longer than any client's
};

// A head that is none, with the status that says so.
class BadHead final : public Error {
 public:
  explicit BadHead(const http::Problem& problem)
      : Error(problem.code, problem.message), status_(problem.status) {}
  unsigned status() const { return status_; }

 private:
  unsigned status_;
};

class Wire {
 public:
  // A connected stream socket. `patience` must outlive the wire.
  Wire(linux::Fd socket, const Patience& patience);

  // The next head. Nothing when the peer left before its first byte. Throws BadHead, and Error:
  // timeout, unavailable.
  std::optional<http::Head> read_head();

  // What is here and not used up.
  std::string_view unread() const { return std::string_view(buffer_).substr(begin_); }
  void use(std::size_t count) { begin_ += count; }
  // Waits for more, at most `room` bytes of it. False when the peer will send none.
  bool fill(std::size_t room);
  // What comes until the next head is for nobody: there is little time for it.
  void hurry() { hurried_ = Deadline::after(patience_.drain); }
  // Gives memory back, between requests.
  void rest();

  // At most four pieces.
  void write(std::initializer_list<std::string_view> pieces);
  // From now on small pieces wait for flush(), or until they are many: each that goes out alone
  // wakes up everybody on its way.
  void hold_back() { holds_back_ = true; }
  // What was held back goes out.
  void flush();
  // Nothing is held back any more.
  void let_go();
  void send_file(int file, std::uint64_t offset, std::uint64_t size);

  bool peer_left() const;
  int fd() const { return socket_.get(); }

 private:
  void wait_for(short events, Deadline deadline, const char* what) const;
  bool receive(std::size_t room, Deadline deadline);
  void send(std::span<iovec> pieces) const;

  linux::Fd socket_;
  const Patience& patience_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::string held_;
  bool holds_back_ = false;
  Deadline hurried_ = Deadline::never();
};

}  // namespace hearth::serve
