// How a server begins and ends.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <set>
#include <thread>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "base/error.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/testing_internal.h"
#include "net/workers.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr std::string_view kGet = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

Router hello() {
  Router router;
  router.add("GET", "/hello", [](const Request&) { return text_response(200, "hello"); });
  return router;
}

// Says that it began, and ends when it is told to, or not at all.
struct Slow {
  asio::awaitable<void> serve(Request, Stream& stream) {
    began.count_down();
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!finish && !(ends_on_drain && stream.is_draining())) {
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    Response response = text_response(200, "slow");
    co_await stream.respond(std::move(response));
  }

  std::latch began{1};
  std::atomic<bool> finish = false;
  std::atomic<bool> ends_on_drain = false;
};

TEST(Drain, RequestsUnderWayAreFinishedAndIdleConnectionsClosed) {
  Slow slow;
  slow.ends_on_drain = true;
  Router router = hello();
  router.add_stream("GET", "/slow", std::bind_front(&Slow::serve, &slow));
  Server server({}, std::move(router));
  server.start();
  const std::uint16_t port = server.port();
  RawClient idle(port);
  idle.send(kGet);
  idle.read_response();
  RawClient busy(port);
  busy.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  slow.began.wait();

  server.stop(10s);

  const std::string response = busy.read_all();
  EXPECT_TRUE(response.starts_with("HTTP/1.1 200 OK")) << response;
  EXPECT_NE(response.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(idle.sees_end());
  EXPECT_THROW(RawClient{port}, Error);
  EXPECT_EQ(server.connections(), 0U);
}

// Waits for a day, unless it is told.
asio::awaitable<void> wait_for_drain(std::latch& began, Stream& stream) {
  asio::steady_timer timer(co_await asio::this_coro::executor, 24h);
  stream.on_drain([&timer] { timer.cancel(); });
  began.count_down();
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  Response response = text_response(200, "told");
  co_await stream.respond(std::move(response));
}

TEST(Drain, AHandlerThatWaitsIsTold) {
  std::latch began{1};
  Router router;
  router.add_stream("GET", "/wait",
                    [&](Request, Stream& stream) { return wait_for_drain(began, stream); });
  Server server({}, std::move(router));
  server.start();
  RawClient client(server.port());
  client.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  began.wait();

  server.stop(10s);

  EXPECT_TRUE(client.read_all().ends_with("told"));
}

TEST(Drain, WhatIsNotFinishedByThenIsCut) {
  Slow slow;
  Router router;
  router.add_stream("GET", "/slow", std::bind_front(&Slow::serve, &slow));
  Server server({.threads = 2}, std::move(router));
  server.start();
  RawClient busy(server.port());
  busy.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  slow.began.wait();

  server.stop(10ms);

  EXPECT_EQ(busy.read_all(), "");
  EXPECT_EQ(server.connections(), 0U);
}

TEST(Drain, AHalfSentRequestDoesNotHoldItUp) {
  Server server({}, hello());
  server.start();
  RawClient client(server.port());
  client.send(kGet);
  client.read_response();
  client.send("GET /hel");

  server.stop(10ms);

  EXPECT_TRUE(client.sees_end());
}

TEST(Drain, StoppingTwiceOrUnstartedIsHarmless) {
  Server never({}, hello());
  never.stop();
  Server server({}, hello());
  server.start();
  server.stop();
  server.stop();
}

TEST(Drain, EveryThreadServes) {
  Server server({.threads = 3}, hello());
  server.start();

  for (int i = 0; i < 9; ++i) {
    RawClient client(server.port());
    client.send(kGet);
    EXPECT_TRUE(client.read_response().ends_with("hello"));
  }
}

TEST(Listening, APortThatIsTakenIsAnError) {
  Server first({}, hello());
  first.start();
  Server second({.port = first.port()}, hello());

  try {
    second.start();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::already_exists);
  }
  first.stop();
  second.start();
  EXPECT_EQ(second.port(), second.port());
}

