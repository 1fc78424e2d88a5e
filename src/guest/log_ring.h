// The last bytes of a stream: bounded, oldest forgotten first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::guest {

class LogRing {
 public:
  explicit LogRing(std::size_t capacity) : capacity_(capacity) {}

  void append(std::string_view bytes);

  // At most `most` bytes from position `from` on (positions count every byte ever written); from
  // the oldest kept byte where `from` is forgotten already. Moves `from` behind what is returned.
  std::string read(std::uint64_t& from, std::size_t most) const;

  std::uint64_t end() const { return end_; }

 private:
  std::size_t capacity_;
  std::string bytes_;      // grows to capacity_, then wraps
  std::uint64_t end_ = 0;  // how many bytes were ever written
};

}  // namespace hearth::guest
