// One request and its response, for a handler that reads and writes piece by piece.
//
// Belongs to the handler until it returns, on the connection's thread. One coroutine may read while
// another writes. Every call throws Error once the peer has left (unavailable) or kept us waiting
// too long (timeout); a handler need not catch it.
//
// A handler that returns has ended its response. One that throws before write_head() gets an error
// response written in its name; one that throws later has its connection cut, which is the only
// way to tell the client that the response is not complete.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "net/words.h"

namespace hearth::net {

class ByteStream;
class Connection;
class WebSocket;
struct WebSocketOptions;

class Stream {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() = default;

  // The next piece of the request's body, valid until the next read; empty: it is over. The first
  // call answers "Expect: 100-continue". Throws Error(invalid) for a malformed body and
  // Error(exhausted) past the route's max_body_bytes.
  boost::asio::awaitable<std::string_view> read_some();
  // What is left of the body. Throws Error(exhausted) past `limit`.
  boost::asio::awaitable<std::string> read_all(std::size_t limit);
  // How long read_some() waits; Timeouts::body unless told. For bodies that people type.
  void set_read_patience(Duration patience);

  // Once, before write(). With a Content-Length exactly so many bytes must follow; without, the
  // response is chunked (to HTTP/1.0: ends with the connection). `head.body` must be empty.
  boost::asio::awaitable<void> write_head(Response head);
  // Returns when the kernel has taken all of `bytes`, that is: when the peer keeps up.
  boost::asio::awaitable<void> write(std::string_view bytes);
  // A whole response in one go, in place of the two above.
  boost::asio::awaitable<void> respond(Response response);

  // Switches to WebSocket; throws Error(invalid) for a request that does not ask for it. The
  // WebSocket must not outlive the handler.
  bool wants_websocket() const;
  boost::asio::awaitable<std::unique_ptr<WebSocket>> upgrade(WebSocketOptions options);

  // Answers 101 with these headers and hands over the connection: for proxies. Valid until the
  // handler returns. The body of the request must have been read.
  boost::asio::awaitable<ByteStream*> take_over(Response head);

  // Returns when the client has closed its side: for handlers that wait for something else than
  // the client. A client that only half-closed looks the same.
  boost::asio::awaitable<void> wait_disconnect();

  // The server is stopping and would like to see this handler come to an end.
  bool is_draining() const;
  // `told` is called once, on the connection's thread, when that begins, or now if it has. For
  // handlers that wait for days: none should look again and again.
  void on_drain(std::function<void()> told);

 private:
  friend class Connection;
  explicit Stream(Connection& connection) : connection_(connection) {}

  Connection& connection_;
};

}  // namespace hearth::net
