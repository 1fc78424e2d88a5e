// Sandboxes that go, stand still and wake up under open connections; and the gateway's own end.
#include <latch>

#include "gateway/gateway_testing_internal.h"

namespace hearth::gateway {
namespace {

// Sends a chunk, and then nothing for as long as it is let.
void stream(Peer& peer) {
  while (!peer.read_head().empty()) {
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  }
}

Peer open_stream(House& house) {
  Peer client = house.connect();
  client.send(request("GET /stream"));
  client.read_head();
  EXPECT_EQ(client.read(10), "5\r\nhello\r\n");
  return client;
}

TEST(GatewayLife, AKilledSandboxIsCutInsideTheBodyAndNotFoundAfterwards) {
  House house;
  Program program(stream);
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = open_stream(house);
  EXPECT_EQ(house.gateway->activity({"default", kId})->open, 1U);

  house.api().remove(client::kSandboxes, "default", kId);
  EXPECT_EQ(client.rest(), "");  // no last chunk

  Peer other = house.connect();
  const Answer answer = other.ask(request("GET /health", 49983));
  EXPECT_EQ(answer.head.status, 502U);
  EXPECT_NE(answer.body.find("The sandbox was not found"), std::string::npos);
}

TEST(GatewayLife, EveryThreadHearsOfIt) {
  GatewayOptions options;
  options.threads = 3;
  House house(std::move(options));
  Program program(stream);
  house.reach.open(8000, program.port());
  house.make_sandbox();
  std::vector<Peer> clients;
  for (int i = 0; i < 12; ++i) clients.push_back(open_stream(house));
  EXPECT_EQ(house.gateway->activity({"default", kId})->open, 12U);
  house.api().remove(client::kSandboxes, "default", kId);
  for (Peer& client : clients) EXPECT_EQ(client.rest(), "");
  House::comes_true([&] { return house.gateway->connections() == 0; });
}

TEST(GatewayLife, WhatIsForgottenIsGoneAtOnceAndStaysSo) {
  House house;
  Program program(stream);
  house.reach.open(8000, program.port());
  const model::Json sandbox = house.make_sandbox();
  Peer client = open_stream(house);

  house.gateway->forget(sandbox);
  house.gateway->learn(sandbox);  // late news
  EXPECT_EQ(client.rest(), "");
  EXPECT_EQ(house.connect().ask(request("GET /")).head.status, 502U);
}

TEST(GatewayLife, NobodyWaitsForASandboxThatIsKnownToBeGone) {
  GatewayOptions options;
  options.limits.unknown = 10 * kPatience;  // who is held does not get his answer in time
  House house(std::move(options));
  const model::Json sandbox = house.make_sandbox();
  house.gateway->forget(sandbox);
  Peer client = house.connect();
  for (int i = 0; i < 2; ++i) {
    const Answer answer = client.ask(request("GET /health", 49983));
    EXPECT_EQ(answer.head.status, 502U);
    EXPECT_NE(answer.body.find("The sandbox was not found"), std::string::npos);
  }
  const std::string numbers = house.registry.render();
  for (const char* line : {"hearth_gateway_routes 0", "hearth_gateway_routes_forgotten_total 1",
                           R"(hearth_gateway_route_misses_total{sandbox="gone"} 2)",
                           R"(hearth_gateway_route_misses_total{sandbox="unknown"} 0)"})
    EXPECT_NE(numbers.find(line), std::string::npos) << line << " in\n" << numbers;
}

TEST(GatewayLife, AnIdThatCameBackIsFound) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  const model::Json sandbox = house.make_sandbox();
  house.gateway->forget(sandbox);
  house.api().remove(client::kPods, "default", kId);
  house.api().remove(client::kSandboxes, "default", kId);
  house.make_sandbox();
  EXPECT_EQ(house.connect().ask(request("GET /")).head.status, 200U);
}

TEST(GatewayLife, ARequestWithoutAnswerIsTold502WhenItsSandboxGoes) {
  House house;
  std::atomic<bool> is_asked = false;
  Program program([&](Peer& peer) {
    peer.read_head();
    is_asked = true;
    peer.rest();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  client.send(request("GET /slow"));
  House::comes_true([&] { return is_asked.load(); });
  house.api().remove(client::kSandboxes, "default", kId);
  EXPECT_EQ(client.read_answer().head.status, 502U);
}

TEST(GatewayLife, APausedSandboxIsCutAndAnswersAgainWhenItRuns) {
  House house;
  Program program(echo);
  Program streams(stream);
  house.reach.open(8000, streams.port());
  house.reach.open(8001, program.port());
  house.make_sandbox();
  Peer client = open_stream(house);

  house.gateway->learn(house.annotate(model::kPauseAnnotation, "memory"));
  EXPECT_EQ(client.rest(), "");
  Peer other = house.connect();
  EXPECT_NE(other.ask(request("GET /", 8001)).body.find("The sandbox was not found"),
            std::string::npos);

  house.gateway->learn(house.annotate(model::kPauseAnnotation, nullptr));
  EXPECT_EQ(other.ask(request("GET /", 8001)).head.status, 200U);
}

TEST(GatewayLife, WakesASandboxOnceForAllWhoKnock) {
  std::atomic<int> wakes = 0;
  std::function<void()> run_again;
  GatewayOptions options;
  options.wake = [&](const model::Key& key) {
    EXPECT_EQ(key.text(), "default/" + kId);
    ++wakes;
    run_again();
  };
  House house(std::move(options));
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox({.annotations = {{std::string(model::kPauseAnnotation), "memory"},
                                      {std::string(model::kAutoResumeAnnotation), "true"}}});
  // Before all of them are inside, one might come between the end of the pause and the news of it.
  run_again = [&] {
    House::comes_true([&] {
      return house.registry.render().find("sandbox_router_inflight_requests 20\n") !=
             std::string::npos;
    });
    house.annotate(model::kPauseAnnotation, nullptr);
  };

  std::vector<Peer> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(house.connect());
    clients.back().send(request("POST /", 8000, "Content-Length: 5\r\n") + "hello");
  }
  for (Peer& client : clients) {
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.head.status, 200U);
    EXPECT_TRUE(answer.body.ends_with("hello"));
  }
  EXPECT_EQ(wakes, 1);
}

// A link that is signed names nobody: whose it is is looked for, once, and then it waits like
// others.
TEST(GatewayLife, ASignedLinkWakesItsSandbox) {
  std::atomic<int> wakes = 0;
  std::function<void()> run_again;
  GatewayOptions options;
  options.wake = [&](const model::Key&) {
    ++wakes;
    run_again();
  };
  House house(std::move(options));
  Program program(echo);
  house.reach.open(49983, program.port());
  house.make_sandbox({.annotations = {{std::string(model::kAutoResumeAnnotation), "true"}}});
  run_again = [&] { house.annotate(model::kPauseAnnotation, nullptr); };
  // printf 'x:read::envd-iabcdefghij0123456789' | openssl dgst -sha256 -binary | base64
  const std::string link =
      "GET /files?path=x&signature=v1_ulkeZcLmSGKd71Ozbjl2A/ErJM/bAGbda8E%2BCf/3oC0 "
      "HTTP/1.1\r\nHost: x\r\n\r\n";
  Peer client = house.connect();
  EXPECT_EQ(client.ask(link).head.status, 200U);
  for (int i = 1; i <= 3; ++i) {
    house.gateway->learn(house.annotate(model::kPauseAnnotation, "memory"));
    EXPECT_EQ(client.ask(link).head.status, 200U);
    EXPECT_EQ(wakes, i);
  }
}

TEST(GatewayLife, ASignedLinkWaitsForASandboxThatIsTurning) {
  House house;
  Program program(echo);
  house.reach.open(49983, program.port());
  const model::Json box = house.make_sandbox();
  const auto say_paused = [&](const char* status) {
    house.api().patch(client::kSandboxes, "default", kId, client::PatchKind::merge,
                      apiserver::json(fmt::format(
                          R"({{"status":{{"conditions":[{{"type":"hearth.dev/Paused","status":"{}",
            "reason":"x","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}}]}}}})",
                          status)),
                      {.subresource = "status"});
  };
  say_paused("True");
  const auto is_held = [&] {
    return house.registry.render().find("sandbox_router_inflight_requests 1\n") !=
           std::string::npos;
  };
  Peer client = house.connect();
  client.send(
      "GET /files?path=x&signature=v1_ulkeZcLmSGKd71Ozbjl2A/ErJM/bAGbda8E%2BCf/3oC0 "
      "HTTP/1.1\r\nHost: x\r\n\r\n");
  House::comes_true(is_held);
  say_paused("False");
  EXPECT_EQ(client.read_answer().head.status, 200U);
}

TEST(GatewayLife, SaysWhyASandboxMayNotWake) {
  GatewayOptions options;
  options.wake = [&](const model::Key&) { fail(Code::exhausted, "too many run"); };
  House house(std::move(options));
  house.make_sandbox({.annotations = {{std::string(model::kPauseAnnotation), "memory"},
                                      {std::string(model::kAutoResumeAnnotation), "true"}}});
  EXPECT_EQ(house.connect().ask(request("GET /")).head.status, 429U);
}

TEST(GatewayLife, ANamespaceThatWakesManyHoldsUpNoOther) {
  std::latch release{1};
  GatewayOptions options;
  options.wake = [&](const model::Key& key) {
    if (key.ns == "red") release.wait();
    fail(Code::exhausted, "too many run");
  };
  House house(std::move(options));
  house.api().create(client::kNamespaces, apiserver::json(R"({"metadata":{"name":"red"}})"));
  const std::map<std::string, std::string> sleeps = {
      {std::string(model::kPauseAnnotation), "memory"},
      {std::string(model::kAutoResumeAnnotation), "true"}};
  std::vector<Peer> clients;
  for (int i = 0; i < 40; ++i) {
    const std::string id = fmt::format("iabcdefghij{:010}", i);
    house.make_sandbox({.name = id, .ns = "red", .annotations = sleeps});
    clients.push_back(house.connect());
    clients.back().send(
        fmt::format("GET / HTTP/1.1\r\nHost: gw\r\nE2b-Sandbox-Id: {}\r\n"
                    "E2b-Sandbox-Port: 8000\r\n\r\n",
                    id));
  }
  house.make_sandbox({.annotations = sleeps});
  EXPECT_EQ(house.connect().ask(request("GET /")).head.status, 429U);
  release.count_down();
  for (Peer& client : clients) EXPECT_EQ(client.read_answer().head.status, 429U);
}

TEST(GatewayLife, ANamespaceThatDoesNotAnswerHoldsUpNoOther) {
  House house;
  house.api().create(client::kNamespaces, apiserver::json(R"({"metadata":{"name":"red"}})"));
  Program program(echo);
  Program stuck(echo);
  house.reach.open(8000, program.port());
  house.reach.open(9000, stuck.port());
  std::latch release{1};
  house.reach.meddle([&](int socket_fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    ::getpeername(socket_fd, reinterpret_cast<sockaddr*>(&peer), &size);
    if (ntohs(peer.sin_port) == stuck.port()) release.wait();
  });
  const std::string id = "ibbbbbbbbbb0123456789";
  house.make_sandbox({.name = id, .ns = "red"});
  house.make_sandbox();
  std::vector<Peer> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(house.connect());
    clients.back().send(fmt::format(
        "GET / HTTP/1.1\r\nHost: gw\r\nE2b-Sandbox-Id: {}\r\nE2b-Sandbox-Port: 9000\r\n\r\n", id));
  }
  House::comes_true([&] { return house.reach.dials() >= 8; });
  EXPECT_EQ(house.connect().ask(request("GET /")).head.status, 200U);
  release.count_down();
  for (Peer& client : clients) EXPECT_EQ(client.read_answer().head.status, 200U);
}

