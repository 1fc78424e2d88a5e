#include "cli/relay.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace hearth::cli {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;

}  // namespace

Relay::Relay(linux::Fd left, linux::Fd right)
    : left_(std::move(left)),
      right_(std::move(right)),
      ways_{Way{.from = left_.get(), .to = right_.get()},
            Way{.from = right_.get(), .to = left_.get()}} {}

std::array<pollfd, 2> Relay::waiting() const {
  std::array<pollfd, 2> all{};
  std::ranges::transform(ways_, all.begin(), [](const Way& way) -> pollfd {
    if (!way.buffer.empty()) return {.fd = way.to, .events = POLLOUT, .revents = 0};
    return {.fd = way.ended ? -1 : way.from, .events = POLLIN, .revents = 0};
  });
  return all;
}

bool Relay::move(Way& way) {
  if (way.buffer.empty() && !way.ended) {
    way.buffer.resize(kPiece);
    const ssize_t got = ::recv(way.from, way.buffer.data(), kPiece, MSG_DONTWAIT);
    const int error = errno;
    way.buffer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (got < 0) return error == EAGAIN || error == EINTR;
    if (got == 0) {
      way.ended = true;
      ::shutdown(way.to, SHUT_WR);
    }
  }
  if (way.buffer.empty()) return true;
  const ssize_t sent =
      ::send(way.to, way.buffer.data(), way.buffer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  way.buffer.erase(0, static_cast<std::size_t>(sent));
  return true;
}

void Relay::step() {
  for (Way& way : ways_) {
    if (!over_ && !move(way)) {
      // As abrupt as what happened: whoever reads must not take a torn stream for a whole one.
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(left_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      ::setsockopt(right_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      over_ = true;
    }
  }
  if (std::ranges::all_of(ways_, [](const Way& way) { return way.ended && way.buffer.empty(); }))
    over_ = true;
}

}  // namespace hearth::cli
