// How structs cross a process boundary: little-endian numbers and counted bytes, nothing else.
//
// Used between our own programs only, yet read as if a stranger had written it: the reader never
// looks past the end, never allocates more than arrived, and throws Error(invalid) for anything it
// does not expect, including bytes left over. No versions inside: both ends of a socket say theirs
// in the first message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::wire {

class Writer {
 public:
  Writer& u8(std::uint8_t value);
  Writer& u32(std::uint32_t value);
  Writer& u64(std::uint64_t value);
  Writer& boolean(bool value) { return u8(value ? 1 : 0); }
  Writer& text(std::string_view value);
  Writer& texts(const std::vector<std::string>& values);

  std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  // Borrows `bytes`.
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8();
  std::uint32_t u32();
  std::uint64_t u64();
  bool boolean();
  std::string text();
  std::vector<std::string> texts();

  // Every message ends with this: what nobody read is an error.
  void end() const;

 private:
  std::string_view take(std::size_t count);
  std::string_view rest_;
};

// All of `bytes`, as `read` (which takes a Reader&) understands them.
template <typename Read>
auto parse_whole(std::string_view bytes, Read read) {
  Reader in(bytes);
  auto message = read(in);
  in.end();
  return message;
}

}  // namespace hearth::wire
