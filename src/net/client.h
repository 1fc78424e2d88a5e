// HTTP/1.1 clients: one that blocks, for everyone, and one for coroutines.
//
// Both keep connections alive and reuse them. A request that cannot be sent on a kept connection,
// because the server closed it meanwhile, is sent once more on a new one if its method is
// idempotent. Redirects are not followed. A response with an error status is a response; Error is
// thrown when there is none: timeout, unavailable, unauthenticated (certificate), exhausted (longer
// than allowed), invalid (not HTTP).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "net/connect.h"
#include "net/websocket.h"
#include "net/words.h"

namespace hearth::net {

struct ClientOptions {
  Limits limits = {};
  Timeouts timeouts = {};
  // Kept for reuse. A server that is asked by more at once gets new connections.
  std::size_t idle_connections = 8;
};

struct FetchOptions {
  Duration timeout = std::chrono::seconds(30);  // for everything, from connecting to the last byte
  std::uint64_t max_body_bytes = 16 << 20;
  // At most for connecting, for the answer's head, and between two pieces of its body.
  Duration silence = std::chrono::hours(24);
  // At most for connecting and for the answer's head: for bodies that may be silent for long.
  Duration head = std::chrono::hours(24);
  // Told the head of the answer as soon as it is there, if set.
  std::function<void(const Response& head)> on_head = {};
};

// Gets the body of a response piece by piece, with the response's head. What it throws ends the
// exchange and comes out of the call. It blocks the thread that reads.
using BodyReceiver = std::function<void(const Response& head, std::string_view piece)>;

struct OpenOptions {
  Duration timeout = std::chrono::seconds(10);  // for connecting and sending the head
  // The body follows by Exchange::write(): as much as the Content-Length says, or in chunks.
  // Otherwise it is Request::body.
  bool streams_body = false;
};

// One request and its response on the way. Its connection is kept if both were completed.
// On one thread; one coroutine may write while another reads.
class Exchange {
 public:
  struct State;
  explicit Exchange(std::unique_ptr<State> state);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  // Returns when the kernel has taken it. After a failure read_head() may still find an answer:
  // the server's reason for not reading on.
  boost::asio::awaitable<void> write(std::string_view bytes);
  boost::asio::awaitable<void> end_request();

  // The head of the response, interim ones (100) skipped; its body is empty.
  boost::asio::awaitable<Response> read_head(Duration patience);
  // The next piece of the body, valid until the next call; empty: it is over.
  boost::asio::awaitable<std::string_view> read_some(Duration patience);

  // The connection, after a 101: for proxies.
  std::unique_ptr<ByteStream> take_over();
  // Returns when the server has closed its side.
  boost::asio::awaitable<void> wait_disconnect();

 private:
  friend class AsyncClient;
  std::unique_ptr<State> state_;
};

// For the coroutines of one thread. Exchanges may outlive it; the thread's io_context must.
class AsyncClient {
 public:
  explicit AsyncClient(Endpoint endpoint, ClientOptions options = {});
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;
  ~AsyncClient();

  boost::asio::awaitable<Response> fetch(Request request, FetchOptions options = {});
  // For bodies that are too large to keep: the response that is returned has none.
  boost::asio::awaitable<Response> fetch_into(Request request, BodyReceiver receiver,
                                              FetchOptions options = {});
  // A kept connection is used only where the request could be sent again.
  boost::asio::awaitable<std::unique_ptr<Exchange>> open(Request request, OpenOptions options = {});
  // On a connection of its own. The WebSocket may outlive the client.
  boost::asio::awaitable<std::unique_ptr<WebSocket>> open_websocket(Request request,
                                                                    WebSocketOptions options = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Thread-safe; each call blocks its caller and nobody else.
class Client {
 public:
  explicit Client(Endpoint endpoint, ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  Response fetch(Request request, FetchOptions options = {});
  // As of AsyncClient; the receiver runs on the caller's thread. A stop that is requested cuts the
  // connection at once, and the call throws Error(unavailable).
  Response fetch_into(Request request, BodyReceiver receiver, FetchOptions options = {},
                      const std::stop_token& stop = {});

 private:
  Response run(const std::function<boost::asio::awaitable<Response>(AsyncClient&)>& begin,
               const std::stop_token& stop);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::net
