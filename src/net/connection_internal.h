// The server's end of one connection: request after request until someone has enough.
//
//   read_head ──▶ route, guard ──▶ handler ──▶ settle ──▶ read_head (keep-alive)
//       └── refused ──▶ answer ──▶ finish        └──▶ finish
//
// Lives on one thread. Knows no sockets, so that a fuzzer can run it over memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "net/ahead_internal.h"
#include "net/byte_stream.h"
#include "net/message_internal.h"
#include "net/router.h"
#include "net/stream.h"
#include "net/words.h"

namespace hearth::net {

class Connection {
 public:
  // All of these must outlive the connection.
  Connection(ByteStream& stream, const Router& router, const Limits& limits,
             const Timeouts& timeouts);

  // Returns when the connection is closed. Throws only when cancelled.
  boost::asio::awaitable<void> serve();

  // From now on no further request is begun; without one under way the connection is cut.
  void drain();
  // Ends it at once, whatever is under way.
  void cut();
  bool is_draining() const { return draining_; }
  void on_drain(std::function<void()> told);

  // What a Stream does, each as there.
  boost::asio::awaitable<std::string_view> read_some();
  boost::asio::awaitable<void> write_head(Response head);
  boost::asio::awaitable<void> write(std::string_view bytes);
  boost::asio::awaitable<void> respond(Response response);
  boost::asio::awaitable<std::unique_ptr<WebSocket>> upgrade(WebSocketOptions options);
  boost::asio::awaitable<ByteStream*> take_over(Response head);
  boost::asio::awaitable<void> wait_disconnect() { return stream_.wait_disconnect(); }
  bool wants_websocket() const { return exchange_.upgrade_headers.has_value(); }
  void set_read_patience(Duration patience) { exchange_.read_patience = patience; }

 private:
  // How the response's body goes out.
  enum class Sending {
    nothing,    // no head yet
    counted,    // Content-Length
    chunked,    //
    until_end,  // HTTP/1.0 without a length
    discarded,  // HEAD, 204, 304: what a handler writes is dropped
    over,       // ended, or the connection belongs to someone else
  };
  // What is known about the request being served.
  struct Exchange {
    bool keep_alive = false;
    bool is_head_request = false;
    bool owes_continue = false;  // the client waits for 100 before it sends the body
    int minor = 1;
    std::optional<Headers> upgrade_headers;  // of a request that asks for WebSocket
    Sending sending = Sending::nothing;
    std::uint64_t left_to_send = 0;                    // of Sending::counted
    std::optional<std::uint64_t> max_body_bytes = {};  //
    std::uint64_t body_bytes = 0;                      // read so far
    Duration read_patience{};
    bool is_lost = false;        // the connection is of no more use
    bool is_taken_over = false;  // by a WebSocket or a proxy
    std::function<void()> on_drain = {};
  };

  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<void> serve_request(Request& request);
  std::optional<Problem> accept_head(Request& request);
  boost::asio::awaitable<void> run_unary(const Router::Route& route, Request& request);
  boost::asio::awaitable<void> run_stream(const Router::Route& route, const Request& request);
  boost::asio::awaitable<void> answer_problem(Problem problem, std::string allow,
                                              const Router::Surface& surface,
                                              const Request& request);
  boost::asio::awaitable<void> end_response();
  boost::asio::awaitable<bool> settle();
  static bool wants_websocket(const Request& request);
  std::vector<Field> frame(unsigned status, std::optional<std::uint64_t> length);
  std::string begin_response(const Response& head, std::optional<std::uint64_t> length);
  bool can_keep_alive() const;
  boost::asio::awaitable<void> send(Gather data);

  ByteStream& stream_;
  const Router& router_;
  const Limits& limits_;
  const Timeouts& timeouts_;
  MessageReader reader_;
  std::optional<AheadStream> ahead_;  // for whoever took over
  Exchange exchange_;
  bool is_first_ = true;
  bool is_idle_ = true;  // no request under way
  bool draining_ = false;
};

}  // namespace hearth::net
