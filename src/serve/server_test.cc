#include "serve/server.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "serve/testing.h"

namespace hearth::serve {
namespace {

using namespace std::chrono_literals;

class Serve : public testing::Test {
 protected:
  TestClient start(Handler handler, ServerOptions options = {},
                   std::function<std::string()> rehearsal = {}) {
    Listening listening = listen_on_loopback();
    port_ = listening.port;
    std::vector<Entrance> entrances;
    entrances.push_back({.listen = std::move(listening.socket),
                         .handler = std::move(handler),
                         .rehearsal = std::move(rehearsal)});
    server_ = std::make_unique<Server>(std::move(entrances), options);
    return TestClient(port_);
  }

  // For handlers that borrow from the test: at its end they are over.
  void stop() { server_.reset(); }

  std::uint16_t port_ = 0;
  std::unique_ptr<Server> server_;
};

void echo(Exchange& exchange) {
  const std::string body = exchange.read_body(1 << 20);
  exchange.respond(http::text_response(
      200, fmt::format("{} {}?{} {}", exchange.request().method, exchange.request().path,
                       exchange.request().query, body)));
}

TEST_F(Serve, KeepsNoMoreOfAllBodiesThanItMay) {
  std::latch go(1);
  std::latch is_kept(1);
  TestClient first = start(
      [&](Exchange& exchange) {
        const std::string body = exchange.read_body(1 << 20);
        if (exchange.request().path == "/slow") {
          is_kept.count_down();
          go.wait();
        }
        exchange.respond(http::text_response(200, std::to_string(body.size())));
      },
      {.bodies = std::size_t{1} << 20});
  const std::string body(700 << 10, 'x');
  const auto post = [&](std::size_t size) {
    return TestClient(port_).ask({.method = "POST", .target = "/", .body = body.substr(0, size)});
  };
  first.send(
      fmt::format("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.size()) +
      body);
  is_kept.wait();
  EXPECT_EQ(post(body.size()).status, 429U);
  EXPECT_EQ(post(64 << 10).status, 200U) << "small ones are heard";
  go.count_down();
  EXPECT_EQ(first.receive().status, 200U);
  const Deadline deadline = Deadline::after(1min);
  while (post(body.size()).status != 200 && !deadline.passed()) {
  }
  EXPECT_FALSE(deadline.passed());
  stop();
}

TEST_F(Serve, AnswersManyRequestsOnOneConnection) {
  TestClient client = start(echo);
  for (int i = 0; i < 3; ++i) {
    const auto response = client.ask({.method = "POST", .target = "/a?b=c", .body = "hello"});
    EXPECT_EQ(response.status, 200U);
    EXPECT_EQ(response.body, "POST /a?b=c hello");
  }
}

TEST_F(Serve, RehearsesOnceSomebodyIsThere) {
  std::atomic<int> rehearsed = 0;
  const auto count = [&](Exchange& exchange) {
    if (exchange.request().path == "/rehearsal") rehearsed += exchange.read_body(10) == "once";
    exchange.respond(http::text_response(200, "here"));
  };
  TestClient client = start(count, {}, [] {
    return "POST /rehearsal HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nonce";
  });
  EXPECT_EQ(client.ask({.method = "GET", .target = "/"}).body, "here");
  while (rehearsed == 0) std::this_thread::yield();
  TestClient second(port_);
  EXPECT_EQ(second.ask({.method = "GET", .target = "/"}).body, "here");
  stop();
  EXPECT_EQ(rehearsed, 1);
}

TEST_F(Serve, ARehearsalThatFailsIsNobodysLoss) {
  std::atomic<int> tried = 0;
  TestClient client = start(echo, {}, [&]() -> std::string {
    ++tried;
    fail(Code::unavailable, "there is nothing to rehearse");
  });
  while (tried == 0) std::this_thread::yield();
  EXPECT_EQ(client.ask({.method = "GET", .target = "/a"}).status, 200U);
  stop();
}

// Of servers, by their name.
int count_threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "serve") ++count;
  }
  return count;
}

