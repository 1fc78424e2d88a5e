// Exec over SPDY, and port-forward in all its ways.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <map>
#include <thread>

#include "base/error.h"
#include "net/byte_stream.h"
#include "net/client.h"
#include "remote/testing_internal.h"
#include "spdy/frames.h"

namespace hearth::remote {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// A SPDY client of a few lines.
class SpdyClient {
 public:
  SpdyClient() : decoder_(spdy::Side::server) {}

  asio::awaitable<void> open(net::Endpoint endpoint, std::string target,
                             std::vector<std::string> protocols) {
    net::AsyncClient client(endpoint);
    net::Request request{.method = "POST", .target = target};
    request.headers = {{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}};
    for (std::string& each : protocols) {
      request.headers.add("X-Stream-Protocol-Version", std::move(each));
    }
    const auto exchange = co_await client.open(std::move(request));
    head = co_await exchange->read_head(5s);
    if (head.status == 101) stream_ = exchange->take_over();
  }

  asio::awaitable<void> open_stream(spdy::StreamId id, spdy::HeaderList headers) {
    co_await send(encoder.open(id, headers));
  }
  asio::awaitable<void> send(std::string bytes) {
    if (tunnel) {
      // In pieces, as it may come.
      for (std::size_t i = 0; i < bytes.size(); i += 5) {
        co_await tunnel->write(std::string_view(bytes).substr(i, 5), net::MessageKind::binary);
      }
      co_return;
    }
    co_await stream_->write({asio::buffer(bytes)}, 5s);
  }
  // Until the server has closed, or `enough`.
  asio::awaitable<void> read_until(std::function<bool()> enough) {
    while (!enough()) {
      std::string bytes(4096, '\0');
      if (tunnel) {
        auto message = co_await tunnel->read();
        if (!message) co_return;
        bytes = message->data;
      } else {
        const auto got = co_await stream_->read_some(asio::buffer(bytes), 10s);
        if (got.error) co_return;
        bytes.resize(got.bytes);
      }
      decoder_.feed(bytes);
      while (auto event = decoder_.next()) note(*event);
    }
  }
  void leave() { stream_.reset(); }

  net::Response head;
  spdy::Encoder encoder;
  std::unique_ptr<net::WebSocket> tunnel;
  std::map<spdy::StreamId, std::string> data;
  std::map<spdy::StreamId, bool> ended;
  std::map<spdy::StreamId, unsigned> resets;
  std::vector<std::uint32_t> pongs;
  unsigned accepted = 0;
  bool goaway = false;

 private:
  void note(const spdy::Event& event) {
    switch (event.kind) {
      case spdy::EventKind::accepted:
        ++accepted;
        break;
      case spdy::EventKind::data:
        data[event.stream] += event.bytes;
        if (event.is_end) ended[event.stream] = true;
        break;
      case spdy::EventKind::reset:
        resets[event.stream] = event.number;
        break;
      case spdy::EventKind::ping:
        pongs.push_back(event.number);
        break;
      case spdy::EventKind::goaway:
        goaway = true;
        break;
      case spdy::EventKind::opened:
        break;
    }
  }

