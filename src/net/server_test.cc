// The server as a stranger meets it: bytes in, bytes out.
#include "net/server.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "net/stream.h"
#include "net/testing_internal.h"

namespace hearth::net {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kGet = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    router_.add("GET", "/hello", [](const Request&) { return text_response(200, "hello"); });
    router_.add("POST", "/echo", [](const Request& r) { return text_response(200, r.body); });
    router_.add("GET", "/items/{id}", [](const Request& r) {
      return text_response(200, r.parameter("id") + '|' + r.query + '|' + r.host);
    });
  }

  void start() {
    server_.emplace(options_, std::move(router_));
    server_->start();
  }
  // Sends `bytes` on a connection of their own, returns all that comes back.
  std::string exchange(std::string_view bytes) {
    RawClient client(server_->port());
    client.send(bytes);
    client.half_close();
    return client.read_all();
  }

  ServerOptions options_;
  Router router_;
  std::optional<Server> server_;
};

std::string status_of(std::string_view response) {
  return std::string(response.substr(0, response.find("\r\n")));
}

TEST_F(ServerTest, ServesManyRequestsOnOneConnection) {
  start();
  RawClient client(server_->port());

  for (int i = 0; i < 3; ++i) {
    client.send(kGet);
    const std::string response = client.read_response();
    EXPECT_EQ(status_of(response), "HTTP/1.1 200 OK");
    EXPECT_TRUE(response.ends_with("\r\n\r\nhello")) << response;
    EXPECT_NE(response.find("Date: "), std::string::npos);
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  RawClient client(server_->port());

  client.send(
      "GET /items/1 HTTP/1.1\r\nHost: h\r\n\r\n"
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nde\r\n1\r\nf\r\n0\r\n\r\n\r\n"
      "GET /items/4 HTTP/1.1\r\nHost: h\r\n\r\n");

  EXPECT_TRUE(client.read_response().ends_with("1||h"));
  EXPECT_TRUE(client.read_response().ends_with("abc"));
  EXPECT_TRUE(client.read_response().ends_with("def"));
  EXPECT_TRUE(client.read_response().ends_with("4||h"));
}

TEST_F(ServerTest, DoesWhatTheConnectionHeaderSays) {
  start();

  const std::string closed =
      exchange("GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(closed.find("Connection: close"), std::string::npos);
  RawClient old(server_->port());
  old.send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_NE(old.read_all().find("Connection: close"), std::string::npos);
  RawClient kept(server_->port());
  kept.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(kept.read_response().find("Connection: keep-alive"), std::string::npos);
  kept.send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(status_of(kept.read_all()), "HTTP/1.1 200 OK");
}

TEST_F(ServerTest, HeadHasTheLengthButNotTheBody) {
  start();
  RawClient client(server_->port());
  client.send("HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n");

  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 5"), std::string::npos);
  client.send(kGet);
  EXPECT_EQ(status_of(client.read_response()), "HTTP/1.1 200 OK");
}

TEST_F(ServerTest, AbsoluteTargetsOverruleTheHost) {
  start();

  const std::string response =
      exchange("GET http://other:80/items/a%20b?q=%31 HTTP/1.1\r\nHost: h\r\n\r\n");

  EXPECT_TRUE(response.ends_with("a b|q=%31|other:80")) << response;
}

TEST_F(ServerTest, MalformedRequestsAreAnsweredAndTheConnectionClosed) {
  start();
  const std::pair<std::string, std::string> cases[] = {
      {"nonsense\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/1.1\nHost: h\n\n", "400 Bad Request"},
      {"\x16\x03\x01\x02", "400 Bad Request"},
      {"GET / HTTP/1.1\r\n\r\n", "400 Bad Request"},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", "400 Bad Request"},
      {"GET nopath HTTP/1.1\r\nHost: h\r\n\r\n", "400 Bad Request"},
      {"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", "501 Not Implemented"},
      {"GET /hello HTTP/3.0\r\nHost: h\r\n\r\n", "505 HTTP Version Not Supported"},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nExpect: miracles\r\n\r\n", "417 Expectation Failed"},
      {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
       "400 Bad Request"},
      {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
       "0\r\n\r\n",
       "400 Bad Request"},
      {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", "501 Not Implemented"},
      {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
       "400 Bad Request"},
  };

  for (const auto& [bytes, status] : cases) {
    // What follows must not be taken for another request.
    const std::string response = exchange(bytes + std::string(kGet));
    EXPECT_EQ(status_of(response), "HTTP/1.1 " + status) << bytes;
    EXPECT_NE(response.find("Connection: close"), std::string::npos) << bytes;
    EXPECT_EQ(response.find("HTTP/1.1 2", 8), std::string::npos) << response;
  }
  EXPECT_EQ(status_of(exchange(kGet)), "HTTP/1.1 200 OK");
}

TEST_F(ServerTest, RefusalsOfTheRouterKeepTheConnection) {
  start();
  RawClient client(server_->port());

  client.send("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string missing = client.read_response();
  EXPECT_EQ(status_of(missing), "HTTP/1.1 404 Not Found");
  EXPECT_TRUE(missing.ends_with(R"({"code":"not_found","message":"no such path: '/nowhere'"})"));
  client.send("DELETE /hello HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
  const std::string wrong = client.read_response();
  EXPECT_EQ(status_of(wrong), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_NE(wrong.find("Allow: GET, HEAD\r\n"), std::string::npos);
  client.send("GET /items/%00 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(client.read_response()), "HTTP/1.1 400 Bad Request");
  client.send("GET /items/.. HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(client.read_response()), "HTTP/1.1 400 Bad Request");
  client.send(kGet);
  EXPECT_EQ(status_of(client.read_response()), "HTTP/1.1 200 OK");
}

TEST_F(ServerTest, LongHeadsAreRefused) {
  options_.limits.head_bytes = 2000;
  options_.limits.target_bytes = 100;
  options_.limits.fields = 10;
  start();
  const std::string longest(5000, 'x');

  EXPECT_EQ(status_of(exchange("GET /" + longest)), "HTTP/1.1 414 URI Too Long");
  EXPECT_EQ(status_of(exchange("GET /" + longest.substr(0, 200) + " HTTP/1.1\r\nHost: h\r\n\r\n")),
            "HTTP/1.1 414 URI Too Long");
  EXPECT_EQ(status_of(exchange("GET / HTTP/1.1\r\nHost: h\r\nX: " + longest)),
            "HTTP/1.1 431 Request Header Fields Too Large");
  std::string many = "GET /hello HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 20; ++i) many += "X: y\r\n";
  EXPECT_EQ(status_of(exchange(many + "\r\n")), "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST_F(ServerTest, LongBodiesAreRefused) {
  options_.limits.body_bytes = 1000;
  start();
  const std::string body(200'000, 'x');

  RawClient counted(server_->port());
  counted.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + body);
  EXPECT_EQ(status_of(counted.read_all()), "HTTP/1.1 413 Content Too Large");
  RawClient chunked(server_->port());
  chunked.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n" +
               body);
  EXPECT_EQ(status_of(chunked.read_all()), "HTTP/1.1 413 Content Too Large");
  RawClient huge(server_->port());
  huge.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n");
  EXPECT_EQ(status_of(huge.read_all()), "HTTP/1.1 413 Content Too Large");
}

TEST_F(ServerTest, SlowClientsAreGivenUp) {
  options_.timeouts.head = 50ms;
  options_.timeouts.idle = 100ms;
  options_.timeouts.body = 50ms;
  start();

  RawClient mute(server_->port());
  EXPECT_EQ(mute.read_all(), "");
  RawClient head(server_->port());
  head.send("GET /hello HT");
  EXPECT_EQ(status_of(head.read_all()), "HTTP/1.1 408 Request Timeout");
  RawClient body(server_->port());
  body.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(status_of(body.read_all()), "HTTP/1.1 408 Request Timeout");
  RawClient idle(server_->port());
  idle.send(kGet);
  EXPECT_EQ(status_of(idle.read_response()), "HTTP/1.1 200 OK");
  EXPECT_EQ(idle.read_all(), "");
}

// A byte now and then keeps a connection from being idle, but not its head from being late.
TEST_F(ServerTest, DrippingDoesNotBuyTime) {
  options_.timeouts.head = 100ms;
  options_.timeouts.body = 10s;
  options_.timeouts.whole_body = 100ms;
  start();
  const auto begin = std::chrono::steady_clock::now();

  RawClient head(server_->port());
  head.send("GET /hello HTTP/1.1\r\nX: ");
  while (!head.has_answer(1ms)) head.send("x");
  EXPECT_EQ(status_of(head.read_all()), "HTTP/1.1 408 Request Timeout");
  RawClient body(server_->port());
  body.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
  while (!body.has_answer(1ms)) body.send("x");
  EXPECT_EQ(status_of(body.read_all()), "HTTP/1.1 408 Request Timeout");
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            60s);  // a million drips take a quarter of an hour
}

TEST_F(ServerTest, ErrorsOfHandlersBecomeStatuses) {
  router_.add("GET", "/fail/{code}", [](const Request& r) -> Response {
    throw Error(code_from_number(static_cast<unsigned>(std::stoi(r.parameter("code")))), "why not");
  });
  start();
  RawClient client(server_->port());

  const std::pair<Code, std::string> cases[] = {
      {Code::invalid, "400 Bad Request"},
      {Code::unauthenticated, "401 Unauthorized"},
      {Code::forbidden, "403 Forbidden"},
      {Code::not_found, "404 Not Found"},
      {Code::already_exists, "409 Conflict"},
      {Code::conflict, "409 Conflict"},
      {Code::exhausted, "429 Too Many Requests"},
      {Code::timeout, "504 Gateway Timeout"},
      {Code::unavailable, "503 Service Unavailable"},
      {Code::internal, "500 Internal Server Error"},
  };
  for (const auto& [code, status] : cases) {
    client.send(fmt::format("GET /fail/{} HTTP/1.1\r\nHost: h\r\n\r\n", static_cast<int>(code)));
    const std::string response = client.read_response();
    EXPECT_EQ(status_of(response), "HTTP/1.1 " + status);
    EXPECT_TRUE(
        response.ends_with(fmt::format(R"({{"code":"{}","message":"why not"}})", to_string(code))))
        << response;
  }
}

TEST_F(ServerTest, OtherExceptionsTellNothing) {
  router_.add("GET", "/throw", [](const Request&) -> Response {
    throw std::runtime_error("the password is swordfish");
  });
  router_.add("GET", "/int", [](const Request&) -> Response { throw 7; });
  router_.add("GET", "/header",
              [](const Request&) { return Response{200, {{"X", "a\r\nSet-Cookie: b"}}, "x"}; });
  start();

  for (const std::string path : {"/throw", "/int", "/header"}) {
    const std::string response = exchange("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(status_of(response), "HTTP/1.1 500 Internal Server Error") << path;
    EXPECT_EQ(response.find("swordfish"), std::string::npos);
    EXPECT_EQ(response.find("Set-Cookie"), std::string::npos);
  }
}

TEST_F(ServerTest, ASurfaceHasItsOwnDialectAlsoForWhatCannotBeParsed) {
  router_.set_error_renderer([](const Problem& problem, const Request&) {
    return text_response(problem.status, "dialect: " + problem.message);
  });
  start();

  EXPECT_TRUE(
      exchange("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n").ends_with("no such path: '/nowhere'"));
  EXPECT_NE(exchange("bad\r\n\r\n").find("dialect: "), std::string::npos);
}

TEST_F(ServerTest, TheGuardDecidesBeforeTheBodyIsRead) {
  router_.set_guard([](Request& request) {
    if (!equal_constant_time(request.headers.value("Authorization"), "Bearer t")) {
      fail(Code::unauthenticated, "no token");
    }
    request.principal = "alice";
  });
  router_.add("POST", "/who", [](const Request& r) { return text_response(200, r.principal); });
  start();
  RawClient refused(server_->port());
  refused.send(
      "POST /who HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");

  const std::string response = refused.read_all();
  EXPECT_EQ(status_of(response), "HTTP/1.1 401 Unauthorized");
  EXPECT_TRUE(exchange("POST /who HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\n\r\n")
                  .ends_with("alice"));
}

}  // namespace
}  // namespace hearth::net