void wait_for_threads(int count) {
  const Deadline deadline = Deadline::after(1min);
  while (count_threads() != count && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(count_threads(), count);
}

// A warm sandbox has a connection for hours before its first request comes on it.
TEST_F(Serve, AThreadMoreWaitsAsLongAsSomebodyIsConnected) {
  wait_for_threads(0);  // those of other tests
  constexpr auto kPatience = 5ms;
  TestClient client = start(echo, {.thread_patience = kPatience});
  wait_for_threads(2);
  std::this_thread::sleep_for(20 * kPatience);
  EXPECT_EQ(count_threads(), 2);
  EXPECT_EQ(client.ask({.method = "GET", .target = "/"}).status, 200U);
  client.close();
  wait_for_threads(1);
}

TEST_F(Serve, AnswersPipelinedRequestsInOrder) {
  TestClient client = start(echo);
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receive().body, "GET /1? ");
  EXPECT_EQ(client.receive().body, "GET /2? ");
}

TEST_F(Serve, PutsChunksTogether) {
  TestClient client = start(echo);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.send("4\r\ndefg\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "POST /? abcdefg");
}

TEST_F(Serve, TellsAWaitingPeerToGoOn) {
  TestClient client = start(echo);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.receive(/*has_body=*/false).status, 100U);
  client.send("ok");
  EXPECT_EQ(client.receive().body, "POST /? ok");
}

TEST_F(Serve, StreamsPieceByPiece) {
  std::latch first_seen(1);
  TestClient client = start([&](Exchange& exchange) {
    exchange.begin({.status = 200});
    exchange.write("one");
    first_seen.wait();
    exchange.write("two");
    exchange.end();
  });
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.receive_head();
  EXPECT_EQ(client.receive_piece(), "one");
  first_seen.count_down();
  EXPECT_EQ(client.receive_piece(), "two");
  EXPECT_EQ(client.receive_piece(), std::nullopt);
  stop();
}

TEST_F(Serve, SendsFiles) {
  const linux::Fd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const std::string text(300'000, 'x');
  linux::write_all(file.get(), text);
  TestClient client = start([&](Exchange& exchange) {
    exchange.begin({.status = 206}, text.size() - 10);
    exchange.send_file(file.get(), 10, text.size() - 10);
    exchange.end();
  });
  EXPECT_EQ(client.ask({}).body, text.substr(10));
  EXPECT_EQ(client.ask({.method = "HEAD"}).body, "");
  EXPECT_EQ(client.ask({}).body.size(), text.size() - 10);
  stop();
}

TEST_F(Serve, SpeaksWithOldClients) {
  TestClient client = start([](Exchange& exchange) {
    exchange.begin({.status = 200});
    exchange.write("all of it");
    exchange.end();
  });
  client.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "all of it");
  EXPECT_TRUE(client.is_closed());
}

