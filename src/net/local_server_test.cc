#include "net/local_server.h"

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "net/stream.h"
#include "net/workers.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;

Response ask(LocalServer& server, std::string method, std::string target, std::string body = {}) {
  std::promise<Response> promise;
  Request request{.method = std::move(method), .target = std::move(target)};
  request.headers.set("Host", "h");
  request.body = std::move(body);
  server.ask(std::move(request),
             [&](Response response) { promise.set_value(std::move(response)); });
  return promise.get_future().get();
}

asio::awaitable<void> stream_nothing(Request, Stream&) {
  co_return;
}

TEST(LocalServer, AnswersAsAServerDoes) {
  Workers workers(2);
  Router router;
  router.set_guard([](Request& request) {
    if (request.query == "forbidden") fail(Code::forbidden, "no");
  });
  router.set_error_renderer([](const Problem& problem, const Request&) {
    return text_response(problem.status, "sorry: " + problem.message);
  });
  const auto tell = [](const Request& request) {
    return text_response(200, request.parameter("id") + '|' + request.query + '|' + request.host +
                                  '|' + request.body);
  };
  router.add("GET", "/here/{id}", tell);
  router.add("POST", "/there/{id}", tell, {.max_body_bytes = 3, .workers = &workers});
  router.add("GET", "/fail", [](const Request&) -> Response { fail(Code::conflict, "taken"); },
             {.workers = &workers});
  router.add_stream("GET", "/stream", stream_nothing);
  LocalServer server(std::move(router));

  EXPECT_EQ(ask(server, "GET", "/here/a%20b?c=d").body, "a b|c=d|h|");
  EXPECT_EQ(ask(server, "POST", "/there/x", "abc").body, "x||h|abc");
  EXPECT_EQ(ask(server, "POST", "/there/x", "abcd").status, 413U);
  EXPECT_EQ(ask(server, "GET", "/fail").body, "sorry: taken");
  EXPECT_EQ(ask(server, "GET", "/here/x?forbidden").status, 403U);
  EXPECT_EQ(ask(server, "GET", "/nowhere").status, 404U);
  EXPECT_EQ(ask(server, "GET", "/here/%zz").status, 400U);
  EXPECT_EQ(ask(server, "GET", "nonsense").body, "sorry: malformed request target");
  EXPECT_EQ(ask(server, "CONNECT", "h:80").status, 501U);
  EXPECT_EQ(ask(server, "GET", "/stream").status, 501U);
  const Response wrong = ask(server, "DELETE", "/here/x");
  EXPECT_EQ(wrong.status, 405U);
  EXPECT_EQ(wrong.headers.value("Allow"), "GET, HEAD");
}

TEST(LocalServer, AFullQueueIsSaidAtOnce) {
  Workers workers(1, /*queue_limit=*/0);
  Router router;
  router.add("GET", "/", [](const Request&) { return Response(); }, {.workers = &workers});
  LocalServer server(std::move(router));
  EXPECT_EQ(ask(server, "GET", "/").status, 503U);
}

TEST(LocalServer, StopsWhenHandlersHaveEnded) {
  Workers workers(1);
  std::latch begun{1};
  std::latch release{1};
  std::atomic<bool> has_answered = false;
  Router router;
  router.add("GET", "/",
             [&](const Request&) {
               begun.count_down();
               release.wait();
               return Response();
             },
             {.workers = &workers});
  LocalServer server(std::move(router));
  server.ask({.method = "GET", .target = "/"}, [&](const Response&) { has_answered = true; });
  begun.wait();
  std::jthread stopper([&] {
    server.stop();
    EXPECT_TRUE(has_answered);
  });
  while (ask(server, "GET", "/other").status == 404) std::this_thread::yield();
  release.count_down();
  stopper.join();
  EXPECT_EQ(ask(server, "GET", "/").status, 503U);
}

}  // namespace
}  // namespace hearth::net
