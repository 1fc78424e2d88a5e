#include "unpack/byte_input.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace hearth::unpack {
namespace {

constexpr std::size_t kBufferSize = std::size_t{256} << 10;

}  // namespace

ByteInput::ByteInput(int fd) : fd_(fd), buffer_(kBufferSize) {}

bool ByteInput::fill() {
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer_.data(), buffer_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw_errno("read the archive");
  begin_ = 0;
  end_ = static_cast<std::size_t>(got);
  return got > 0;
}

std::size_t ByteInput::read(std::span<char> into) {
  if (into.empty() || (begin_ == end_ && !fill())) return 0;
  const std::size_t count = std::min(into.size(), end_ - begin_);
  std::memcpy(into.data(), buffer_.data() + begin_, count);
  begin_ += count;
  return count;
}

bool ByteInput::read_all(std::span<char> into) {
  std::size_t have = 0;
  while (have < into.size()) {
    const std::size_t got = read(into.subspan(have));
    if (got == 0 && have == 0) return false;
    if (got == 0) fail(Code::invalid, "the archive is cut off");
    have += got;
  }
  return true;
}

void ByteInput::skip(std::uint64_t count) {
  while (count > 0) {
    if (begin_ == end_ && !fill()) fail(Code::invalid, "the archive is cut off");
    const std::size_t step = std::min<std::uint64_t>(count, end_ - begin_);
    begin_ += step;
    count -= step;
  }
}

void ByteInput::drain() {
  do {
    begin_ = end_;
  } while (fill());
}

}  // namespace hearth::unpack
