// For tests of surfaces: a server on a free port of the loopback, and a client that sends exactly
// what it is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"
#include "linux/fd.h"
#include "serve/server.h"

namespace hearth::serve {

struct Listening {
  linux::Fd socket;
  std::uint16_t port = 0;
};
Listening listen_on_loopback();

// Blocking, with a patience of seconds. Throws Error.
class TestClient {
 public:
  explicit TestClient(std::uint16_t port);

  void send(std::string_view bytes);

  // The next response with all of its body; chunks put together.
  http::Response receive(bool has_body = true);
  // The next response's head; its body follows with receive_piece().
  http::Response receive_head();
  // What arrives next of the body: one chunk, or what is left of a counted one. Nothing at its end.
  std::optional<std::string> receive_piece();

  // A request in one and its response. Sets Host and Content-Length.
  http::Response ask(const http::Request& request);

  // Whether the server closes the connection before it sends anything.
  bool is_closed();
  void close() { socket_.reset(); }

 private:
  bool fill();
  std::string take_line();
  std::string take(std::size_t count);

  linux::Fd socket_;
  std::string buffer_;
  bool chunked_ = false;
  bool until_end_ = false;
  std::size_t left_ = 0;
};

}  // namespace hearth::serve