TEST_F(Serve, RefusesWhatIsNotHttp) {
  for (const char* bytes :
       {"\x16\x03\x01\r\n\r\n", "GET / HTTP/1.1\r\nBad Name: x\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", "GET other:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    TestClient client = start(echo);
    client.send(bytes);
    EXPECT_EQ(client.receive().status, 400U) << bytes;
    EXPECT_TRUE(client.is_closed());
  }
}

TEST_F(Serve, RefusesEndlessHeads) {
  TestClient client = start(echo);
  client.send("GET / HTTP/1.1\r\n");
  std::string field = "X: " + std::string(1000, 'y') + "\r\n";
  try {
    for (int i = 0; i < 200; ++i) client.send(field);
  } catch (const Error&) {
    // It hung up in the middle, and that is fine.
  }
  try {
    EXPECT_EQ(client.receive().status, 431U);
  } catch (const Error& error) {
    // Our unread bytes made the kernel reset the connection before the answer was read.
    EXPECT_NE(std::string(error.what()).find("ECONNRESET"), std::string::npos) << error.what();
  }
}

TEST_F(Serve, TellsWhatAHandlerThrows) {
  TestClient client = start([](Exchange&) { fail(Code::not_found, "there is no such thing"); });
  const auto response = client.ask({});
  EXPECT_EQ(response.status, 404U);
  EXPECT_NE(response.body.find("there is no such thing"), std::string::npos);
}

TEST_F(Serve, CutsOffAnAnswerThatFailsHalfway) {
  TestClient client = start([](Exchange& exchange) {
    exchange.begin({.status = 200});
    exchange.write("half");
    fail(Code::internal, "no more");
  });
  EXPECT_THROW(client.ask({}), Error);
}

TEST_F(Serve, KeepsAConnectionWhoseBodyNobodyRead) {
  TestClient client = start([](Exchange& exchange) { exchange.respond({.status = 204}); });
  EXPECT_EQ(client.ask({.method = "POST", .body = std::string(1000, 'x')}).status, 204U);
  EXPECT_EQ(client.ask({.method = "POST", .body = std::string(1000, 'x')}).status, 204U);
}

TEST_F(Serve, ServesWhileOthersBlock) {
  std::latch go(1);
  constexpr int kBlocked = 40;
  std::atomic<int> inside = 0;
  TestClient quick = start([&](Exchange& exchange) {
    if (exchange.request().path == "/wait") {
      ++inside;
      go.wait();
    }
    exchange.respond({.status = 204});
  });
  std::vector<TestClient> blocked;
  for (int i = 0; i < kBlocked; ++i) {
    blocked.emplace_back(port_);
    blocked.back().send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  while (inside < kBlocked) std::this_thread::yield();
  EXPECT_EQ(quick.ask({}).status, 204U);
  go.count_down();
  for (TestClient& client : blocked) EXPECT_EQ(client.receive().status, 204U);
  stop();
}

// A thread is made while somebody comes in, not while he waits for an answer, and one will do.
TEST_F(Serve, HasOneThreadToSpare) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer has a thread of its own";
#endif
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  while (threads() > 1) std::this_thread::yield();  // those of the test before end by themselves
  std::atomic<std::ptrdiff_t> during = 0;
  TestClient client = start([&](Exchange& exchange) {
    during = threads();
    echo(exchange);
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.ask({.method = "GET", .target = "/"}).status, 200U);
    EXPECT_EQ(during, 3) << "ours, who answers, and who waits for the next";
  }
  stop();
}

TEST_F(Serve, NoticesThatAPeerLeft) {
  std::latch noticed(1);
  TestClient client = start([&](Exchange& exchange) {
    while (!exchange.peer_left()) std::this_thread::yield();
    noticed.count_down();
    exchange.respond({.status = 204});
  });
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.close();
  noticed.wait();
  stop();
}

TEST_F(Serve, ClosesTheOldestWhenThereAreTooMany) {
  std::latch held{1};
  std::latch go{1};
  const auto hold = [&](Exchange& exchange) {
    if (exchange.request().path == "/hold") {
      held.count_down();
      go.wait();
    }
    echo(exchange);
  };
  // Who was just answered may not have been put aside yet. So the first asks for nothing, and the
  // second is not answered meanwhile.
  TestClient first = start(hold, {.connections = 2});
  TestClient second(port_);
  second.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  held.wait();
  TestClient third(port_);
  EXPECT_EQ(third.ask({}).status, 200U);
  EXPECT_TRUE(first.is_closed());
  go.count_down();
  EXPECT_EQ(second.receive().status, 200U);
}

TEST_F(Serve, LosesPatienceWithASlowHead) {
  TestClient client = start(echo, {.patience = {.head = 20ms}});
  client.send("GET / HT");
  EXPECT_TRUE(client.is_closed());
}

TEST_F(Serve, LosesPatienceWithABodyThatNobodyWants) {
  TestClient client = start([](Exchange& exchange) { exchange.respond({.status = 204}); },
                            {.patience = {.drain = 20ms}});
  client.send("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nsome");
  EXPECT_EQ(client.receive(false).status, 204U);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(Serve, EndsWithItsConnections) {
  TestClient client = start([](Exchange& exchange) { exchange.read_body(100); });
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n");
  stop();  // does not wait for the 50 bytes
  SUCCEED();
}

}  // namespace
}  // namespace hearth::serve
