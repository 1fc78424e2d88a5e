// A WebSocket (RFC 6455), either end.
//
// On the thread of its connection. One coroutine may read while others write: messages do not mix,
// writers take turns, and each waits until the peer has taken its message. Pings are answered, and
// sent to a peer that is silent, as long as someone reads. No compression: an attacker who can
// choose part of a message could measure the rest.
//
// Every coroutine that uses it must have ended before it is destroyed. Destroying it without
// close() leaves the peer to find out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"

namespace hearth::net {

struct WebSocketOptions {
  // A server: those it speaks; the first of the client's list that is among them is chosen, and a
  // client that offers only others is refused. A client: what it offers, best first.
  std::vector<std::string> subprotocols = {};
  // More ends the connection with status 1009. Terminals and exec send 32 KiB at most.
  std::size_t max_message_bytes = 1 << 20;
  // A peer that was silent for so long while we read, pings included, is given up.
  Duration idle = std::chrono::seconds(60);
  // How long close() waits for the peer's answer, whatever else the peer sends meanwhile.
  Duration close_wait = std::chrono::seconds(5);
};

enum class MessageKind { text, binary };

struct Message {
  MessageKind kind = MessageKind::binary;
  std::string data;
};

// Status codes of RFC 6455 section 7.4.1.
enum class CloseCode : std::uint16_t {
  normal = 1000,
  going_away = 1001,
  protocol_error = 1002,
  policy = 1008,
  too_big = 1009,
  internal = 1011,
};

class WebSocket {
 public:
  struct State;
  explicit WebSocket(std::unique_ptr<State> state);
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;
  ~WebSocket();

  // The next message, whole; nothing after the peer's close. Throws Error: exhausted (too big),
  // invalid (not WebSocket, text that is not UTF-8), timeout, unavailable.
  boost::asio::awaitable<std::optional<Message>> read();
  // Text must be UTF-8. Throws Error: timeout, unavailable.
  boost::asio::awaitable<void> write(std::string_view data, MessageKind kind);
  boost::asio::awaitable<void> ping();
  // Says why and waits for the peer to agree; after close_wait the connection is cut. Does not
  // throw: it is over either way.
  boost::asio::awaitable<void> close(CloseCode code, std::string_view reason = {});

  // What was agreed on; empty: nothing.
  const std::string& subprotocol() const;
  // The status that the peer closed with; 1005 if it gave none. Nothing before that.
  std::optional<std::uint16_t> peer_close_code() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace hearth::net
