// How a WebSocket comes into being.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "net/byte_stream.h"
#include "net/websocket.h"
#include "net/words.h"

namespace hearth::net {

struct WebSocketRequest {
  Headers headers;     // of the request
  std::string unread;  // what the client sent ahead
  WebSocketOptions options;
  Timeouts timeouts;
};

// Throws Error(invalid) for a handshake that cannot succeed, while it can still be answered.
void check_websocket_request(const WebSocketRequest& request);

// `stream` must outlive the WebSocket.
boost::asio::awaitable<std::unique_ptr<WebSocket>> accept_websocket(ByteStream& stream,
                                                                    WebSocketRequest request);

// Throws Error with the code of the status that a server declined with.
boost::asio::awaitable<std::unique_ptr<WebSocket>> connect_websocket(
    std::unique_ptr<ByteStream> stream, Request request, WebSocketOptions options,
    Timeouts timeouts);

}  // namespace hearth::net
