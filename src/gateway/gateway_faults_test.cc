// Clients and sandboxes that do not play by the rules.
#include <poll.h>
#include <sys/resource.h>

#include <future>

#include "base/guarded.h"
#include "gateway/gateway_testing_internal.h"

namespace hearth::gateway {
namespace {

GatewayOptions quick() {
  GatewayOptions options;
  options.limits.first_byte = 300ms;
  options.limits.head = 300ms;
  options.limits.idle = 300ms;
  options.limits.answer = 300ms;
  options.limits.stalled = 300ms;
  return options;
}

TEST(GatewayFaults, GarbageFromASandboxIsA502) {
  House house;
  Guarded<std::string> garbage;
  Program program([&](Peer& peer) {
    peer.read_head();
    peer.send(garbage.with([](const std::string& text) { return text; }));
    peer.close();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  for (const std::string& text :
       {std::string("\x16\x03\x01garbage"), std::string("HTTP/1.1"), std::string(),
        std::string("SSH-2.0-x\r\n"), std::string("HTTP/2.0 200 OK\r\n\r\n"),
        std::string("HTTP/1.1 999 x\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\nA b\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\n folded: x\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        std::string("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n"),
        "HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x'), std::string(100'000, 'H')}) {
    garbage.with([&](std::string& now) { now = text; });
    Peer client = house.connect();
    const Answer answer = client.ask(request("POST /", 8000, "Content-Length: 0\r\n"));
    EXPECT_EQ(answer.head.status, 502U) << text.substr(0, 60);
    // The connection is as good as new.
    EXPECT_EQ(client.ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").head.status, 200U);
  }
}

TEST(GatewayFaults, ABodyThatBreaksOffBreaksTheClientsToo) {
  House house;
  Guarded<std::string> broken;
  Program program([&](Peer& peer) {
    peer.read_head();
    peer.send(broken.with([](const std::string& text) { return text; }));
    peer.close();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  for (const char* text : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    broken.with([&](std::string& now) { now = text; });
    Peer client = house.connect();
    client.send(request("GET /"));
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.head.status, 200U);
    EXPECT_FALSE(answer.is_whole) << text;
  }
}

TEST(GatewayFaults, RefusesWhatCouldBeReadInTwoWays) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();
  for (const char* fields : {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                             "Content-Length: 3\r\nContent-Length: 3\r\n", "Content-Length: +3\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                             "Content-Length : 3\r\n", "Host: other\r\n", "A: b\r\n folded\r\n",
                             "A: b\rc\r\n", "A: b\n", "E2b-Sandbox-Id: other\r\n"}) {
    Peer client = house.connect();
    client.send(request("POST /", 8000, fields));
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.head.status, 400U) << fields;
  }
  for (const char* text : {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                           "\r\n\r\n", "GET / HTTP/1.1 \r\nHost: x\r\n\r\n", "\x16\x03\x01"}) {
    EXPECT_EQ(house.connect().ask(text).head.status, 400U) << text;
  }
  EXPECT_EQ(house.connect().ask("GET / HTTP/2.0\r\nHost: x\r\n\r\n").head.status, 505U);
  EXPECT_EQ(house.connect().ask("GET / HTTP/1.1\r\nA: " + std::string(40'000, 'x')).head.status,
            431U);
  EXPECT_EQ(program.connections(), 0U);
}

TEST(GatewayFaults, ConnectionCannotTakeTheFramingAway) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  const Answer answer = client.ask(
      request("POST /", 8000,
              "Connection: Content-Length, X-Mine, host\r\nContent-Length: 3\r\nX-Mine: 1\r\n") +
      "abc");
  EXPECT_NE(answer.body.find("Content-Length: 3\n"), std::string::npos);
  EXPECT_EQ(answer.body.find("X-Mine"), std::string::npos);
}

TEST(GatewayFaults, ABadChunkEndsBothConnections) {
  House house;
  std::atomic<bool> has_ended = false;
  Program program([&](Peer& peer) {
    peer.rest();
    has_ended = true;
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  client.send(request("POST /", 8000, "Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n");
  House::comes_true([&] { return program.connections() == 1; });
  client.send("0x5\r\nhello\r\n");
  EXPECT_EQ(client.rest(), "");
  House::comes_true([&] { return has_ended.load(); });
}

TEST(GatewayFaults, SlowClientsAreLetGo) {
  House house(quick());
  Peer silent = house.connect();
  EXPECT_EQ(silent.rest(), "");
  Peer loris = house.connect();
  loris.send("GET / HTTP/1.1\r\nHost: x\r\nA: ");
  EXPECT_EQ(loris.read_answer().head.status, 408U);
  Peer idle = house.connect();
  idle.ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(idle.rest(), "");
}

TEST(GatewayFaults, ASandboxThatNeverAnswersIsA504) {
  House house(quick());
  Program program([](Peer& peer) { peer.rest(); });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  EXPECT_EQ(house.connect().ask(request("GET /")).head.status, 504U);
  // As is a client that never sends what it promised.
  Peer client = house.connect();
  EXPECT_EQ(client.ask(request("POST /", 8000, "Content-Length: 5\r\n")).head.status, 504U);
}

TEST(GatewayFaults, AKeptConnectionThatDiedIsReplaced) {
  House house;
  Program program([](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    // Reads the next request and leaves without a word: as if it had been closing just then.
    peer.read_head();
    peer.reset();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  EXPECT_EQ(client.ask(request("GET /")).body, "ok");
  EXPECT_EQ(client.ask(request("GET /")).body, "ok");
  EXPECT_EQ(program.connections(), 2U);
  // What must not be done twice is not.
  EXPECT_EQ(client.ask(request("POST /", 8000, "Content-Length: 0\r\n")).head.status, 502U);
}

TEST(GatewayFaults, AnEarlyAnswerToALargeBodyArrives) {
  House house;
  Program program([](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    peer.close();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  client.send(request("POST /", 8000, "Content-Length: 10000000\r\n"));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.head.status, 413U);
  EXPECT_EQ(answer.body, "no");
  EXPECT_FALSE(answer.head.wants_keep_alive());
}

TEST(GatewayFaults, ASlowReaderSlowsTheSandboxDown) {
  House house;
  std::atomic<std::size_t> sent = 0;
  constexpr std::size_t kAll = 64 << 20;
  Program program([&](Peer& peer) {
    peer.read_head();
    peer.send(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", kAll));
    const std::string piece(64 << 10, 'x');
    for (std::size_t at = 0; at < kAll; at += piece.size()) {
      peer.send(piece);
      sent += piece.size();
    }
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  client.send(request("GET /"));
  client.read_head();
  // Until it stands still: kernels' buffers are full.
  std::size_t last = 1;
  House::comes_true([&] {
    const std::size_t now = sent;
    std::this_thread::sleep_for(50ms);
    return now == std::exchange(last, now) && now > 0;
  });
  EXPECT_LT(sent, kAll);
  EXPECT_EQ(client.read(kAll).size(), kAll);
}

TEST(GatewayFaults, TooManyRequestsForOneSandboxAreToldSo) {
  GatewayOptions options;
  options.limits.per_sandbox = 2;
  House house(std::move(options));
  std::atomic<int> open = 0;
  Program program([&](Peer& peer) {
    peer.read_head();
    ++open;
    peer.rest();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  std::vector<Peer> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(house.connect());
    clients.back().send(request("GET /"));
  }
  House::comes_true([&] { return open == 2; });
  EXPECT_EQ(house.connect().ask(request("GET /")).head.status, 429U);
}

TEST(GatewayFaults, TheLongestIdleMakesRoomForTheNext) {
  GatewayOptions options;
  options.limits.connections = 100;
  House house(std::move(options));
  std::vector<Peer> clients;
  for (int i = 0; i < 1000; ++i) clients.push_back(house.connect());
  EXPECT_EQ(clients.back().ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").head.status, 200U);
  EXPECT_LE(house.gateway->connections(), 100U);
  EXPECT_EQ(clients.front().rest(), "");
}

// Each with its number, and so large that no socket holds them all.
std::string hint(int number) {
  return fmt::format("HTTP/1.1 103 Early Hints\r\nX-Number: {}\r\nLink: {}\r\n\r\n", number,
                     std::string(30'000, 'l'));
}

TEST(GatewayFaults, InterimAnswersWaitForAClientThatReadsLate) {
  House house;
  constexpr int kHints = 900;
  std::promise<void> full;
  Program program([&](Peer& peer) {
    peer.read_head();
    bool is_full = false;
    for (int i = 0; i < kHints; ++i) {
      pollfd room{.fd = peer.fd(), .events = POLLOUT, .revents = 0};
      if (!is_full && ::poll(&room, 1, 300) == 0) {
        is_full = true;
        full.set_value();
      }
      peer.send(hint(i));
    }
    if (!is_full) full.set_value();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  client.send(request("GET /"));
  full.get_future().wait();
  for (int i = 0; i < kHints; ++i) ASSERT_EQ(client.read_head(), hint(i)) << i;
  EXPECT_EQ(client.read_answer().body, "done");
}

TEST(GatewayFaults, AnswersThatNeverBecomeOneEnd) {
  House house;
  Program program([](Peer& peer) {
    peer.read_head();
    for (int i = 0; i < 1100; ++i) peer.send("HTTP/1.1 102 Processing\r\n\r\n");
    peer.rest();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  client.send(request("GET /"));
  std::string head;
  int interims = 0;
  while ((head = client.read_head()).starts_with("HTTP/1.1 102 ")) ++interims;
  EXPECT_EQ(interims, 1000);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 502 ")) << head;
}

}  // namespace
}  // namespace hearth::gateway
