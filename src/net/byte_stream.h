// A connection as bytes: TCP or unix, plain or TLS, or memory in a fuzzer.
//
// Belongs to the thread of its executor; one read and one write may wait at the same time. Errors
// are returned, not thrown: a peer that leaves is an ordinary event. Back-pressure is the kernel's:
// a write ends when the socket has taken the bytes, and nothing is queued here.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>

#include "base/clock.h"

namespace hearth::net {

struct Transfer {
  // asio::error::eof at the end of the stream, asio::error::timed_out when patience ran out.
  boost::system::error_code error;
  std::size_t bytes = 0;
};

// What a write may gather: a chunk's size line, its bytes, its end.
using Gather = std::array<boost::asio::const_buffer, 3>;

class ByteStream {
 public:
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  virtual ~ByteStream() = default;

  virtual boost::asio::any_io_executor executor() = 0;

  // At least one byte, or an error. A read that timed out lost nothing and may be repeated.
  virtual boost::asio::awaitable<Transfer> read_some(boost::asio::mutable_buffer into,
                                                     Duration patience) = 0;
  // All of it, or an error. Patience is for each step forward, so that a slow peer may take long
  // and a stuck one may not.
  virtual boost::asio::awaitable<Transfer> write(Gather data, Duration patience) = 0;

  // Says goodbye (TLS close_notify, FIN), then reads what the peer still sends until it says so
  // too or patience runs out: closing at once would make the kernel destroy our last bytes on
  // their way (RFC 9112 section 9.6). Closed afterwards.
  virtual boost::asio::awaitable<void> finish(Duration patience) = 0;

  // Returns when the peer has closed its side or the stream was cut.
  virtual boost::asio::awaitable<void> wait_disconnect() = 0;

  // Whether the peer is still there and has sent nothing that was not read.
  virtual bool is_quiet() = 0;

  // Closes at once; whatever waits ends with an error. Idempotent.
  virtual void cut() = 0;

  virtual std::string peer() const = 0;                      // as in Request::peer
  virtual std::string peer_certificate() const = 0;          // as in Request::peer_certificate
  virtual std::vector<std::string> peer_groups() const = 0;  // as in Request::peer_groups
};

}  // namespace hearth::net
