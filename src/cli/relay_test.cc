#include "cli/relay.h"

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace hearth::cli {
namespace {

struct Sockets {
  linux::Fd ours;
  linux::Fd theirs;
};

Sockets make_sockets() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {.ours = linux::Fd(fds[0]), .theirs = linux::Fd(fds[1])};
}

std::string receive(int fd) {
  char piece[100];
  const ssize_t got = ::recv(fd, piece, sizeof piece, MSG_DONTWAIT);
  return got < 0 ? "nothing" : std::string(piece, static_cast<std::size_t>(got));
}

TEST(Relay, CarriesBytesBothWaysUntilBothAreDone) {
  Sockets left = make_sockets();
  Sockets right = make_sockets();
  Relay relay(std::move(left.theirs), std::move(right.theirs));

  linux::write_all(left.ours.get(), "ping");
  relay.step();
  EXPECT_EQ(receive(right.ours.get()), "ping");

  ::shutdown(left.ours.get(), SHUT_WR);
  relay.step();
  EXPECT_EQ(receive(right.ours.get()), "");
  EXPECT_FALSE(relay.is_over());

  linux::write_all(right.ours.get(), "pong");
  right.ours.reset();
  relay.step();
  relay.step();
  EXPECT_EQ(receive(left.ours.get()), "pong");
  EXPECT_EQ(receive(left.ours.get()), "");
  EXPECT_TRUE(relay.is_over());
}

TEST(Relay, HoldsOnePieceForAReaderThatDoesNotRead) {
  Sockets left = make_sockets();
  Sockets right = make_sockets();
  Relay relay(std::move(left.theirs), std::move(right.theirs));
  const std::string piece(1 << 16, 'x');
  std::size_t written = 0;
  for (int stalled = 0; stalled < 3;) {
    const ssize_t sent = ::send(left.ours.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    written += sent > 0 ? static_cast<std::size_t>(sent) : 0;
    stalled += sent > 0 ? 0 : 1;
    relay.step();
  }
  EXPECT_LT(written, 8U << 20);
  EXPECT_EQ(relay.waiting()[0].events, POLLOUT);
}

}  // namespace
}  // namespace hearth::cli
