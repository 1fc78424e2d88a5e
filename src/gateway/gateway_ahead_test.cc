// The first request to a sandbox: connections that are made before it, and who gives way to it.
#include <atomic>
#include <fstream>
#include <latch>
#include <memory>
#include <sstream>

#include "gateway/gateway_testing_internal.h"
#include "gateway/target.h"
#include "model/agent_sandbox.h"

namespace hearth::gateway {
namespace {

const model::Key kKey{"default", kId};

// Whether the kernel has told of the end of every connection that this port's side has closed.
bool is_close_known(std::uint16_t port) {
  std::ifstream table("/proc/self/net/tcp");
  const std::string local = fmt::format(":{:04X}", port);
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number;
    std::string from;
    std::string to;
    std::string state;
    words >> number >> from >> to >> state;
    constexpr std::string_view kEstablished = "01";
    constexpr std::string_view kFinWait1 = "04";
    if (from.ends_with(local) && (state == kEstablished || state == kFinWait1)) return false;
  }
  return true;
}

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
  House::comes_true([&] { return is_close_known(program.port()); });
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

// A member of a pool, as the watch would tell of it, and what becomes of it.
class Spare {
 public:
  explicit Spare(House& house) : house_(house), sandbox_(house.make_sandbox({.labels = {}})) {
    labels()[model::kPoolLabel] = "1234abcd";
    model::make_object_at(sandbox_, {"spec", "podTemplate", "metadata",
                                     "annotations"})[model::kDressAnnotation] = "base";
  }

  void become_ready() {
    sandbox_.get_object()["status"] =
        apiserver::json(R"({"conditions":[{"type":"Ready","status":"True"}]})");
    tell();
  }
  void lose_dress() {
    model::make_object_at(sandbox_, {"spec", "podTemplate", "metadata", "annotations"}).clear();
  }
  void become_somebodys() {
    labels().erase(model::kPoolLabel);
    labels()[model::kFrontLabel] = "e2b";
    tell();
  }
  void go() { house_.gateway->forget(sandbox_); }

  static std::string request_to() {
    return request("POST /x", kEnvdPort,
                   "Content-Length: 0\r\nX-Access-Token: envd-" + kId + "\r\n");
  }

 private:
  model::JsonObject& labels() { return model::make_object_at(sandbox_, {"metadata", "labels"}); }
  void tell() {
    const auto version = http::parse_number(model::resource_version_of(sandbox_)).value() + 1000;
    sandbox_.at("metadata").get_object()["resourceVersion"] = std::to_string(version);
    house_.gateway->learn(sandbox_);
  }

