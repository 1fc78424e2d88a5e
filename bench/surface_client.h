// A client of a sandbox's surfaces with nothing in it that takes time: one connection, requests
// rendered once, and just enough reading to know where an answer ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "linux/fd.h"

namespace hearth::bench {

class SurfaceClient {
 public:
  explicit SurfaceClient(linux::Fd connection) : connection_(std::move(connection)) {}

  // Sends the request as it is and reads the whole answer, which must have a length or chunks.
  // Throws Error: unavailable, and internal for a status other than 2xx. The body, chunks put
  // together, stays until the next call.
  std::string_view ask(std::string_view request);

  // The same with a body of `size` bytes out of a file behind the head.
  std::string_view upload(std::string_view head, int file, std::uint64_t size);

  // Reads a body without keeping it: how much there was.
  std::uint64_t download(std::string_view request);

 private:
  void send(std::string_view bytes) const;
  bool receive_more();
  std::string receive_head();
  std::string_view receive_body(const std::string& head);

  linux::Fd connection_;
  std::string buffer_;
  std::string body_;
};

// "POST /path HTTP/1.1 ..." with what every request has.
std::string render_request(std::string_view method, std::string_view target,
                           std::string_view content_type, std::string_view body);

}  // namespace hearth::bench