TEST(GatewayLife, ALateWatchIsWaitedFor) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  Peer client = house.connect();
  client.send(request("GET /"));
  house.make_sandbox();
  EXPECT_EQ(client.read_answer().head.status, 200U);
}

TEST(GatewayLife, TheSandboxNoticesThatItsClientLeft) {
  House house;
  std::atomic<bool> has_ended = false;
  Program program([&](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    peer.rest();
    has_ended = true;
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  {
    Peer client = open_stream(house);
  }
  House::comes_true([&] { return has_ended.load(); });
  House::comes_true([&] { return house.gateway->activity({"default", kId})->open == 0; });
}

TEST(GatewayLife, FinishesWhatItCanBeforeItStops) {
  House house;
  std::atomic<bool> may_end = false;
  Program program([&](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    House::comes_true([&] { return may_end.load(); });
    peer.send("0\r\n\r\n");
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer idle = house.connect();
  idle.ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  Peer client = open_stream(house);

  std::jthread stopper([&] { house.gateway->stop(kPatience); });
  EXPECT_EQ(idle.rest(), "");
  may_end = true;
  EXPECT_EQ(client.rest(), "0\r\n\r\n");
  stopper.join();
  EXPECT_EQ(house.gateway->connections(), 0U);
}

TEST(GatewayLife, CutsWhatDoesNotEndWhenItStops) {
  House house;
  Program program(stream);
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = open_stream(house);
  house.gateway->stop();
  EXPECT_EQ(client.rest(), "");
}

}  // namespace
}  // namespace hearth::gateway