  House& house_;
  model::Json sandbox_;
};

TEST(GatewaySpares, WhoeverIsGivenOneFindsItConnected) {
  House house;
  Program program(echo);
  house.reach.open(kEnvdPort, program.port());
  Spare spare(house);
  spare.become_ready();
  const std::string one = "hearth_gateway_spare_connections 1\n";
  House::comes_true([&] { return house.registry.render().find(one) != std::string::npos; });
  house.gateway->expect(kKey, kEnvdPort);
  spare.become_somebodys();
  EXPECT_EQ(house.connect().ask(Spare::request_to()).head.status, 200U);
  EXPECT_EQ(house.reach.dials(), 1);
}

TEST(GatewaySpares, NobodyConnectsToWhatIsNotReadyOrWearsNothing) {
  House house;
  Program program(echo);
  house.reach.open(kEnvdPort, program.port());
  Spare spare(house);
  spare.lose_dress();
  spare.become_ready();
  spare.become_somebodys();
  house.gateway->stop();  // with what was begun
  EXPECT_EQ(house.reach.dials(), 0);
}

TEST(GatewaySpares, AreKeptForAsLongAsNobodyHasThem) {
  std::latch other_closed{1};
  std::latch spare_closed{1};
  House house({.limits = {.idle_upstream = 1ms}});
  Program other([&](Peer& peer) {
    EXPECT_FALSE(peer.more());
    other_closed.count_down();
  });
  Program program([&](Peer& peer) {
    EXPECT_FALSE(peer.more());
    spare_closed.count_down();
  });
  house.reach.open(kEnvdPort, program.port());
  house.reach.open(8000, other.port());
  Spare spare(house);
  spare.become_ready();
  House::comes_true([&] { return program.connections() == 1; });
  house.gateway->expect(kKey, 8000);
  other_closed.wait();
  EXPECT_FALSE(spare_closed.try_wait());
  spare.go();
  spare_closed.wait();
}

TEST(GatewaySpares, GoWithASandboxThatNobodyAskedForAnything) {
  std::latch closed{1};
  House house({.limits = {.idle_upstream = 1h}});
  Program program([&](Peer& peer) {
    EXPECT_FALSE(peer.more());
    closed.count_down();
  });
  house.reach.open(kEnvdPort, program.port());
  Spare spare(house);
  spare.become_ready();
  const std::string one = "hearth_gateway_spare_connections 1\n";
  House::comes_true([&] { return house.registry.render().find(one) != std::string::npos; });
  spare.become_somebodys();
  spare.go();
  EXPECT_TRUE(House::comes_true([&] { return closed.try_wait(); }));
}

TEST(GatewaySpares, AreMadeAnewBeforeTheSandboxLosesPatience) {
  House house({.limits = {.spare_upstream = 1ms}});
  Program program([&](Peer& peer) { EXPECT_FALSE(peer.more()); });
  house.reach.open(kEnvdPort, program.port());
  Spare spare(house);
  spare.become_ready();
  House::comes_true([&] { return program.connections() >= 3; });
}

TEST(GatewaySpares, OneThatTheSandboxClosedIsNotUsed) {
  std::latch closed{1};
  House house;
  Program program([&](Peer& peer) {
    if (closed.try_wait()) return echo(peer);
    peer.close();
    closed.count_down();
  });
  house.reach.open(kEnvdPort, program.port());
  Spare spare(house);
  spare.become_ready();
  closed.wait();
  spare.become_somebodys();
  EXPECT_EQ(house.connect().ask(Spare::request_to()).head.status, 200U);
}

// How often somebody was urgent, and whether somebody is.
class Bustle {
 public:
  std::function<std::shared_ptr<void>()> urgent() {
    return [this] {
      ++times_;
      ++held_;
      return std::shared_ptr<void>(this, [this](void*) { --held_; });
    };
  }
  int times() const { return times_; }
  bool is_urgent() const { return held_ > 0; }

 private:
  std::atomic<int> times_ = 0;
  std::atomic<int> held_ = 0;
};

TEST(GatewayFirst, IsUrgentUntilItIsAnswered) {
  Bustle bustle;
  std::atomic<int> urgent_ones = 0;
  House house({.urgent = bustle.urgent()});
  Program program([&](Peer& peer) {
    std::string body;
    while (!peer.read_request(body).method.empty()) {
      urgent_ones += bustle.is_urgent() ? 1 : 0;
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.ask(request("GET /")).head.status, 200U);
    House::comes_true([&] { return !bustle.is_urgent(); });
  }
  EXPECT_EQ(bustle.times(), 1);
  EXPECT_EQ(urgent_ones, 1);
}

TEST(GatewayFirst, IsNotUrgentForLong) {
  Bustle bustle;
  House house({.urgent = bustle.urgent()});
  Program program([&](Peer& peer) {
    std::string body;
    peer.read_request(body);
    EXPECT_TRUE(House::comes_true([&] { return !bustle.is_urgent(); }));
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  EXPECT_EQ(house.connect().ask(request("PUT /large")).head.status, 200U);
  EXPECT_EQ(bustle.times(), 1);
}

}  // namespace
}  // namespace hearth::gateway