TEST(Listening, AUnixSocketIsPrivateAndRemovedAtTheEnd) {
  TemporaryFolder folder;
  const std::string path = folder.path("socket");
  {
    Server server({.unix_path = path}, hello());
    server.start();
    struct stat file{};
    ASSERT_EQ(lstat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600U);
    RawClient client(path);
    client.send(kGet);
    EXPECT_TRUE(client.read_response().ends_with("hello"));

    Server second({.unix_path = path}, hello());
    EXPECT_THROW(second.start(), Error) << "alive: not replaced";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Listening, TheSocketOfADeadProcessIsReplacedButNoOtherFile) {
  TemporaryFolder folder;
  const std::string path = folder.path("socket");
  sockaddr_un address{.sun_family = AF_UNIX};
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(stale);
  ASSERT_TRUE(std::filesystem::exists(path));
  std::ofstream(folder.path("file")) << "precious";

  Server server({.unix_path = path}, hello());
  server.start();
  RawClient client(path);
  client.send(kGet);
  EXPECT_TRUE(client.read_response().ends_with("hello"));
  Server other({.unix_path = folder.path("file")}, hello());
  EXPECT_THROW(other.start(), Error);
  EXPECT_TRUE(std::filesystem::exists(folder.path("file")));
}

TEST(Listening, ASocketThatListensAlreadyCanBeGiven) {
  TemporaryFolder folder;
  const std::string path = folder.path("socket");
  sockaddr_un address{.sun_family = AF_UNIX};
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 10), 0);

  Server server({.listen_fd = fd}, hello());
  server.start();

  RawClient client(path);
  client.send(kGet);
  EXPECT_TRUE(client.read_response().ends_with("hello"));
}

TEST(Connections, MoreThanAllowedAreTurnedAway) {
  Server server({.max_connections = 2}, hello());
  server.start();
  RawClient first(server.port());
  RawClient second(server.port());
  for (RawClient* client : {&first, &second}) {
    client->send(kGet);
    EXPECT_TRUE(client->read_response().ends_with("hello"));
  }

  RawClient third(server.port());
  EXPECT_TRUE(third.read_all().starts_with("HTTP/1.1 503 Service Unavailable\r\n"));

  first.send(kGet);
  EXPECT_TRUE(first.read_response().ends_with("hello"));
}

TEST(Workers, KeepAHandlerThatBlocksOffTheConnectionsThread) {
  Workers workers(1);
  std::latch blocked{1};
  std::latch release{1};
  Router router = hello();
  router.add("GET", "/block",
             [&](const Request&) {
               blocked.count_down();
               release.wait();
               return text_response(200, "at last");
             },
             {.workers = &workers});
  router.add("GET", "/fail", [](const Request&) -> Response { fail(Code::conflict, "no"); },
             {.workers = &workers});
  Server server({}, std::move(router));
  server.start();
  RawClient slow(server.port());
  slow.send("GET /block HTTP/1.1\r\nHost: h\r\n\r\n");
  blocked.wait();

  RawClient quick(server.port());
  quick.send(kGet);
  EXPECT_TRUE(quick.read_response().ends_with("hello"));
  release.count_down();
  EXPECT_TRUE(slow.read_response().ends_with("at last"));
  slow.send("GET /fail HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(slow.read_response().starts_with("HTTP/1.1 409 "));
}

TEST(Workers, WorkAFewAtOnceBesidesThoseWhoWait) {
  Workers workers(4, 256, /*at_once=*/1);
  std::latch waiting{1};
  std::latch release{1};
  std::atomic<int> working = 0;
  std::atomic<int> most = 0;
  Router router;
  router.add("GET", "/wait",
             [&](const Request&) {
               const Workers::Aside aside;
               const Workers::Aside again;
               waiting.count_down();
               release.wait();
               return text_response(200, "at last");
             },
             {.workers = &workers});
  router.add("GET", "/hello",
             [&](const Request&) {
               most = std::max(most.load(), ++working);
               std::this_thread::sleep_for(std::chrono::milliseconds(2));
               --working;
               return text_response(200, "hello");
             },
             {.workers = &workers});
  Server server({}, std::move(router));
  server.start();
  RawClient slow(server.port());
  slow.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  waiting.wait();

  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 6; ++i) clients.push_back(std::make_unique<RawClient>(server.port()));
  for (const auto& each : clients) each->send(kGet);
  for (const auto& each : clients) EXPECT_TRUE(each->read_response().ends_with("hello"));
  EXPECT_EQ(most, 1);
  release.count_down();
  EXPECT_TRUE(slow.read_response().ends_with("at last"));
}

