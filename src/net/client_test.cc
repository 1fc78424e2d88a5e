#include "net/client.h"

#include <functional>
#include <latch>
#include <thread>
#include <tuple>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "base/error.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/testing_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

template <typename T>
T run(asio::io_context& io, asio::awaitable<T> work) {
  std::optional<T> result;
  std::exception_ptr failure;
  asio::co_spawn(io, std::move(work), [&](std::exception_ptr thrown, T value) {
    failure = std::move(thrown);
    result = std::move(value);
    io.stop();
  });
  io.run();
  if (failure) std::rethrow_exception(failure);
  return *std::move(result);
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

class ClientTest : public testing::Test {
 protected:
  void start() {
    Router router;
    router.add("GET", "/hello", [](const Request& r) { return text_response(200, r.host); });
    router.add("POST", "/echo", [](const Request& r) { return text_response(200, r.body); });
    router.add("GET", "/big",
               [](const Request&) { return text_response(200, std::string(9000, 'x')); });
    router.add_stream("POST", "/stream", echo);
    router.add("DELETE", "/gone", [](const Request&) { return Response{.status = 204}; });
    server_.emplace(options_, std::move(router));
    server_->start();
  }
  Endpoint endpoint() const { return {.port = server_->port()}; }
  Code failure(Client& client, Request request, FetchOptions options = {}) {
    try {
      const Response response = client.fetch(std::move(request), options);
      ADD_FAILURE() << "got " << response.status;
    } catch (const Error& error) {
      return error.code();
    }
    return Code::internal;
  }

  ServerOptions options_;
  std::optional<Server> server_;
};

// A server that says one thing to whoever connects, whatever they say.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer)
      : acceptor_(io_, {asio::ip::address_v4::loopback(), 0}),
        thread_([this, text = std::move(answer)] {
          asio::ip::tcp::socket socket(io_);
          boost::system::error_code ignored;
          std::ignore = acceptor_.accept(socket, ignored);
          std::string request;
          asio::read_until(socket, asio::dynamic_buffer(request), "\r\n\r\n", ignored);
          asio::write(socket, asio::buffer(text), ignored);
          std::ignore = socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
        }) {}
  Endpoint endpoint() { return {.port = acceptor_.local_endpoint().port()}; }

 private:
  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  std::jthread thread_;
};

TEST_F(ClientTest, KeepsItsConnection) {
  start();
  Client client(endpoint());

  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.fetch({.target = "/hello"}).body,
              fmt::format("127.0.0.1:{}", server_->port()));
    EXPECT_EQ(client.fetch({.method = "POST", .target = "/echo", .body = "abc"}).body, "abc");
    EXPECT_EQ(client.fetch({.method = "HEAD", .target = "/hello"}).body, "");
    EXPECT_EQ(client.fetch({.method = "DELETE", .target = "/gone"}).status, 204U);
    EXPECT_EQ(client.fetch({.target = "/nowhere"}).status, 404U);
    EXPECT_EQ(client.fetch({.method = "POST", .target = "/stream", .body = "chunks"}).body,
              "chunks");
  }
  EXPECT_EQ(server_->connections(), 1U);
}

TEST_F(ClientTest, HandsOnABodyPieceByPiece) {
  start();
  Client client(endpoint());
  std::size_t bytes = 0;
  const BodyReceiver count = [&](const Response& head, std::string_view piece) {
    EXPECT_EQ(head.status, 200U);
    bytes += piece.size();
  };

  const Response response = client.fetch_into({.target = "/big"}, count);

  EXPECT_EQ(bytes, 9000U);
  EXPECT_EQ(response.body, "");
  EXPECT_THROW(client.fetch_into({.target = "/big"}, count, {.max_body_bytes = 8999}), Error);
}

TEST_F(ClientTest, AReceiverThatThrowsEndsTheExchange) {
  start();
  Client client(endpoint());
  const BodyReceiver refuse = [](const Response&, std::string_view) {
    fail(Code::exhausted, "no room");
  };

  EXPECT_THROW(client.fetch_into({.target = "/big"}, refuse), Error);

  EXPECT_EQ(client.fetch({.target = "/big"}).body.size(), 9000U);
}

