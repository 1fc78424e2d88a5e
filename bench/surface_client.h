// A client of our servers with nothing in it that takes time: one connection, requests rendered
// once, and just enough reading to know where an answer ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "linux/fd.h"

struct ssl_st;

namespace hearth::bench {

struct TlsEnd {
  void operator()(ssl_st* tls) const;
};
using Tls = std::unique_ptr<ssl_st, TlsEnd>;

// A TLS session with whoever is there, whatever its certificate says: the servers here are ours.
// Borrows the connection. Throws Error(unavailable).
Tls begin_tls(int connection_fd);

class SurfaceClient {
 public:
  // `tls`: null for a connection without.
  explicit SurfaceClient(linux::Fd connection, Tls tls = nullptr)
      : connection_(std::move(connection)), tls_(std::move(tls)) {}

  // Sends the request as it is and reads the whole answer, which must have a length or chunks.
  // Throws Error: unavailable, and internal for a status other than 2xx. The body, chunks put
  // together, stays until the next call.
  std::string_view ask(std::string_view request);
  // The same in two, for who has many connections and one thread: readable() says when to read.
  void send(std::string_view request) const;
  std::string_view answer();
  int readable() const { return connection_.get(); }

  // The same with a body of `size` bytes out of a file behind the head.
  std::string_view upload(std::string_view head, int file, std::uint64_t size);

  // Reads a body without keeping it: how much there was.
  std::uint64_t download(std::string_view request);

  // An answer that goes on: reads its head, and then until `text` has come.
  void begin_stream(std::string_view request);
  void wait_for_text(std::string_view text);
  // The next line of it, without its end; stays until the next call.
  std::string_view next_line();
  // For another thread: whoever waits for more hears that there is none.
  void hang_up() const;

 private:
  std::size_t receive(char* room, std::size_t size);
  bool receive_more();
  std::string receive_head();
  std::string_view receive_body(const std::string& head);

  linux::Fd connection_;
  Tls tls_;
  std::string buffer_;
  std::string body_;
  std::size_t lines_read_ = 0;  // how much of buffer_ next_line() has given away
};

// A connection to a port of this machine.
linux::Fd connect_to_port(std::uint16_t port);

// "POST /path HTTP/1.1 ..." with what every request has.
std::string render_request(std::string_view method, std::string_view target,
                           std::string_view content_type, std::string_view body);

}  // namespace hearth::bench
