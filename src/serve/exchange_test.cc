#include "serve/exchange.h"

#include <sys/socket.h>

#include <array>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serve/wire.h"

namespace hearth::serve {
namespace {

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours = linux::Fd(ends[0]);
    peer = linux::Fd(ends[1]);
  }

  // What the peer has got since it looked last.
  std::string arrived() const {
    std::string bytes(std::size_t{64} << 10, '\0');
    const ssize_t got = ::recv(peer.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

  linux::Fd ours;
  linux::Fd peer;
};

// An answer in chunks that has begun, and holds back what follows.
struct Held {
  Held() {
    exchange.begin({});
    EXPECT_TRUE(pair.arrived().starts_with("HTTP/1.1 200"));
    exchange.hold_back();
  }
  Pair pair;
  Patience patience;
  Wire wire{std::move(pair.ours), patience};
  Exchange exchange{wire, http::Head{.method = "POST", .target = "/"}};
};

// Who ends a stream may hear then that the peer has left, and says so on the stream, as of any
// other problem: that has to fail, and not the program.
TEST(Exchange, APeerThatLeavesBeforeTheEndIsAnErrorEachTime) {
  Pair pair;
  Wire wire(std::move(pair.ours), {});
  Exchange exchange(wire, http::Head{.method = "POST", .target = "/"});
  exchange.begin({});
  exchange.write("almost all of it");
  pair.peer.reset();
  EXPECT_THROW(exchange.end(), Error);
  EXPECT_THROW(exchange.write("what went wrong"), Error);
}

TEST(Exchange, PiecesThatAreHeldBackGoOutTogether) {
  Held held;
  held.exchange.write("one");
  held.exchange.write("two");
  EXPECT_EQ(held.pair.arrived(), "");
  held.exchange.flush();
  EXPECT_EQ(held.pair.arrived(), "3\r\none\r\n3\r\ntwo\r\n");
  held.exchange.write("three");
  held.exchange.end();
  EXPECT_EQ(held.pair.arrived(), "5\r\nthree\r\n0\r\n\r\n");
}

TEST(Exchange, ALargePieceIsNotHeldBackAndTakesTheOthersAlong) {
  Held held;
  const std::string large(10'000, 'x');
  held.exchange.write("one");
  held.exchange.write(large);
  EXPECT_EQ(held.pair.arrived(), "3\r\none\r\n2710\r\n" + large + "\r\n");
}

TEST(Exchange, WhatWasHeldBackComesBeforeTheEndOfAnAnswerThatFailed) {
  Held held;
  held.exchange.write("one");
  held.exchange.abandon();
  EXPECT_FALSE(held.exchange.finish());
  EXPECT_EQ(held.pair.arrived(), "3\r\none\r\n");
}

TEST(Exchange, APeerThatLeavesWhileSomethingIsHeldBackIsAnErrorEachTime) {
  Held held;
  held.exchange.write("one");
  held.pair.peer.reset();
  EXPECT_THROW(held.exchange.flush(), Error);
  held.exchange.write("two");
  EXPECT_THROW(held.exchange.end(), Error);
  EXPECT_THROW(held.exchange.write("what went wrong"), Error);
}

}  // namespace
}  // namespace hearth::serve
