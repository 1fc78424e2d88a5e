#include "net/websocket.h"

#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/error.h"
#include "net/client.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/testing_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace boost::asio::experimental::awaitable_operators;

constexpr std::string_view kHandshake =
    "GET /echo HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

class WebSocketTest : public testing::Test {
 public:
  WebSocketTest() {
    router_.add_stream("GET", "/echo", std::bind_front(&WebSocketTest::echo, this));
    router_.add_stream("GET", "/flood", std::bind_front(&WebSocketTest::flood, this));
    router_.add_stream("GET", "/close", std::bind_front(&WebSocketTest::close, this));
    router_.add_stream("GET", "/twice", std::bind_front(&WebSocketTest::write_twice, this));
    router_.add_stream("GET", "/both", std::bind_front(&WebSocketTest::close_while_reading, this));
    socket_options_.subprotocols = {"v5.channel.k8s.io", "v4.channel.k8s.io"};
    socket_options_.max_message_bytes = 100'000;
  }

  void start() {
    server_.emplace(options_, std::move(router_));
    server_->start();
  }

  // Sends every message back until the client closes; keeps why it ended.
  asio::awaitable<void> echo(Request, Stream& stream) {
    auto socket = co_await stream.upgrade(socket_options_);
    try {
      while (true) {
        const auto message = co_await socket->read();
        if (!message) break;
        co_await socket->write(message->data, message->kind);
      }
      ended_.set_value(fmt::format("closed {}", socket->peer_close_code().value_or(0)));
    } catch (const Error& error) {
      ended_.set_value(std::string(to_string(error.code())));
    }
  }

  asio::awaitable<void> flood(Request, Stream& stream) {
    auto socket = co_await stream.upgrade(socket_options_);
    const std::string message(64 << 10, 'x');
    try {
      while (true) {
        co_await socket->write(message, MessageKind::binary);
        written_ += message.size();
      }
    } catch (const Error& error) {
      ended_.set_value(std::string(to_string(error.code())));
    }
  }

  asio::awaitable<void> close(Request, Stream& stream) {
    auto socket = co_await stream.upgrade(socket_options_);
    co_await socket->write("last words", MessageKind::text);
    co_await socket->close(CloseCode::policy, std::string(200, 'r'));
    ended_.set_value("closed");
  }

  static asio::awaitable<void> write_many(WebSocket& socket, char letter) {
    const std::string message(10'000, letter);
    for (int i = 0; i < 50; ++i) co_await socket.write(message, MessageKind::text);
  }

  asio::awaitable<void> write_twice(Request, Stream& stream) {
    auto socket = co_await stream.upgrade(socket_options_);
    auto both = write_many(*socket, 'a') && write_many(*socket, 'b');
    co_await std::move(both);
    co_await socket->close(CloseCode::normal);
    ended_.set_value("closed");
  }

  static asio::awaitable<void> read_until_it_fails(WebSocket& socket) {
    try {
      while (co_await socket.read()) {
      }
    } catch (const Error&) {
      // Cut, as close() promises.
    }
  }

  asio::awaitable<void> close_while_reading(Request, Stream& stream) {
    auto socket = co_await stream.upgrade(socket_options_);
    auto both = read_until_it_fails(*socket) && socket->close(CloseCode::going_away);
    co_await std::move(both);
    ended_.set_value("closed");
  }

  std::string why_it_ended() {
    auto ended = ended_.get_future();
    if (ended.wait_for(10s) != std::future_status::ready) return "it did not";
    return ended.get();
  }

  // Runs `work` with a connected WebSocket, on a loop of its own.
  void with_socket(asio::awaitable<void> (*work)(WebSocket&), std::string target,
                   WebSocketOptions options = {}) {
    asio::io_context io;
    AsyncClient client({.port = server_->port(), .tls = tls_});
    std::exception_ptr failure;
    asio::co_spawn(io, talk(client, std::move(target), std::move(options), work),
                   [&](std::exception_ptr thrown) {
                     failure = std::move(thrown);
                     io.stop();
                   });
    io.run();
    if (failure) std::rethrow_exception(failure);
  }

  static asio::awaitable<void> talk(AsyncClient& client, std::string target,
                                    WebSocketOptions options,
                                    asio::awaitable<void> (*work)(WebSocket&)) {
    Request request;
    request.target = std::move(target);
    auto socket = co_await client.open_websocket(std::move(request), std::move(options));
    co_await work(*socket);
  }

  ServerOptions options_;
  WebSocketOptions socket_options_;
  Router router_;
  std::shared_ptr<TlsContext> tls_;
  std::atomic<std::size_t> written_ = 0;
  std::promise<std::string> ended_;
  std::optional<Server> server_;
};

// A frame as a client must send it, masked by zeros: the text stays readable.
std::string frame(unsigned char first, std::string_view payload) {
  std::string bytes;
  bytes += static_cast<char>(first);
  if (payload.size() < 126) {
    bytes += static_cast<char>(0x80 | payload.size());
  } else {
    bytes += static_cast<char>(0xFF);
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes += static_cast<char>((payload.size() >> shift) & 0xFF);
    }
  }
  bytes += std::string(4, '\0');
  bytes += payload;
  return bytes;
}

