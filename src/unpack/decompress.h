// A compressed stream, decompressed piece by piece: gzip (any number of members) or zstd (any
// number of frames), or plain bytes.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "image/image.h"

namespace hearth::unpack {

class Decompressor {
 public:
  // Takes what comes out, in pieces that are gone when it returns.
  using Sink = std::function<void(std::span<const char>)>;

  static std::unique_ptr<Decompressor> make(image::Compression compression, Sink sink);

  Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  virtual ~Decompressor() = default;

  // Throws Error(invalid) for bytes that are no such stream, including any after its end that do
  // not begin another one.
  virtual void add(std::span<const char> bytes) = 0;
  // After the last byte. Throws Error(invalid) when the stream is not at its end.
  virtual void finish() = 0;
};

// Reads `input_fd` to its end and writes what is in it to `output_fd`. Where `digest` is not empty
// the input must be a file, and is read twice: nothing is parsed before its digest is right, and
// nothing counts if it changed in between. Returns the digest of what came out. Throws Error:
// invalid, exhausted (more than `max_bytes` came out), unavailable (nobody reads).
struct Decompressed {
  std::string digest;
  std::uint64_t bytes = 0;
};
struct DecompressRequest {
  int input_fd = -1;
  int output_fd = -1;
  image::Compression compression = image::Compression::none;
  std::string digest;
  std::uint64_t max_bytes = 0;
};
Decompressed decompress(const DecompressRequest& request);

}  // namespace hearth::unpack
