// A SPDY connection with a client, over a connection of its own or within WebSocket messages.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "remote/tasks_internal.h"
#include "spdy/frames.h"

namespace hearth::net {
class ByteStream;
class Stream;
class WebSocket;
}  // namespace hearth::net

namespace hearth::remote {

// Where the frames travel.
class SpdyTransport {
 public:
  SpdyTransport() = default;
  SpdyTransport(const SpdyTransport&) = delete;
  SpdyTransport& operator=(const SpdyTransport&) = delete;
  virtual ~SpdyTransport() = default;

  enum class Outcome { bytes, silence, end };
  struct Arrival {
    Outcome outcome = Outcome::bytes;
    std::string bytes;
  };
  // Silence: nothing came for a while, and it is time to ask whether somebody is there.
  virtual boost::asio::awaitable<Arrival> read() = 0;
  virtual boost::asio::awaitable<void> write(std::string_view head, std::string_view bytes) = 0;
  // Ends the connection, and the reader among `tasks`. Does not throw.
  virtual boost::asio::awaitable<void> close(Tasks& tasks) = 0;
  virtual boost::asio::awaitable<void> wait_gone() = 0;
  virtual void cut() = 0;
};

// Both borrow what they are given.
class StreamTransport final : public SpdyTransport {
 public:
  explicit StreamTransport(net::ByteStream& stream) : stream_(stream) {}
  boost::asio::awaitable<Arrival> read() override;
  boost::asio::awaitable<void> write(std::string_view head, std::string_view bytes) override;
  boost::asio::awaitable<void> close(Tasks& tasks) override;
  boost::asio::awaitable<void> wait_gone() override;
  void cut() override;

 private:
  net::ByteStream& stream_;
};

class TunnelTransport final : public SpdyTransport {
 public:
  TunnelTransport(net::Stream& stream, net::WebSocket& socket) : stream_(stream), socket_(socket) {}
  boost::asio::awaitable<Arrival> read() override;
  boost::asio::awaitable<void> write(std::string_view head, std::string_view bytes) override;
  boost::asio::awaitable<void> close(Tasks& tasks) override;
  boost::asio::awaitable<void> wait_gone() override;
  void cut() override {}  // closing it has a deadline of its own

 private:
  net::Stream& stream_;
  net::WebSocket& socket_;
};

class SpdyLink {
 public:
  SpdyLink(const boost::asio::any_io_executor& executor, SpdyTransport& transport)
      : transport_(transport), turn_(executor), decoder_(spdy::Side::client) {}

  // What the client says next, but pings, which are answered; nothing when it has left. Throws
  // Error when it breaks the protocol or is silent for too long.
  boost::asio::awaitable<std::optional<spdy::Event>> read();

  // Each returns when the client has taken it. Throw Error.
  boost::asio::awaitable<void> accept(spdy::StreamId stream);
  boost::asio::awaitable<void> send(spdy::StreamId stream, std::string_view bytes,
                                    bool is_end = false);
  boost::asio::awaitable<void> reset(spdy::StreamId stream, spdy::ResetReason reason);
  boost::asio::awaitable<void> say_goodbye();

  SpdyTransport& transport() { return transport_; }

 private:
  boost::asio::awaitable<void> write(std::string head, std::string_view bytes = {});

  SpdyTransport& transport_;
  Bell turn_;  // of the next writer
  bool is_writing_ = false;
  spdy::Decoder decoder_;
  spdy::Encoder encoder_;
  spdy::StreamId last_opened_ = 0;
  std::uint32_t next_ping_ = 2;  // even: ours
};

}  // namespace hearth::remote