TEST_F(ClientTest, WorksOverAUnixSocket) {
  TemporaryFolder folder;
  options_.unix_path = folder.path("socket");
  start();
  Client client({.unix_path = options_.unix_path});

  EXPECT_EQ(client.fetch({.target = "/hello"}).body, "localhost");
}

TEST_F(ClientTest, FindsHostsByName) {
  start();
  Client client({.host = "localhost", .port = server_->port()});

  EXPECT_EQ(client.fetch({.target = "/hello"}).status, 200U);
}

TEST_F(ClientTest, IsThreadSafe) {
  options_.threads = 2;
  start();
  Client client(endpoint());

  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&client, t] {
      const std::string body(1000, static_cast<char>('a' + t));
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(client.fetch({.method = "POST", .target = "/echo", .body = body}).body, body);
      }
    });
  }
}

TEST_F(ClientTest, ARestartedServerIsFoundAgain) {
  start();
  options_.port = server_->port();
  Client client(endpoint());
  EXPECT_EQ(client.fetch({.target = "/hello"}).status, 200U);

  server_->stop();
  server_.reset();
  EXPECT_EQ(failure(client, {.target = "/hello"}), Code::unavailable);
  start();

  EXPECT_EQ(client.fetch({.target = "/hello"}).status, 200U);
}

TEST_F(ClientTest, DoesNotReadMoreThanAllowed) {
  start();
  Client client(endpoint());

  EXPECT_EQ(failure(client, {.target = "/big"}, {.max_body_bytes = 8999}), Code::exhausted);
  EXPECT_EQ(client.fetch({.target = "/big"}, {.max_body_bytes = 9000}).body.size(), 9000U);
}

TEST_F(ClientTest, HearsWhyItsBodyWasNotRead) {
  options_.limits.body_bytes = 1000;
  start();
  Client client(endpoint());

  EXPECT_EQ(
      client.fetch({.method = "POST", .target = "/echo", .body = std::string(9 << 20, 'x')}).status,
      413U);
}

TEST_F(ClientTest, DoesNotSendWhatWouldBeTwoRequests) {
  start();
  Client client(endpoint());

  EXPECT_EQ(failure(client, {.target = "/ HTTP/1.1\r\nX: y"}), Code::invalid);
  EXPECT_EQ(failure(client, {.target = "/", .headers = {{"X", "a\r\nY: b"}}}), Code::internal);
}

TEST(Client, AServerThatIsSilentIsGivenUp) {
  asio::io_context io;
  asio::ip::tcp::acceptor mute(io, {asio::ip::address_v4::loopback(), 0});
  Client client({.port = mute.local_endpoint().port()});

  try {
    client.fetch({}, {.timeout = 50ms});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::timeout);
  }
}

void expect_failure(const std::string& answer, Code code) {
  OneAnswer server(answer);
  Client client(server.endpoint());
  try {
    client.fetch({});
    ADD_FAILURE() << answer;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << answer;
  }
}

