#include "unpack/decompress.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "linux/fd.h"
#include "unpack/byte_input.h"
#include "unpack/sha256.h"

namespace hearth::unpack {
namespace {

constexpr std::size_t kPiece = std::size_t{128} << 10;

class Plain final : public Decompressor {
 public:
  explicit Plain(Sink sink) : sink_(std::move(sink)) {}

  void add(std::span<const char> bytes) override { sink_(bytes); }
  void finish() override {}

 private:
  Sink sink_;
};

class Gzip final : public Decompressor {
 public:
  explicit Gzip(Sink sink) : sink_(std::move(sink)), out_(kPiece) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK)
      fail(Code::exhausted, "no memory to decompress");
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() override { inflateEnd(&stream_); }

  void add(std::span<const char> bytes) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    bool more = stream_.avail_in > 0;
    while (more) {
      at_end_ = false;
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        fail(Code::invalid, "the layer's gzip stream is broken: {}",
             stream_.msg == nullptr ? "no such thing" : stream_.msg);
      const std::size_t got = out_.size() - stream_.avail_out;
      if (got > 0) sink_({out_.data(), got});
      // Another member may follow, or nothing.
      at_end_ = result == Z_STREAM_END;
      if (at_end_) inflateReset(&stream_);
      // A full buffer may hide more, even when all input is taken.
      more = stream_.avail_in > 0 || (stream_.avail_out == 0 && !at_end_);
    }
  }

  void finish() override {
    if (!at_end_) fail(Code::invalid, "the layer's gzip stream is cut off");
  }

 private:
  Sink sink_;
  std::vector<char> out_;
  z_stream stream_{};
  bool at_end_ = false;
};

class Zstd final : public Decompressor {
 public:
  explicit Zstd(Sink sink) : sink_(std::move(sink)), out_(kPiece), context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) fail(Code::exhausted, "no memory to decompress");
    // 128 MiB, zstd's own limit for strangers' files.
    constexpr int kMaxWindowLog = 27;
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ZSTD_freeDCtx(context_); }

  void add(std::span<const char> bytes) override {
    ZSTD_inBuffer in{.src = bytes.data(), .size = bytes.size(), .pos = 0};
    bool more = in.size > 0;
    while (more) {
      ZSTD_outBuffer out{.dst = out_.data(), .size = out_.size(), .pos = 0};
      const std::size_t result = ZSTD_decompressStream(context_, &out, &in);
      if (ZSTD_isError(result) != 0)
        fail(Code::invalid, "the layer's zstd stream is broken: {}", ZSTD_getErrorName(result));
      if (out.pos > 0) sink_({out_.data(), out.pos});
      at_end_ = result == 0;
      more = in.pos < in.size || (out.pos == out.size && !at_end_);
    }
  }

  void finish() override {
    if (!at_end_) fail(Code::invalid, "the layer's zstd stream is cut off");
  }

 private:
  Sink sink_;
  std::vector<char> out_;
  ZSTD_DCtx* context_;
  bool at_end_ = false;
};

// From where the file stands to its end; it stands there again afterwards.
std::string digest_of_rest(int fd) {
  const off_t begin = ::lseek(fd, 0, SEEK_CUR);
  if (begin < 0) throw_errno("look for the start of the layer's archive");
  Sha256 sha256;
  ByteInput input(fd);
  std::vector<char> piece(kPiece);
  while (const std::size_t got = input.read(piece)) sha256.add({piece.data(), got});
  if (::lseek(fd, begin, SEEK_SET) != begin) throw_errno("go back to the layer's start");
  return sha256.digest();
}

void check_digest(const std::string& expected, const std::string& got) {
  if (got != expected) fail(Code::invalid, "the archive's digest is {}, not {}", got, expected);
}

}  // namespace

std::unique_ptr<Decompressor> Decompressor::make(image::Compression compression, Sink sink) {
  switch (compression) {
    case image::Compression::none:
      return std::make_unique<Plain>(std::move(sink));
    case image::Compression::gzip:
      return std::make_unique<Gzip>(std::move(sink));
    case image::Compression::zstd:
      return std::make_unique<Zstd>(std::move(sink));
  }
  fail(Code::invalid, "an unknown compression");
}

Decompressed decompress(const DecompressRequest& request) {
  if (!request.digest.empty()) check_digest(request.digest, digest_of_rest(request.input_fd));
  Sha256 inside;
  Decompressed done;
  const auto decompressor =
      Decompressor::make(request.compression, [&](std::span<const char> bytes) {
        done.bytes += bytes.size();
        if (done.bytes > request.max_bytes)
          fail(Code::exhausted, "the layer unpacks to more than {} bytes", request.max_bytes);
        inside.add(bytes);
        linux::write_all(request.output_fd, {bytes.data(), bytes.size()});
      });
  Sha256 outside;
  ByteInput input(request.input_fd);
  std::vector<char> piece(kPiece);
  while (const std::size_t got = input.read(piece)) {
    if (!request.digest.empty()) outside.add({piece.data(), got});
    decompressor->add({piece.data(), got});
  }
  decompressor->finish();
  if (!request.digest.empty()) check_digest(request.digest, outside.digest());
  done.digest = inside.digest();
  return done;
}

}  // namespace hearth::unpack
