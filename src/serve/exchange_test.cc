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
  linux::Fd ours;
  linux::Fd peer;
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

}  // namespace
}  // namespace hearth::serve