std::string shake_hands(RawClient& client, std::string_view path = "/echo") {
  std::string handshake(kHandshake);
  handshake.replace(handshake.find("/echo"), 5, path);
  client.send(handshake + "\r\n");
  return client.read_until("\r\n\r\n");
}

asio::awaitable<void> send_and_hear(WebSocket& socket) {
  EXPECT_EQ(socket.subprotocol(), "v4.channel.k8s.io");
  const std::string large(90'000, 'x');
  for (const std::string_view text :
       {std::string_view("hello"), std::string_view(), std::string_view(large)}) {
    co_await socket.write(text, MessageKind::text);
    const auto back = co_await socket.read();
    EXPECT_TRUE(back && back->data == text && back->kind == MessageKind::text);
  }
  co_await socket.ping();
  co_await socket.write(std::string_view("\0\xFF", 2), MessageKind::binary);
  const auto binary = co_await socket.read();
  EXPECT_TRUE(binary && binary->data.size() == 2 && binary->kind == MessageKind::binary);
  co_await socket.close(CloseCode::normal, "done");
}

TEST_F(WebSocketTest, CarriesMessagesBothWays) {
  start();

  with_socket(send_and_hear, "/echo", {.subprotocols = {"other", "v4.channel.k8s.io"}});

  EXPECT_EQ(why_it_ended(), "closed 1000");
}

TEST_F(WebSocketTest, OverTlsToo) {
  const Identity identity = make_identity("server", "IP:127.0.0.1");
  options_.tls = TlsServerOptions{.certificate = identity.certificate, .key = identity.key};
  tls_ = make_tls_context(TlsClientOptions{.ca = identity.certificate});
  start();

  with_socket(send_and_hear, "/echo", {.subprotocols = {"v4.channel.k8s.io"}});

  EXPECT_EQ(why_it_ended(), "closed 1000");
}

asio::awaitable<void> hear_the_close(WebSocket& socket) {
  const auto message = co_await socket.read();
  EXPECT_TRUE(message && message->data == "last words");
  const auto end = co_await socket.read();
  EXPECT_FALSE(end);
  EXPECT_EQ(socket.peer_close_code(), 1008);
}

TEST_F(WebSocketTest, TellsWhyItCloses) {
  start();

  with_socket(hear_the_close, "/close");

  EXPECT_EQ(why_it_ended(), "closed");
}

asio::awaitable<void> send_too_much(WebSocket& socket) {
  co_await socket.write(std::string(100'001, 'x'), MessageKind::binary);
  const auto answer = co_await socket.read();
  EXPECT_FALSE(answer);
  EXPECT_EQ(socket.peer_close_code(), 1009);
}

TEST_F(WebSocketTest, MessagesThatAreTooLongEndIt) {
  start();

  with_socket(send_too_much, "/echo");

  EXPECT_EQ(why_it_ended(), "exhausted");
}

TEST_F(WebSocketTest, FragmentsAreOneMessageEvenWithAPingBetween) {
  start();
  RawClient client(server_->port());
  const std::string head = shake_hands(client);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 "));
  EXPECT_NE(head.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), std::string::npos) << "RFC 6455 section 1.3";

  client.send(frame(0x01, "one ") + frame(0x89, "p") + frame(0x00, "two ") + frame(0x80, "three"));

  EXPECT_EQ(client.read_exactly(3), "\x8A\x01p");
  EXPECT_EQ(client.read_exactly(15), std::string("\x81\x0D") + "one two three");
  client.send(frame(0x88, "\x03\xE8"));
  EXPECT_EQ(client.read_exactly(4), "\x88\x02\x03\xE8");
  EXPECT_EQ(why_it_ended(), "closed 1000");
}

TEST_F(WebSocketTest, FramesSentAlongWithTheHandshakeAreNotLost) {
  start();
  RawClient client(server_->port());

  client.send(std::string(kHandshake) + "\r\n" + frame(0x81, "early"));

  client.read_until("\r\n\r\n");
  EXPECT_EQ(client.read_exactly(7),
            "\x81\x05"
            "early");
}

TEST_F(WebSocketTest, WhatBreaksTheProtocolEndsIt) {
  const std::string cases[] = {
      std::string("\x81\x02hi"),            // not masked
      frame(0x81, "\xFF\xFE"),              // not UTF-8
      frame(0xF1, "reserved bits"),         //
      frame(0x83, "reserved opcode"),       //
      frame(0x80, "continues nothing"),     //
      frame(0x89, std::string(126, 'x')),   // a long ping
      frame(0x01, "a") + frame(0x01, "b"),  // begins again before the end
      frame(0x88, "\x03"),                  // half a status
      std::string("\x82\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 10) + std::string(4, '\0'),
  };
  start();

  for (const std::string& bytes : cases) {
    ended_ = {};
    RawClient client(server_->port());
    shake_hands(client);
    client.send(bytes);
    const std::string why = why_it_ended();
    EXPECT_TRUE(why == "invalid" || why == "exhausted") << why;
    EXPECT_TRUE(client.sees_end());
  }
}

TEST_F(WebSocketTest, HandshakesThatCannotSucceedAreAnswered) {
  start();
  const std::pair<std::string, std::string> cases[] = {
      {"GET /echo HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 426 "},
      {"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
       "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
       "HTTP/1.1 400 "},
      {"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
       "Sec-WebSocket-Version: 13\r\n\r\n",
       "HTTP/1.1 400 "},
      {std::string(kHandshake) + "Sec-WebSocket-Protocol: v1, v2\r\n\r\n", "HTTP/1.1 400 "},
  };

  for (const auto& [bytes, status] : cases) {
    RawClient client(server_->port());
    client.send(bytes);
    EXPECT_TRUE(client.read_response().starts_with(status)) << bytes;
  }
}

asio::awaitable<void> do_nothing(WebSocket&) {
  co_return;
}

TEST_F(WebSocketTest, AServerThatDeclinesIsAnErrorWithItsCode) {
  start();

  try {
    with_socket(do_nothing, "/nowhere");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
  }
}

TEST_F(WebSocketTest, APeerThatDoesNotReadStopsTheWriter) {
  options_.timeouts.write = 200ms;
  start();
  RawClient client(server_->port());

  shake_hands(client, "/flood");

  EXPECT_EQ(why_it_ended(), "timeout");
  EXPECT_LT(written_, std::size_t{32} << 20);
}

asio::awaitable<void> sort_letters(WebSocket& socket) {
  int messages = 0;
  while (true) {
    const auto message = co_await socket.read();
    if (!message) break;
    EXPECT_EQ(message->data, std::string(10'000, message->data.front()));
    ++messages;
  }
  EXPECT_EQ(messages, 100);
}

TEST_F(WebSocketTest, WritersTakeTurns) {
  start();

  with_socket(sort_letters, "/twice");

  EXPECT_EQ(why_it_ended(), "closed");
}

TEST_F(WebSocketTest, CloseDoesNotWaitForeverNorDoesWhoeverReads) {
  socket_options_.close_wait = 50ms;
  start();
  RawClient client(server_->port());
  shake_hands(client, "/both");

  EXPECT_EQ(client.read_exactly(4), "\x88\x02\x03\xE9");
  EXPECT_EQ(why_it_ended(), "closed");
  EXPECT_TRUE(client.sees_end());
}

TEST_F(WebSocketTest, ASilentPeerIsPingedThenGivenUp) {
  socket_options_.idle = 100ms;
  start();
  RawClient client(server_->port());
  shake_hands(client);

  EXPECT_EQ(client.read_exactly(2), std::string("\x89\x00", 2));
  EXPECT_EQ(why_it_ended(), "timeout");
}

TEST_F(WebSocketTest, ADroppedConnectionIsNoClose) {
  start();
  RawClient client(server_->port());
  shake_hands(client);

  client.close();

  EXPECT_EQ(why_it_ended(), "unavailable");
}

TEST_F(WebSocketTest, StoppingTheServerEndsIt) {
  start();
  RawClient client(server_->port());
  shake_hands(client);

  server_->stop();

  EXPECT_TRUE(client.sees_end());
}

}  // namespace
}  // namespace hearth::net
