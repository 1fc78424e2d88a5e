#include "cli/pump.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"

namespace hearth::cli {
namespace {

// As much as a pipe holds.
constexpr std::size_t kPiece = std::size_t{64} << 10;
// A terminal that says it can be written to takes this much without blocking for long.
constexpr std::size_t kTerminalPiece = 4096;
// More than any pipe of a process without privileges holds (/proc/sys/fs/pipe-max-size).
constexpr std::size_t kMostLeft = std::size_t{1} << 20;

bool is_passing(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

pollfd Pump::waiting() const {
  if (over_) return {.fd = -1, .events = 0, .revents = 0};
  if (buffer_.empty()) return {.fd = from_fd_, .events = POLLIN, .revents = 0};
  return {.fd = to_fd_, .events = POLLOUT, .revents = 0};
}

void Pump::end() {
  over_ = true;
  buffer_.clear();
  ours_.reset();
}

// False when there is nothing to read now; ends the pump when there never will be.
bool Pump::fill() {
  std::array<char, kPiece> piece;
  const ssize_t got = ::read(from_fd_, piece.data(), piece.size());
  if (got > 0) {
    buffer_.assign(piece.data(), static_cast<std::size_t>(got));
    return true;
  }
  // A terminal whose other end is closed answers EIO.
  if (got == 0 || !is_passing(errno)) end();
  return false;
}

void Pump::step() {
  if (over_) return;
  if (buffer_.empty()) {
    fill();
    return;
  }
  const std::size_t most = ::isatty(to_fd_) != 0 ? kTerminalPiece : kPiece;
  const ssize_t written = ::write(to_fd_, buffer_.data(), std::min(buffer_.size(), most));
  if (written >= 0)
    buffer_.erase(0, static_cast<std::size_t>(written));
  else if (!is_passing(errno))
    end();
}

void Pump::drain() {
  std::size_t moved = 0;
  try {
    while (!over_ && moved < kMostLeft && (!buffer_.empty() || fill())) {
      linux::write_all(to_fd_, buffer_);
      moved += buffer_.size();
      buffer_.clear();
    }
  } catch (const Error&) {
    end();  // nobody listens any more
  }
}

}  // namespace hearth::cli
