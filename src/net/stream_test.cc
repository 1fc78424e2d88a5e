// Handlers that read and write piece by piece, and what the peer can do to them.
#include "net/stream.h"

#include <atomic>
#include <future>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "base/error.h"
#include "net/byte_stream.h"
#include "net/server.h"
#include "net/testing_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// Socket buffers of both ends, grown as far as Linux lets them (tcp_wmem and tcp_rmem: 4 and 6 MiB
// by default). What a writer hands over beyond that would have to be in our memory.
constexpr std::size_t kKernelBuffers = 32 << 20;

class StreamTest : public testing::Test {
 public:
  template <typename F>
  void serve(const std::string& path, F handler) {
    router_.add_stream("*", path, std::bind_front(handler, this));
  }
  void start() {
    server_.emplace(options_, std::move(router_));
    server_->start();
  }
  std::future_status wait_until_done() { return done_.get_future().wait_for(10s); }

  asio::awaitable<void> count_up(Request, Stream& stream) {
    Response head{200, {{"Content-Type", "text/plain"}}, {}};
    co_await stream.write_head(std::move(head));
    for (const std::string_view piece : {"one", "", "two", "three"}) co_await stream.write(piece);
  }

  asio::awaitable<void> echo(Request, Stream& stream) {
    Response head;
    co_await stream.write_head(std::move(head));
    while (true) {
      const std::string_view piece = co_await stream.read_some();
      if (piece.empty()) break;
      co_await stream.write(piece);
    }
  }

  // Writes until something stops it.
  asio::awaitable<void> flood(Request, Stream& stream) {
    const std::string piece(64 << 10, 'x');
    try {
      Response head;
      co_await stream.write_head(std::move(head));
      while (true) {
        co_await stream.write(piece);
        written_ += piece.size();
      }
    } catch (const Error& error) {
      code_ = error.code();
      done_.set_value();
      throw;
    }
  }

  // Reads the first piece of the body, then nothing for as long as the test likes.
  asio::awaitable<void> read_once(Request, Stream& stream) {
    co_await stream.read_some();
    started_.set_value();
    co_await stream.wait_disconnect();
    done_.set_value();
  }

  asio::awaitable<void> wait_for_disconnect(Request, Stream& stream) {
    Response head;
    co_await stream.write_head(std::move(head));
    co_await stream.wait_disconnect();
    done_.set_value();
  }

  asio::awaitable<void> break_off(Request, Stream& stream) {
    Response head;
    co_await stream.write_head(std::move(head));
    co_await stream.write("half");
    fail(Code::conflict, "changed my mind");
  }

  asio::awaitable<void> refuse(Request, Stream&) {
    fail(Code::forbidden, "not you");
    co_return;
  }

  asio::awaitable<void> say_nothing(Request, Stream&) { co_return; }

  asio::awaitable<void> promise_more(Request request, Stream& stream) {
    Response head{200, {{"Content-Length", "10"}}, {}};
    co_await stream.write_head(std::move(head));
    co_await stream.write(request.query);
  }

  asio::awaitable<void> collect(Request, Stream& stream) {
    std::string all = co_await stream.read_all(1000);
    Response response = text_response(200, std::move(all));
    co_await stream.respond(std::move(response));
  }

  asio::awaitable<void> tunnel(Request, Stream& stream) {
    Response head{101, {{"Connection", "Upgrade"}, {"Upgrade", "raw"}}, {}};
    ByteStream* raw = co_await stream.take_over(std::move(head));
    std::array<char, 100> buffer{};
    const Transfer got = co_await raw->read_some(asio::buffer(buffer), 10s);
    const Gather back = {asio::buffer(buffer.data(), got.bytes)};
    co_await raw->write(back, 10s);
  }

  ServerOptions options_;
  Router router_;
  std::promise<void> started_;
  std::promise<void> done_;
  std::atomic<std::size_t> written_ = 0;
  std::atomic<Code> code_ = Code::internal;
  std::optional<Server> server_;
};

TEST_F(StreamTest, ResponsesAreChunkedAndTheConnectionKept) {
  serve("/", &StreamTest::count_up);
  start();
  RawClient client(server_->port());

  for (int i = 0; i < 2; ++i) {
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_NE(client.read_until("\r\n\r\n").find("Transfer-Encoding: chunked"), std::string::npos);
    EXPECT_EQ(client.read_until("0\r\n\r\n"), "3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n");
  }
}