TEST(Workers, CallWhoWorkedLastBeforeThoseWhoAreCold) {
  Workers workers(16);
  std::set<std::thread::id> worked;
  Router router;
  router.add("GET", "/hello",
             [&](const Request&) {
               worked.insert(std::this_thread::get_id());
               return text_response(200, "hello");
             },
             {.workers = &workers});
  Server server({}, std::move(router));
  server.start();
  RawClient client(server.port());

  for (int i = 0; i < 100; ++i) {
    client.send(kGet);
    EXPECT_TRUE(client.read_response().ends_with("hello"));
  }

  // One, and another where the answer was faster than the way back to the seat.
  EXPECT_LT(worked.size(), 8U);
}

// Of work that blocks until it is released.
class SharedWorkers : public testing::Test {
 protected:
  void begin(const std::string& whose, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(workers.start(
          [this, whose] {
            {
              const std::lock_guard lock(mutex);
              ++began[whose];
            }
            release.wait();
          },
          whose));
    }
  }

  int begun(const std::string& whose) {
    const std::lock_guard lock(mutex);
    return began[whose];
  }

  // After it has settled.
  void expect_begun(const std::string& whose, int count) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(30));
    while (begun(whose) < count && !deadline.passed()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(begun(whose), count) << whose;
  }

  void TearDown() override {
    if (!release.try_wait()) release.count_down();
  }

  std::mutex mutex;
  std::map<std::string, int> began;
  std::latch release{1};
  Workers workers{12, /*queue_limit=*/64};
};

TEST_F(SharedWorkers, AreLeftToWhoeverComesNext) {
  begin("a", 20);
  expect_begun("a", 6);
  begin("b", 20);
  expect_begun("b", 3);
  begin("c", 1);
  expect_begun("c", 1);
  begin("", 20);  // nobody's: all the rest
  expect_begun("", 2);
}

TEST_F(SharedWorkers, DoAllThatWaitsWhenTheyCan) {
  begin("a", 20);
  begin("b", 15);
  release.count_down();
  expect_begun("a", 20);
  expect_begun("b", 15);
}

TEST_F(SharedWorkers, QueueForEverybody) {
  begin("a", 6);
  expect_begun("a", 6);
  begin("a", 32);  // half of what may wait
  EXPECT_FALSE(workers.start([] {}, "a"));
  begin("b", 16);
  EXPECT_TRUE(workers.start([] {}, "c"));
}

TEST(Workers, EndWithWhatWasQueuedDone) {
  std::atomic<int> done = 0;
  std::latch release{1};
  {
    Workers workers(3, 256, /*at_once=*/1);
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(workers.start([&] {
        release.wait();
        ++done;
      }));
    }
    release.count_down();
  }
  EXPECT_EQ(done, 10);
}

TEST(Workers, AFullQueueIsSaidAtOnce) {
  Workers workers(1, /*queue_limit=*/0);
  Router router;
  router.add("GET", "/hello", [](const Request&) { return Response(); }, {.workers = &workers});
  Server server({}, std::move(router));
  server.start();
  RawClient client(server.port());

  client.send(kGet);

  EXPECT_TRUE(client.read_response().starts_with("HTTP/1.1 503 "));
}

}  // namespace
}  // namespace hearth::net