  std::unique_ptr<net::ByteStream> stream_;
  spdy::Decoder decoder_;
};

void echo(const Inside& inside) {
  linux::write_all(inside.error.get(), "ready\n");
  char byte = 0;
  while (::read(inside.input.get(), &byte, 1) == 1) {
    linux::write_all(inside.output.get(), {&byte, 1});
  }
  inside.exit(3);
}

asio::awaitable<void> open_exec(SpdyClient& client, net::Endpoint endpoint) {
  co_await client.open(endpoint, kExec, {"v5.channel.k8s.io", "v4.channel.k8s.io"});
  EXPECT_EQ(client.head.status, 101U);
  EXPECT_EQ(client.head.headers.value("X-Stream-Protocol-Version"), "v4.channel.k8s.io");
  spdy::StreamId id = 1;
  for (const char* type : {"error", "stdin", "stdout", "stderr"}) {
    co_await client.open_stream(id, {{"streamtype", type}});
    id += 2;
  }
}

asio::awaitable<void> exec_over_spdy(SpdyClient& client, net::Endpoint endpoint) {
  co_await open_exec(client, endpoint);
  co_await client.send(spdy::Encoder::ping(1));
  const std::string head = spdy::Encoder::data_head(3, 5, /*is_end=*/true);
  co_await client.send(head + "hello");
  co_await client.read_until([] { return false; });
}

TEST_F(RemoteTest, ExecOverSpdy) {
  backend_.behaviour = echo;
  SpdyClient client;
  run(exec_over_spdy(client, endpoint()));
  EXPECT_EQ(client.accepted, 4U);
  EXPECT_EQ(client.data[5], "hello");
  EXPECT_EQ(client.data[7], "ready\n");
  const model::Json status = model::parse_json(client.data[1]).value;
  EXPECT_EQ(model::text_at(status, {"reason"}), "NonZeroExitCode");
  EXPECT_TRUE(client.ended[1] && client.ended[5] && client.ended[7]);
  EXPECT_EQ(client.pongs, std::vector<std::uint32_t>{1});
  EXPECT_TRUE(client.goaway);
}

asio::awaitable<void> leave_spdy(SpdyClient& client, net::Endpoint endpoint) {
  co_await open_exec(client, endpoint);
  co_await client.read_until([&] { return !client.data[5].empty(); });
  client.leave();
}

TEST_F(RemoteTest, ACommandEndsWithItsSpdyClient) {
  std::promise<bool> killed;
  backend_.behaviour = [&](const Inside& inside) {
    try {
      const std::string much(1 << 16, 'x');
      while (true) linux::write_all(inside.output.get(), much);
    } catch (const Error&) {
      killed.set_value(inside.is_killed());
    }
  };
  SpdyClient client;
  run(leave_spdy(client, endpoint()));
  EXPECT_TRUE(killed.get_future().get());
}

asio::awaitable<void> speak_nonsense(SpdyClient& client, net::Endpoint endpoint) {
  co_await open_exec(client, endpoint);
  co_await client.read_until([&] { return !client.data[5].empty(); });
  co_await client.send("\x80\x77 what is this?");
  co_await client.read_until([] { return false; });
}

TEST_F(RemoteTest, NonsenseEndsTheCommand) {
  std::promise<bool> killed;
  backend_.behaviour = [&](const Inside& inside) {
    linux::write_all(inside.output.get(), "hi");
    killed.set_value(inside.is_killed());
  };
  SpdyClient client;
  run(speak_nonsense(client, endpoint()));
  EXPECT_TRUE(killed.get_future().get());
}

TEST_F(RemoteTest, SpdyRefusals) {
  SpdyClient none;
  run(none.open(endpoint(), kExec, {}));
  EXPECT_EQ(none.head.status, 400U);
  EXPECT_NE(refused_.message.find("header X-Stream-Protocol-Version does not exist in request"),
            std::string::npos);
  SpdyClient old;
  run(old.open(endpoint(), kExec, {"v9.channel.k8s.io"}));
  EXPECT_EQ(old.head.status, 403U);
  EXPECT_EQ(old.head.headers.value("X-Accepted-Stream-Protocol-Versions"), "v4.channel.k8s.io");
}

void serve_port(std::uint16_t port, linux::Fd& socket) {
  std::string all = std::to_string(port) + ":";
  char byte = 0;
  while (::read(socket.get(), &byte, 1) == 1) all += byte;
  linux::write_all(socket.get(), all);
  socket.reset();
}

asio::awaitable<void> open_pair(SpdyClient& client, spdy::StreamId first, std::string port,
                                std::string request) {
  co_await client.open_stream(first,
                              {{"streamtype", "error"}, {"port", port}, {"requestid", request}});
  co_await client.send(spdy::Encoder::data_head(first, 0, /*is_end=*/true));
  co_await client.open_stream(first + 2,
                              {{"streamtype", "data"}, {"port", port}, {"requestid", request}});
}

asio::awaitable<void> forward(SpdyClient& client, net::Endpoint endpoint) {
  if (!client.tunnel) {
    co_await client.open(endpoint, "/portforward", {"portforward.k8s.io"});
    EXPECT_EQ(client.head.status, 101U);
  }
  co_await open_pair(client, 1, "8080", "0");
  co_await open_pair(client, 5, "8081", "1");
  const std::string first = spdy::Encoder::data_head(3, 1) + "a";
  const std::string second = spdy::Encoder::data_head(7, 1, /*is_end=*/true) + "b";
  const std::string last = spdy::Encoder::data_head(3, 1, /*is_end=*/true) + "c";
  co_await client.send(first + second + last);
  co_await client.read_until([&] { return client.ended[1] && client.ended[3] && client.ended[7]; });
}

TEST_F(RemoteTest, PortForwardOverSpdy) {
  backend_.target = serve_port;
  SpdyClient client;
  run(forward(client, endpoint()));
  EXPECT_EQ(client.accepted, 4U);
  EXPECT_EQ(client.data[3], "8080:ac");
  EXPECT_EQ(client.data[7], "8081:b");
  EXPECT_EQ(client.data[1], "");
}

asio::awaitable<void> forward_in_tunnel(SpdyClient& client, net::Endpoint endpoint) {
  net::AsyncClient web(endpoint);
  net::Request request;
  request.target = "/portforward";
  net::WebSocketOptions options;
  options.subprotocols = {"SPDY/3.1+portforward.k8s.io"};
  client.tunnel = co_await web.open_websocket(std::move(request), options);
  co_await forward(client, endpoint);
  co_await client.tunnel->close(net::CloseCode::normal);
  client.tunnel.reset();
}

TEST_F(RemoteTest, PortForwardInATunnel) {
  backend_.target = serve_port;
  SpdyClient client;
  run(forward_in_tunnel(client, endpoint()));
  EXPECT_EQ(client.data[3], "8080:ac");
  EXPECT_EQ(client.data[7], "8081:b");
}

asio::awaitable<void> forward_to_nobody(SpdyClient& client, net::Endpoint endpoint) {
  co_await client.open(endpoint, "/portforward", {"portforward.k8s.io"});
  co_await open_pair(client, 1, "9999", "0");
  co_await client.open_stream(5, {{"streamtype", "data"}, {"port", "0"}, {"requestid", "7"}});
  co_await client.read_until([&] { return client.resets.size() == 3; });
}

TEST_F(RemoteTest, NobodyListensThere) {
  SpdyClient client;
  run(forward_to_nobody(client, endpoint()));
  EXPECT_EQ(client.data[1],
            "error forwarding port 9999 to pod p1, uid u1: nobody listens on port 9999");
  EXPECT_EQ(client.resets[3], 5U);
  EXPECT_EQ(client.resets[1], 5U);
  EXPECT_EQ(client.resets[5], 3U);
}

asio::awaitable<void> forward_and_leave(SpdyClient& client, net::Endpoint endpoint,
                                        std::future<void> connected) {
  co_await client.open(endpoint, "/portforward", {"portforward.k8s.io"});
  co_await open_pair(client, 1, "8080", "0");
  connected.get();
  // More than is kept for a target, and little enough for the kernel to take it all.
  const std::string much(100'000, 'x');
  for (int i = 0; i < 6; ++i) co_await client.send(spdy::Encoder::data_head(3, much.size()) + much);
  client.leave();  // without having read the server's answers: abruptly
}

TEST_F(RemoteTest, ATargetThatDoesNotReadIsLeftWithTheClient) {
  std::promise<void> connected;
  std::promise<bool> closed;
  backend_.target = [&](std::uint16_t, linux::Fd& socket) {
    connected.set_value();
    pollfd state{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
    closed.set_value(::poll(&state, 1, 10'000) == 1);
  };
  SpdyClient client;
  run(forward_and_leave(client, endpoint(), connected.get_future()));
  EXPECT_TRUE(closed.get_future().get());
}

TEST_F(RemoteTest, PortForwardOverChannels) {
  backend_.target = [](std::uint16_t port, linux::Fd& socket) {
    char byte = 0;
    EXPECT_EQ(::read(socket.get(), &byte, 1), 1);
    linux::write_all(socket.get(), std::to_string(port) + byte);
    ::shutdown(socket.get(), SHUT_RDWR);
  };
  Seen seen;
  run(talk(
      endpoint(), "/portforward?ports=8080&ports=8081", "v4.channel.k8s.io",
      [](net::WebSocket& socket) -> asio::awaitable<void> {
        co_await send_bytes(socket, std::string("\0a", 2));
        co_await send_bytes(socket, "\x02z");
      },
      seen));
  EXPECT_EQ(seen.channels[0],
            "\x90\x1f"
            "8080a");
  EXPECT_EQ(seen.channels[1], "\x90\x1f");
  EXPECT_EQ(seen.channels[2],
            "\x91\x1f"
            "8081z");
  EXPECT_EQ(seen.close_code, 1000);
}

TEST_F(RemoteTest, ChannelsTellWhatWentWrong) {
  Seen seen;
  run(talk(endpoint(), "/portforward?ports=8080", "v4.channel.k8s.io", nullptr, seen));
  EXPECT_NE(seen.channels[1].find("error forwarding port 8080 to pod p1"), std::string::npos);
}

}  // namespace
}  // namespace hearth::remote