TEST_F(StreamTest, ToHttp10TheEndOfTheConnectionIsTheEndOfTheBody) {
  serve("/", &StreamTest::count_up);
  start();
  RawClient client(server_->port());
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");

  const std::string response = client.read_all();

  EXPECT_NE(response.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(response.ends_with("\r\n\r\nonetwothree")) << response;
}

TEST_F(StreamTest, HeadGetsNoBody) {
  serve("/", &StreamTest::count_up);
  start();
  RawClient client(server_->port());

  client.send(
      "HEAD / HTTP/1.1\r\nHost: h\r\n\r\nHEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");

  const std::string responses = client.read_all();
  EXPECT_EQ(responses.find("one"), std::string::npos);
  EXPECT_NE(responses.rfind("HTTP/1.1 200 OK"), 0U);
}

TEST_F(StreamTest, BodiesAreReadWhileTheResponseIsWritten) {
  serve("/", &StreamTest::echo);
  start();
  RawClient client(server_->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.read_until("\r\n\r\n");

  for (const std::string_view chunk : {"3\r\nabc\r\n", "4\r\ndefg\r\n"}) {
    client.send(chunk);
    EXPECT_EQ(client.read_exactly(chunk.size()), chunk);
  }
  client.send("0\r\n\r\n");
  EXPECT_EQ(client.read_exactly(5), "0\r\n\r\n");
}

TEST_F(StreamTest, TheClientIsToldToContinueWhenTheBodyIsWanted) {
  serve("/collect", &StreamTest::collect);
  start();
  RawClient client(server_->port());
  client.send(
      "POST /collect HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");

  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_TRUE(client.read_response().ends_with("abc"));
}

TEST_F(StreamTest, AHandlerThatWantsNoBodyDoesNotAskForIt) {
  serve("/", &StreamTest::refuse);
  start();
  RawClient client(server_->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");

  EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 403 Forbidden\r\n"));
}

TEST_F(StreamTest, AFailureAfterTheHeadCutsTheConnectionSoThatTheClientKnows) {
  serve("/", &StreamTest::break_off);
  start();
  RawClient client(server_->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");

  const std::string response = client.read_all();

  EXPECT_TRUE(response.ends_with("4\r\nhalf\r\n")) << response;
}

TEST_F(StreamTest, HandlersThatDoNotKeepTheirWordAreCaught) {
  serve("/nothing", &StreamTest::say_nothing);
  serve("/promise", &StreamTest::promise_more);
  start();

  RawClient nothing(server_->port());
  nothing.send("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(nothing.read_response().starts_with("HTTP/1.1 500 "));
  RawClient less(server_->port());
  less.send("GET /promise?less HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(less.read_all().ends_with("\r\n\r\nless"));
  RawClient more(server_->port());
  more.send("GET /promise?more_than_ten HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(more.read_all().ends_with("\r\n\r\n"));
}

TEST_F(StreamTest, APeerThatDoesNotReadStopsTheWriterNotTheMemory) {
  TemporaryFolder folder;
  options_.unix_path = folder.path("socket");
  options_.timeouts.write = 200ms;
  serve("/", &StreamTest::flood);
  start();
  RawClient client(options_.unix_path);

  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");

  ASSERT_EQ(wait_until_done(), std::future_status::ready);
  EXPECT_EQ(code_, Code::timeout);
  EXPECT_LT(written_, kKernelBuffers);
}

TEST_F(StreamTest, TheSameOverTcp) {
  options_.timeouts.write = 200ms;
  serve("/", &StreamTest::flood);
  start();
  RawClient client(server_->port());

  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");

  ASSERT_EQ(wait_until_done(), std::future_status::ready);
  EXPECT_EQ(code_, Code::timeout);
  EXPECT_LT(written_, kKernelBuffers);
}

TEST_F(StreamTest, AHandlerThatDoesNotReadStopsThePeer) {
  serve("/", &StreamTest::read_once);
  start();
  RawClient client(server_->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\nx");
  ASSERT_EQ(started_.get_future().wait_for(10s), std::future_status::ready);

  const std::size_t sent =
      client.send_until_stuck(std::string(64 << 10, 'x'), 1'000'000'000, 200ms);

  EXPECT_LT(sent, kKernelBuffers);
  client.reset();  // a FIN would wait behind the bytes that nobody reads
  EXPECT_EQ(wait_until_done(), std::future_status::ready);
}

TEST_F(StreamTest, AWriterLearnsThatThePeerLeft) {
  serve("/", &StreamTest::flood);
  start();
  RawClient client(server_->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.read_exactly(1000);

  client.reset();

  ASSERT_EQ(wait_until_done(), std::future_status::ready);
  EXPECT_EQ(code_, Code::unavailable);
}

TEST_F(StreamTest, AHandlerThatNeitherReadsNorWritesLearnsItToo) {
  serve("/", &StreamTest::wait_for_disconnect);
  start();
  RawClient client(server_->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.read_until("\r\n\r\n");

  client.close();

  EXPECT_EQ(wait_until_done(), std::future_status::ready);
}

TEST_F(StreamTest, ReadAllHasALimit) {
  serve("/", &StreamTest::collect);
  start();
  RawClient client(server_->port());

  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n" +
              std::string(1001, 'x'));

  EXPECT_TRUE(client.read_response().starts_with("HTTP/1.1 429 "));
}

TEST_F(StreamTest, AConnectionCanBeTakenOverWithWhatWasSentAhead) {
  serve("/", &StreamTest::tunnel);
  start();
  RawClient client(server_->port());

  client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\nahead");

  EXPECT_EQ(client.read_until("\r\n\r\n"),
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n");
  EXPECT_EQ(client.read_all(), "ahead");
}

}  // namespace
}  // namespace hearth::net
