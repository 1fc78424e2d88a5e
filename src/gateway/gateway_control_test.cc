// Requests that name no sandbox: handed to a function of this process, whole.
#include <latch>
#include <vector>

#include "base/guarded.h"
#include "gateway/gateway_testing_internal.h"

namespace hearth::gateway {
namespace {

using Reply = std::function<void(http::Response)>;

// Answers at once with what it was sent.
void echo_control(http::Request request, const Reply& reply) {
  std::string text = fmt::format("{} {}\n", request.method, request.target);
  for (const http::Field& field : request.headers)
    text += fmt::format("{}: {}\n", field.name, field.value);
  reply({.status = 200, .headers = {}, .body = text + "\n" + request.body});
}

std::string body_of(const Answer& answer) {
  return answer.body.substr(answer.body.find("\n\n") + 2);
}

// Keeps what it is asked, until the test answers.
class SlowControl {
 public:
  Control control() {
    return [this](const http::Request&, Reply reply) {
      replies_.with([&](auto& replies) { replies.push_back(std::move(reply)); });
    };
  }
  std::size_t size() {
    return replies_.with([](auto& replies) { return replies.size(); });
  }
  Reply next() {
    House::comes_true([&] { return size() > 0; });
    return replies_.with([](auto& replies) {
      Reply reply = std::move(replies.front());
      replies.erase(replies.begin());
      return reply;
    });
  }

