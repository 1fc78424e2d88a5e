// Connections that are made before the first request.
#include <latch>

#include "gateway/gateway_testing_internal.h"

namespace hearth::gateway {
namespace {

const model::Key kKey{"default", kId};

TEST(GatewayAhead, TheFirstRequestFindsItsConnectionMadeOrComing) {
  House house;
  Program program(echo);
  house.make_sandbox();
  Peer client = house.connect();
  for (std::uint16_t port = 8000; port < 8020; ++port) {
    house.reach.open(port, program.port());
    house.gateway->expect(kKey, port);
    if (port % 2 == 0) House::comes_true([&] { return house.reach.dials() == port - 7999; });
    EXPECT_TRUE(client.ask(request("GET /x", port)).body.starts_with("GET /x\n"));
    EXPECT_EQ(house.reach.dials(), port - 7999);
  }
}

TEST(GatewayAhead, OneThatNobodyComesForIsClosed) {
  std::latch closed{1};
  House house({.limits = {.idle_upstream = 1ms}});
  Program program([&](Peer& peer) {
    EXPECT_FALSE(peer.more());
    closed.count_down();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  house.gateway->expect(kKey, 8000);
  closed.wait();
}

TEST(GatewayAhead, OneThatTheSandboxClosedIsNotUsed) {
  std::latch closed{1};
  House house;
  Program program([&](Peer& peer) {
    if (closed.try_wait()) return echo(peer);
    peer.close();
    closed.count_down();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  house.gateway->expect(kKey, 8000);
  closed.wait();
  Peer client = house.connect();
  EXPECT_EQ(client.ask(request("POST /x", 8000, "Content-Length: 0\r\n")).head.status, 200U);
}

TEST(GatewayAhead, APortThatIsClosedIsTriedAgainByWhoeverAsks) {
  House house;
  Program program(echo);
  house.make_sandbox();
  house.gateway->expect(kKey, 8000);
  House::comes_true([&] { return house.reach.dials() == 1; });
  house.reach.open(8000, program.port());
  Peer client = house.connect();
  EXPECT_EQ(client.ask(request("GET /")).head.status, 200U);
}

TEST(GatewayAhead, WhereMuchIsAskedNobodyConnectsAhead) {
  std::latch asked{2};
  House busy(
      {.threads = 1, .control = [&](const http::Request&, const auto&) { asked.count_down(); }});
  busy.make_sandbox();
  Peer first = busy.connect();
  Peer second = busy.connect();
  for (Peer* peer : {&first, &second}) peer->send("GET /sandboxes HTTP/1.1\r\nHost: x\r\n\r\n");
  asked.wait();
  busy.gateway->expect(kKey, 8000);
  busy.gateway->stop();  // with what was begun
  EXPECT_EQ(busy.reach.dials(), 0);
}

}  // namespace
}  // namespace hearth::gateway
