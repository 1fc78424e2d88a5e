#include "spdy/header_block.h"

#include <zlib.h>

#include <array>
#include <cstdint>

#include "base/error.h"
#include "spdy/dictionary_internal.h"

namespace hearth::spdy {
namespace {

// What a peer may make us keep for one block; those of Kubernetes clients have three short headers.
constexpr std::size_t kMostText = std::size_t{64} << 10;
constexpr std::uint32_t kMostHeaders = 64;

const Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

// zlib reads through a pointer to what it will not change.
Bytef* input_of(std::string_view text) {
  return const_cast<Bytef*>(bytes_of(text));
}

void append_number(std::string& text, std::size_t number) {
  for (const int shift : {24, 16, 8, 0}) text += static_cast<char>((number >> shift) & 0xff);
}

class BlockReader {
 public:
  explicit BlockReader(std::string_view text) : text_(text) {}

  std::uint32_t number() {
    std::uint32_t value = 0;
    for (const char c : take(4)) value = (value << 8) | static_cast<unsigned char>(c);
    return value;
  }
  std::string_view text() { return take(number()); }
  bool is_over() const { return text_.empty(); }

 private:
  std::string_view take(std::size_t count) {
    if (count > text_.size()) fail(Code::invalid, "a SPDY header block ends in the middle");
    const std::string_view taken = text_.substr(0, count);
    text_.remove_prefix(count);
    return taken;
  }

  std::string_view text_;
};

}  // namespace

std::string_view header(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

struct HeaderPacker::State {
  State() {
    const std::string& words = dictionary();
    if (deflateInit(&zlib, Z_BEST_COMPRESSION) != Z_OK ||
        deflateSetDictionary(&zlib, bytes_of(words), static_cast<uInt>(words.size())) != Z_OK) {
      deflateEnd(&zlib);
      fail(Code::internal, "zlib cannot be set up");
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { deflateEnd(&zlib); }

  z_stream zlib{};
};

HeaderPacker::HeaderPacker() : state_(std::make_unique<State>()) {}
HeaderPacker::~HeaderPacker() = default;

std::string HeaderPacker::pack(const HeaderList& headers) {
  std::string text;
  append_number(text, headers.size());
  for (const auto& [name, value] : headers) {
    append_number(text, name.size());
    text += name;
    append_number(text, value.size());
    text += value;
  }
  z_stream& zlib = state_->zlib;
  zlib.next_in = input_of(text);
  zlib.avail_in = static_cast<uInt>(text.size());
  std::string block;
  std::array<Bytef, 1024> piece;
  do {
    zlib.next_out = piece.data();
    zlib.avail_out = piece.size();
    const int result = deflate(&zlib, Z_SYNC_FLUSH);
    if (result != Z_OK && result != Z_BUF_ERROR) fail(Code::internal, "zlib cannot compress");
    block.append(reinterpret_cast<const char*>(piece.data()), piece.size() - zlib.avail_out);
  } while (zlib.avail_out == 0);
  return block;
}

struct HeaderUnpacker::State {
  State() {
    if (inflateInit(&zlib) != Z_OK) fail(Code::internal, "zlib cannot be set up");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&zlib); }

  z_stream zlib{};
};

HeaderUnpacker::HeaderUnpacker() : state_(std::make_unique<State>()) {}
HeaderUnpacker::~HeaderUnpacker() = default;

std::string HeaderUnpacker::inflate(std::string_view block) {
  z_stream& zlib = state_->zlib;
  zlib.next_in = input_of(block);
  zlib.avail_in = static_cast<uInt>(block.size());
  std::string text;
  std::array<Bytef, 4096> piece;
  while (true) {
    zlib.next_out = piece.data();
    zlib.avail_out = piece.size();
    int result = ::inflate(&zlib, Z_SYNC_FLUSH);
    if (result == Z_NEED_DICT) {
      const std::string& words = dictionary();
      result = inflateSetDictionary(&zlib, bytes_of(words), static_cast<uInt>(words.size()));
      if (result != Z_OK) fail(Code::invalid, "a SPDY header block uses an unknown dictionary");
      continue;
    }
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size() - zlib.avail_out);
    if (text.size() > kMostText) fail(Code::exhausted, "a SPDY header block is too long");
    if (result == Z_BUF_ERROR) return text;  // nothing left to read, nothing left to say
    if (result != Z_OK) fail(Code::invalid, "a SPDY header block does not decompress");
    if (zlib.avail_in == 0 && zlib.avail_out > 0) return text;
  }
}

HeaderList HeaderUnpacker::unpack(std::string_view block) {
  const std::string text = inflate(block);
  BlockReader reader(text);
  const std::uint32_t count = reader.number();
  if (count > kMostHeaders) fail(Code::exhausted, "a SPDY header block has too many headers");
  HeaderList headers;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view name = reader.text();
    const std::string_view value = reader.text();
    headers.emplace_back(name, value);
  }
  if (!reader.is_over()) fail(Code::invalid, "a SPDY header block has something behind its end");
  return headers;
}

}  // namespace hearth::spdy