 private:
  Guarded<std::vector<Reply>> replies_;
};

constexpr std::string_view kGet = "GET /sandboxes HTTP/1.1\r\nHost: api.x\r\n\r\n";

TEST(GatewayControl, IsAskedWithTheWholeBodyHoweverItComes) {
  House house({.control = echo_control});
  Peer client = house.connect();
  EXPECT_EQ(body_of(client.ask("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")),
            "hello");

  const std::string_view chunked =
      "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  client.send(chunked);
  for (const char* piece : {"3\r\nhel", "\r", "\n2", "\r\nlo\r\n0\r\n", "\r\n"}) client.send(piece);
  EXPECT_EQ(body_of(client.read_answer()), "hello");

  // More than a buffer, and the next request right behind it.
  const std::string large(300 << 10, 'x');
  client.send(fmt::format("POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}{}",
                          large.size(), large, kGet));
  EXPECT_EQ(body_of(client.read_answer()), large);
  EXPECT_TRUE(client.read_answer().body.starts_with("GET /sandboxes\n"));

  client.send("POST /d HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(body_of(client.read_answer()), "ok");
}

TEST(GatewayControl, SeesNothingThatIsBetweenTheClientAndTheGateway) {
  House house({.control = echo_control});
  Peer client = house.connect();
  const Answer answer = client.ask(
      "GET http://api.x/a?b=1 HTTP/1.1\r\nHost: y\r\nConnection: X-Hop\r\nX-Hop: 1\r\nTE: "
      "trailers\r\n"
      "X-Forwarded-For: 6.6.6.6\r\nX-API-Key: k\r\n\r\n");
  EXPECT_EQ(answer.body, "GET /a?b=1\nHost: api.x\nX-API-Key: k\n\n");
}

bool lets_pages_read(const Answer& answer) {
  return answer.head.headers.value("Access-Control-Allow-Origin") == "*" &&
         answer.head.headers.value("Access-Control-Expose-Headers") ==
             "X-Next-Token, X-Total-Running, Retry-After";
}

TEST(GatewayControl, PagesOfAnyOriginMayAsk) {
  House house({.control = [](const http::Request& request, const Reply& reply) {
    reply({.status = request.target == "/none" ? 204U : 401U, .headers = {}, .body = "x"});
  }});
  Peer client = house.connect();
  const Answer may = client.ask(
      "OPTIONS /v2/sandboxes HTTP/1.1\r\nHost: x\r\nOrigin: http://a.example\r\n"
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: e2b-sandbox-id,x-api-key\r\n\r\n");
  EXPECT_EQ(may.head.status, 204U);
  const http::Headers& said = may.head.headers;
  EXPECT_TRUE(lets_pages_read(may));
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"})
    EXPECT_TRUE(said.has_token("Access-Control-Allow-Methods", method)) << method;
  EXPECT_EQ(said.value("Access-Control-Allow-Headers"), "e2b-sandbox-id,x-api-key");
  // But not to speak as a program on this machine does, which needs no key.
  EXPECT_EQ(client
                .ask("OPTIONS / HTTP/1.1\r\nHost: x\r\nAccess-Control-Request-Method: GET\r\n"
                     "Access-Control-Request-Headers: x-sandbox-id, a,X-Sandbox-Port\r\n\r\n")
                .head.headers.value("Access-Control-Allow-Headers"),
            "a");
  EXPECT_FALSE(said.value("Access-Control-Max-Age").empty());
  for (const char* path : {"/some", "/none"}) {
    const Answer answer =
        client.ask(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n\r\n", path));
    EXPECT_TRUE(lets_pages_read(answer)) << path;
  }
  EXPECT_EQ(client.ask("OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n").head.status, 401U)
      << "not from a page";
  const Answer gone = client.ask(
      "GET /health HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: i0\r\nE2b-Sandbox-Port: 49983\r\n\r\n");
  EXPECT_EQ(gone.head.status, 502U);
  EXPECT_TRUE(lets_pages_read(gone));
}

TEST(GatewayControl, BodiesHaveLimits) {
  House house(
      {.control = echo_control, .limits = {.control_body = 1000, .control_body_time = 1ms}});
  const auto refused = [&](std::string_view request) {
    Peer client = house.connect();
    client.send(request);
    const Answer answer = client.read_answer();
    EXPECT_TRUE(answer.head.headers.has_token("Connection", "close"));
    EXPECT_TRUE(answer.body.starts_with(fmt::format(R"({{"code":{},)", answer.head.status)));
    return answer.head.status;
  };
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n"), 413U);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                    std::string(1001, 'x')),
            413U);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            400U);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: more\r\n\r\n"),
            417U);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhell"), 408U);
}

TEST(GatewayControl, WhatStrangersSendIsNotWaitedFor) {
  House house({.control = echo_control, .key_owner = [](std::string_view key) {
                 return KeyOwner{.ns = key == "e2b_ours" ? "default" : ""};
               }});
  for (const char* key : {"", "X-API-Key: e2b_theirs\r\n"}) {
    Peer client = house.connect();
    // None of its body comes.
    const Answer answer =
        client.ask(fmt::format("POST /a HTTP/1.1\r\nHost: x\r\n{}Content-Length: 10\r\n\r\n", key));
    EXPECT_EQ(answer.head.status, 200U);
    EXPECT_EQ(body_of(answer), "");
    EXPECT_TRUE(answer.head.headers.has_token("Connection", "close"));
  }
  Peer client = house.connect();
  EXPECT_EQ(body_of(client.ask("POST /a HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_ours\r\n"
                               "Content-Length: 2\r\n\r\nok")),
            "ok");
}

TEST(GatewayControl, AllBodiesTogetherHaveALimit) {
  House house({.control = echo_control, .limits = {.control_bytes = 1000}});
  Peer first = house.connect();
  first.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n" + std::string(800, 'x'));
  const auto send = [&] {
    Peer second = house.connect();
    return second
        .ask("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n" + std::string(300, 'y'))
        .head.status;
  };
  House::comes_true([&] { return send() == 503; });
  first.send(std::string(100, 'x'));
  EXPECT_EQ(first.read_answer().head.status, 200U);
  EXPECT_EQ(send(), 200U);
}

TEST(GatewayControl, AnswersOfAnySizeArriveAndNoneHasTwoFramings) {
  const std::string large(8 << 20, 'y');
  House house({.control = [&](const http::Request& request, const Reply& reply) {
    if (request.target == "/none") return reply({.status = 204});
    if (request.target == "/odd") return reply({.headers = {{"X-Odd", "a\r\nb"}}, .body = "z"});
    reply({.headers = {{"Content-Length", "7"}, {"Connection", "close"}}, .body = large});
  }});
  Peer client = house.connect();
  client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\nHEAD /large HTTP/1.1\r\nHost: x\r\n\r\n");
  const Answer answer = client.read_answer();
  EXPECT_TRUE(answer.is_whole);
  EXPECT_EQ(answer.body, large);
  EXPECT_EQ(client.read_answer(true).head.framing.length, 0U);
  const Answer none = client.ask("GET /none HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(none.head.status, 204U);
  EXPECT_EQ(none.head.headers.find("Content-Length"), nullptr);
  EXPECT_EQ(client.ask("GET /odd HTTP/1.1\r\nHost: x\r\n\r\n").head.status, 500U);
}

TEST(GatewayControl, HasNoMoreQuestionsAtOnceThanItsLimit) {
  SlowControl slow;
  House house({.control = slow.control(), .limits = {.control_requests = 1}});
  Peer first = house.connect();
  first.send(kGet);
  const Reply reply = slow.next();
  Peer second = house.connect();
  EXPECT_EQ(second.ask(kGet).head.status, 503U);
  reply({.status = 201});
  EXPECT_EQ(first.read_answer().head.status, 201U);
  second.send(kGet);
  slow.next()({.status = 202});
  EXPECT_EQ(second.read_answer().head.status, 202U);
}

TEST(GatewayControl, AnAnswerThatComesTooLateIsNobodys) {
  SlowControl slow;
  std::optional<House> house;
  house.emplace(GatewayOptions{.control = slow.control(), .limits = {.control_requests = 1}});
  Peer leaver = house->connect();
  leaver.send(kGet);
  const Reply late = slow.next();
  leaver.reset();
  House::comes_true([&] { return house->gateway->connections() == 0; });
  Peer client = house->connect();
  client.send(kGet);  // who left takes nobody's place
  const Reply later = slow.next();
  late({.status = 201});
  house.reset();
  later({.status = 202});
  EXPECT_EQ(client.rest(), "");
}

TEST(GatewayControl, WhatIsUnderWayIsAnsweredBeforeTheEnd) {
  SlowControl slow;
  House house({.control = slow.control()});
  Peer client = house.connect();
  client.send(kGet);
  const Reply reply = slow.next();
  Peer idle = house.connect();
  std::jthread stopper([&] { house.gateway->stop(kPatience); });
  EXPECT_EQ(idle.rest(), "");  // draining by now
  reply({.status = 200, .headers = {}, .body = "done"});
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.body, "done");
  EXPECT_TRUE(answer.head.headers.has_token("Connection", "close"));
}

}  // namespace
}  // namespace hearth::gateway
