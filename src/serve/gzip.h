// Gzip (RFC 1952), both ways, piece by piece.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "serve/exchange.h"

namespace hearth::serve {

// What is inside: any number of members, one after the other. The source throws Error(invalid) for
// bytes that are no such thing, or end too early.
Source inflate_gzip(Source compressed);

// Compresses lightly: these bytes mostly travel within a machine. What turns out to be
// incompressible is stored.
class GzipWriter {
 public:
  using Sink = std::function<void(std::string_view)>;

  explicit GzipWriter(Sink sink);
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;
  ~GzipWriter();

  void write(std::string_view piece);
  void end();

 private:
  void run(std::string_view piece, int flush);
  void judge();

  struct Stream;
  Sink sink_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace hearth::serve
