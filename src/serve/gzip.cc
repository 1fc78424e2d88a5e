#include "serve/gzip.h"

#include <zlib.h>

#include <array>
#include <utility>

namespace hearth::serve {
namespace {

// Added to the number of window bits: a header of gzip, not of zlib.
constexpr int kGzip = 16;
constexpr std::size_t kPiece = std::size_t{64} << 10;
// After so many bytes it is known whether compressing is worth the time.
constexpr std::size_t kTrial = std::size_t{128} << 10;

Bytef* bytes_of(std::string_view text) {
  // zlib does not write to its input; its interface is older than const.
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

class Inflater {
 public:
  explicit Inflater(Source source) : source_(std::move(source)), output_(kPiece, '\0') {
    if (::inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK)
      fail(Code::exhausted, "no memory to decompress with");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { ::inflateEnd(&stream_); }

  std::string_view read() {
    stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
    stream_.avail_out = static_cast<uInt>(output_.size());
    while (stream_.avail_out == output_.size()) {
      if (stream_.avail_in == 0 && !fill()) break;
      const int result = ::inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        between_members_ = true;
        ::inflateReset(&stream_);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail(Code::invalid, "the body is not gzip");
      } else {
        between_members_ = false;
      }
    }
    return std::string_view(output_).substr(0, output_.size() - stream_.avail_out);
  }

 private:
  // False at the end of the source, which must be one of a member too.
  bool fill() {
    if (!is_over_) {
      const std::string_view piece = source_();
      is_over_ = piece.empty();
      stream_.next_in = bytes_of(piece);
      stream_.avail_in = static_cast<uInt>(piece.size());
    }
    if (is_over_ && !between_members_) fail(Code::invalid, "the gzip body ends too early");
    return !is_over_;
  }

  Source source_;
  std::string output_;
  z_stream stream_{};
  bool between_members_ = false;
  bool is_over_ = false;
};

}  // namespace

Source inflate_gzip(Source compressed) {
  auto inflater = std::make_shared<Inflater>(std::move(compressed));
  return [inflater] { return inflater->read(); };
}

struct GzipWriter::Stream {
  z_stream z{};
  bool judged = false;
  std::array<char, kPiece> output;
};

GzipWriter::GzipWriter(Sink sink) : sink_(std::move(sink)), stream_(std::make_unique<Stream>()) {
  constexpr int kMemory = 8;  // zlib's default
  if (::deflateInit2(&stream_->z, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    fail(Code::exhausted, "no memory to compress with");
  }
}

GzipWriter::~GzipWriter() {
  ::deflateEnd(&stream_->z);
}

void GzipWriter::write(std::string_view piece) {
  run(piece, Z_NO_FLUSH);
  if (!stream_->judged && stream_->z.total_in >= kTrial) judge();
}

void GzipWriter::end() {
  run({}, Z_FINISH);
}

void GzipWriter::run(std::string_view piece, int flush) {
  z_stream& z = stream_->z;
  z.next_in = bytes_of(piece);
  z.avail_in = static_cast<uInt>(piece.size());
  do {
    z.next_out = reinterpret_cast<Bytef*>(stream_->output.data());
    z.avail_out = kPiece;
    ::deflate(&z, flush);
    if (z.avail_out < kPiece) sink_({stream_->output.data(), kPiece - z.avail_out});
  } while (z.avail_out == 0);
}

// Less than a tenth saved: the rest goes as it is.
void GzipWriter::judge() {
  stream_->judged = true;
  z_stream& z = stream_->z;
  if (z.total_out < z.total_in / 10 * 9) return;
  // Changing the level flushes, which needs room for what is pending.
  run({}, Z_BLOCK);
  z.next_out = reinterpret_cast<Bytef*>(stream_->output.data());
  z.avail_out = kPiece;
  ::deflateParams(&z, Z_NO_COMPRESSION, Z_DEFAULT_STRATEGY);
  if (z.avail_out < kPiece) sink_({stream_->output.data(), kPiece - z.avail_out});
}

}  // namespace hearth::serve
