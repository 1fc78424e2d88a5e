#include "base/wire.h"

#include "base/error.h"

namespace hearth::wire {
namespace {

// The smallest element of a list is an empty text: its four bytes of length.
constexpr std::size_t kLeastElement = 4;

template <typename T>
void append_little_endian(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i));
}

template <typename T>
T from_little_endian(std::string_view bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

Writer& Writer::u8(std::uint8_t value) {
  bytes_ += static_cast<char>(value);
  return *this;
}

Writer& Writer::u32(std::uint32_t value) {
  append_little_endian(bytes_, value);
  return *this;
}

Writer& Writer::u64(std::uint64_t value) {
  append_little_endian(bytes_, value);
  return *this;
}

Writer& Writer::text(std::string_view value) {
  u32(static_cast<std::uint32_t>(value.size()));
  bytes_ += value;
  return *this;
}

Writer& Writer::texts(const std::vector<std::string>& values) {
  u32(static_cast<std::uint32_t>(values.size()));
  for (const std::string& value : values) text(value);
  return *this;
}

std::string_view Reader::take(std::size_t count) {
  if (count > rest_.size()) {
    fail(Code::invalid, "message ends early: {} bytes wanted, {} left", count, rest_.size());
  }
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

std::uint8_t Reader::u8() {
  return from_little_endian<std::uint8_t>(take(1));
}
std::uint32_t Reader::u32() {
  return from_little_endian<std::uint32_t>(take(4));
}
std::uint64_t Reader::u64() {
  return from_little_endian<std::uint64_t>(take(8));
}

bool Reader::boolean() {
  const std::uint8_t value = u8();
  if (value > 1) fail(Code::invalid, "message has {} where a truth value belongs", value);
  return value == 1;
}

std::string Reader::text() {
  return std::string(take(u32()));
}

std::vector<std::string> Reader::texts() {
  const std::uint32_t count = u32();
  if (count > rest_.size() / kLeastElement) {
    fail(Code::invalid, "message announces {} texts in {} bytes", count, rest_.size());
  }
  std::vector<std::string> values;
  values.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) values.push_back(text());
  return values;
}

void Reader::end() const {
  if (!rest_.empty()) fail(Code::invalid, "message has {} bytes too many", rest_.size());
}

}  // namespace hearth::wire
