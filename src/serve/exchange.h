// One request and its answer, for a handler that blocks where it must.
//
// Belongs to the thread that handles it. All calls throw Error: invalid (what came is not HTTP),
// unavailable (the peer left, or stopped reading), timeout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/body.h"
#include "http/http.h"
#include "serve/allowance.h"
#include "serve/wire.h"

namespace hearth::serve {

// A body, or something made of one, piece by piece: valid until the next call; empty: it is over.
using Source = std::function<std::string_view()>;

class Exchange {
 public:
  // `wire` must outlive the exchange, and so must the allowance that bodies are kept in. Throws
  // BadHead.
  Exchange(Wire& wire, http::Head head, Allowance* allowance = nullptr);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() = default;

  // Method, target, path, query, headers; the body is read with what follows.
  const http::Request& request() const { return request_; }
  // For a router: the parameters of its pattern.
  http::Request& request() { return request_; }

  std::string_view read_piece();
  Source source() {
    return [this] { return read_piece(); };
  }
  // The rest of the body. Throws Error(exhausted) if it is more than `most`, or than all requests
  // together may keep.
  std::string read_body(std::size_t most);
  // What is kept of the body: for those who read it piece by piece, or are done with it before the
  // exchange is.
  Share& kept() { return kept_; }

  // Reads what nobody wants, so that a client that sends first and listens later hears the answer:
  // a little, and for a moment. What is left then ends with the connection: false.
  bool drain();

  // Whether the peer holds its body back until somebody reads it (Expect: 100-continue).
  bool is_body_held_back() const { return expects_continue_; }

  // An answer in one.
  void respond(const http::Response& response);

  // An answer whose body comes piece by piece, each sent at once. With a length exactly that much
  // is to follow.
  void begin(const http::Response& head, std::optional<std::uint64_t> length = std::nullopt);
  void write(std::string_view piece);
  void send_file(int fd, std::uint64_t offset, std::uint64_t size);
  void end();
  // From now on small pieces go out together: with flush(), which must come before any wait, or
  // with the end.
  void hold_back() { wire_.hold_back(); }
  void flush() { wire_.flush(); }

  bool begun() const { return begun_; }
  // The connection is closed when the handler returns; in the middle of a body the peer sees that
  // something is missing.
  void abandon() { keep_alive_ = false; }

  // Whether the peer has gone, as far as can be seen without reading. A pipelined request is no
  // departure. For poll(2): POLLRDHUP on fd().
  bool peer_left() const { return wire_.peer_left(); }
  int fd() const { return wire_.fd(); }

  // For the server, when the handler is done: whether the connection can carry another request.
  bool finish();

 private:
  std::string render(const http::Response& response, std::vector<http::Field> framing);
  void account(std::uint64_t size);

  Wire& wire_;
  Share kept_;
  http::Request request_;
  http::BodyDecoder decoder_;
  std::size_t window_;     // what one read takes
  std::size_t shown_ = 0;  // bytes of the buffer that the caller looks at
  bool expects_continue_ = false;
  bool is_old_ = false;  // HTTP/1.0: knows no chunks
  bool keep_alive_ = true;
  bool begun_ = false;
  bool ended_ = false;
  bool chunked_ = false;
  std::optional<std::uint64_t> left_;  // to be written, of a promised length
};

}  // namespace hearth::serve