TEST(Client, NonsenseIsAnError) {
  for (const char* answer : {"nonsense\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
                             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    expect_failure(answer, Code::invalid);
  }
}

TEST(Client, HalfAnAnswerIsAnError) {
  for (const char* answer : {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    expect_failure(answer, Code::unavailable);
  }
}

TEST(Client, InterimAnswersAreSkippedAndAnEndlessBodyEndsWithTheConnection) {
  OneAnswer server(
      "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil the end");
  Client client(server.endpoint());

  EXPECT_EQ(client.fetch({}).body, "until the end");
}

asio::awaitable<std::string> talk(AsyncClient& client) {
  Request request{.method = "POST", .target = "/stream"};
  OpenOptions options{.streams_body = true};
  auto exchange = co_await client.open(std::move(request), options);
  const Response head = co_await exchange->read_head(10s);
  std::string heard = std::to_string(head.status);
  for (const std::string_view word : {"one", "two"}) {
    co_await exchange->write(word);
    const std::string_view back = co_await exchange->read_some(10s);
    heard += back;
  }
  co_await exchange->end_request();
  const std::string_view end = co_await exchange->read_some(10s);
  heard += end.empty() ? "." : "?";
  co_return heard;
}

// A handler that waits for another server, which never answers.
struct Proxy {
  asio::awaitable<void> serve(Request, Stream&) {
    AsyncClient client(upstream);
    Request request;
    auto exchange = co_await client.open(std::move(request));
    began.count_down();
    co_await exchange->read_head(1h);
  }

  Endpoint upstream;
  std::latch began{1};
};

TEST(Client, IsCalledOffWithTheHandlerThatUsesIt) {
  asio::io_context io;
  asio::ip::tcp::acceptor mute(io, {asio::ip::address_v4::loopback(), 0});
  Proxy proxy{.upstream = {.port = mute.local_endpoint().port()}};
  Router router;
  router.add_stream("GET", "/", std::bind_front(&Proxy::serve, &proxy));
  Server server({}, std::move(router));
  server.start();
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  proxy.began.wait();

  server.stop();

  EXPECT_TRUE(client.sees_end());
}

// Says one word and then nothing.
asio::awaitable<void> say_one_word(Request, Stream& stream) {
  Response head;
  co_await stream.write_head(std::move(head));
  co_await stream.write("word");
  co_await stream.wait_disconnect();
}

TEST(Client, IsCalledOffByAStop) {
  const Identity identity = make_identity("server", "IP:127.0.0.1");
  for (const bool is_tls : {false, true}) {
    Router router;
    router.add_stream("GET", "/", say_one_word);
    ServerOptions options;
    Endpoint endpoint;
    if (is_tls) {
      options.tls = TlsServerOptions{.certificate = identity.certificate, .key = identity.key};
      endpoint.tls = make_tls_context(TlsClientOptions{.ca = identity.certificate});
    }
    Server server(options, std::move(router));
    server.start();
    endpoint.port = server.port();
    Client client(endpoint);
    std::stop_source source;
    std::latch heard{1};
    std::jthread stopper([&] {
      heard.wait();
      source.request_stop();
    });
    const auto hear = [&](const Response&, std::string_view) { heard.count_down(); };

    EXPECT_THROW(client.fetch_into({}, hear, {.timeout = 1h}, source.get_token()), Error);
    // One that is called off already does not begin.
    EXPECT_THROW(client.fetch_into({}, hear, {.timeout = 1h}, source.get_token()), Error);
  }
}

TEST(Client, WaitsLongerForABodyThanForItsHead) {
  asio::io_context io;
  asio::ip::tcp::acceptor mute(io, {asio::ip::address_v4::loopback(), 0});
  Client to_mute({.port = mute.local_endpoint().port()});
  EXPECT_THROW(to_mute.fetch({}, {.timeout = 1h, .head = 20ms}), Error);

  Router router;
  router.add_stream("GET", "/", say_one_word);
  Server server({}, std::move(router));
  server.start();
  Client client({.port = server.port()});
  unsigned heads = 0;
  const auto see_head = [&](const Response& head) { heads += head.status == 200U ? 1 : 0; };
  std::string heard;
  const auto hear = [&](const Response&, std::string_view piece) {
    EXPECT_EQ(heads, 1U);
    heard += piece;
  };

  EXPECT_THROW(client.fetch_into({}, hear, {.timeout = 1h, .silence = 20ms, .on_head = see_head}),
               Error);

  EXPECT_EQ(heads, 1U);
  EXPECT_EQ(heard, "word");
}

TEST_F(ClientTest, AReceiverMayCallItOff) {
  start();
  Client client(endpoint());
  std::stop_source source;
  std::size_t pieces = 0;
  const BodyReceiver stop = [&](const Response&, std::string_view) {
    ++pieces;
    source.request_stop();
  };

  try {
    client.fetch_into({.target = "/big"}, stop, {}, source.get_token());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
  }

  EXPECT_GE(pieces, 1U);
  EXPECT_EQ(client.fetch({.target = "/big"}).body.size(), 9000U);
}

TEST_F(ClientTest, StreamsBothWays) {
  start();
  asio::io_context io;
  AsyncClient client(endpoint());

  EXPECT_EQ(run(io, talk(client)), "200onetwo.");
}

}  // namespace
}  // namespace hearth::net
