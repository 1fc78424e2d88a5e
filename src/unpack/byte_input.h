// Bytes from a file or pipe, in pieces of any size. Borrows the descriptor. Throws Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::unpack {

class ByteInput {
 public:
  explicit ByteInput(int fd);

  // What is there, at least one byte, at most the size of `into`; 0 at the end.
  std::size_t read(std::span<char> into);
  // All of `into` (true) or nothing, the input being at its end (false). Throws Error(invalid) when
  // it ends in between.
  bool read_all(std::span<char> into);
  // Throws Error(invalid) when the input ends before.
  void skip(std::uint64_t count);
  // To the end.
  void drain();

 private:
  bool fill();

  int fd_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // what of the buffer is not read yet
  std::size_t end_ = 0;
};

}  // namespace hearth::unpack
