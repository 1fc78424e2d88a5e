// Exec and attach over WebSocket.
#include <unistd.h>

#include <future>
#include <thread>

#include "base/base64.h"
#include "base/error.h"
#include "linux/pty.h"
#include "net/client.h"
#include "remote/testing_internal.h"

namespace hearth::remote {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

void echo(const Inside& inside) {
  linux::write_all(inside.error.get(), "ready\n");
  char byte = 0;
  while (::read(inside.input.get(), &byte, 1) == 1) {
    linux::write_all(inside.output.get(), {&byte, 1});
  }
  inside.exit(3);
}

TEST_F(RemoteTest, ExecOverWebSocketV5) {
  backend_.behaviour = echo;
  Seen seen;
  run(talk(
      endpoint(), kExec, "v5.channel.k8s.io",
      [](net::WebSocket& socket) -> asio::awaitable<void> {
        co_await send_bytes(socket, std::string("\0hello", 6));
        co_await send_bytes(socket, "\xff" + std::string(1, '\0'));
      },
      seen));
  EXPECT_EQ(seen.channels[1], "hello");
  EXPECT_EQ(seen.channels[2], "ready\n");
  EXPECT_EQ(seen.channels[3],
            R"({"metadata":{},"status":"Failure","message":"command terminated with non-zero exit )"
            R"(code: command terminated with exit code 3","reason":"NonZeroExitCode","details":)"
            R"({"causes":[{"reason":"ExitCode","message":"3"}]}})");
  EXPECT_EQ(seen.close_code, 1000);
}

TEST_F(RemoteTest, ExecOverWebSocketV4TakesText) {
  backend_.behaviour = [](const Inside& inside) {
    linux::write_all(inside.output.get(), "got " + inside.read_input(3));
    inside.exit(0);
  };
  Seen seen;
  run(talk(
      endpoint(), kExec, "v4.channel.k8s.io",
      [](net::WebSocket& socket) -> asio::awaitable<void> {
        const std::string text("\0hey", 4);
        co_await socket.write(text, net::MessageKind::text);
      },
      seen));
  EXPECT_EQ(seen.channels[1], "got hey");
  EXPECT_EQ(seen.channels[3], R"({"metadata":{},"status":"Success"})");
}

TEST_F(RemoteTest, ExecOverBase64) {
  backend_.behaviour = [](const Inside& inside) {
    linux::write_all(inside.output.get(), "got " + inside.read_input(3));
    inside.exit(0);
  };
  Seen seen;
  run(talk(
      endpoint(), kExec, "v4.base64.channel.k8s.io",
      [](net::WebSocket& socket) -> asio::awaitable<void> {
        const std::string text = "0" + base64_encode("hey");
        co_await socket.write(text, net::MessageKind::text);
      },
      seen));
  EXPECT_EQ(seen.channels[1], "got hey");
  EXPECT_EQ(seen.channels[3], R"({"metadata":{},"status":"Success"})");
}

TEST_F(RemoteTest, EldersHearOfFailuresAsText) {
  backend_.behaviour = [](const Inside& inside) { inside.exit(7); };
  Seen seen;
  run(talk(endpoint(), kExec, "channel.k8s.io", nullptr, seen));
  EXPECT_EQ(seen.channels[3], "command terminated with exit code 7");
  backend_.behaviour = [](const Inside& inside) { inside.exit(0); };
  Seen silent;
  run(talk(endpoint(), kExec, "", nullptr, silent));
  EXPECT_EQ(silent.channels.count(3), 0U);
  EXPECT_EQ(silent.close_code, 1000);
}

TEST_F(RemoteTest, WhatCannotBeStartedIsAnInternalError) {
  Seen seen;
  run(talk(endpoint(), kExec, "v5.channel.k8s.io", nullptr, seen));
  const model::Json status = model::parse_json(seen.channels[3]).value;
  EXPECT_EQ(model::text_at(status, {"reason"}), "InternalError");
  EXPECT_EQ(model::text_at(status, {"message"}),
            "Internal error occurred: error executing command in container: no such program");
}

TEST_F(RemoteTest, ASandboxThatVanishesIsAnInternalError) {
  backend_.behaviour = [](const Inside&) {};
  Seen seen;
  run(talk(endpoint(), kExec, "v5.channel.k8s.io", nullptr, seen));
  const model::Json status = model::parse_json(seen.channels[3]).value;
  EXPECT_EQ(model::text_at(status, {"reason"}), "InternalError");
}

TEST_F(RemoteTest, EverythingThatWasWrittenArrivesBeforeTheVerdict) {
  const std::string much(3'000'000, 'x');
  backend_.behaviour = [&](const Inside& inside) {
    linux::write_all(inside.output.get(), much);
    inside.exit(0);
  };
  Seen seen;
  run(talk(endpoint(), kExec, "v5.channel.k8s.io", nullptr, seen));
  EXPECT_EQ(seen.channels[1].size(), much.size());
  EXPECT_EQ(seen.channels[3], R"({"metadata":{},"status":"Success"})");
}

TEST_F(RemoteTest, TheEndDoesNotWaitForWhoeverHoldsThePipe) {
  linux::Fd kept;
  backend_.behaviour = [&](const Inside& inside) {
    kept = linux::duplicate(inside.output.get());
    linux::write_all(inside.output.get(), "last");
    inside.exit(0);
  };
  Seen seen;
  run(talk(endpoint(), kExec, "v5.channel.k8s.io", nullptr, seen));
  EXPECT_EQ(seen.channels[1], "last");
}

TEST_F(RemoteTest, ATerminalGetsItsSize) {
  std::promise<linux::WindowSize> size;
  backend_.behaviour = [&](const Inside& inside) {
    EXPECT_TRUE(inside.streams.terminal);
    EXPECT_FALSE(inside.streams.error);
    inside.read_input(3);  // the line comes behind the size
    size.set_value(linux::get_window_size(inside.output.get()));
    inside.exit(5);
  };
  Seen seen;
  run(talk(
      endpoint(), "/exec?command=sh&stdin=true&stdout=true&stderr=true&tty=true",
      "v5.channel.k8s.io",
      [](net::WebSocket& socket) -> asio::awaitable<void> {
        co_await send_bytes(socket, "\x04{\"Width\":100,\"Height\":40}\n");
        co_await send_bytes(socket, std::string("\0go\n", 4));
      },
      seen));
  EXPECT_EQ(size.get_future().get(), (linux::WindowSize{.rows = 40, .cols = 100}));
  EXPECT_NE(seen.channels[3].find("\"5\""), std::string::npos);
}

asio::awaitable<void> leave_early(net::Endpoint endpoint, std::string target, std::string word) {
  net::AsyncClient client(endpoint);
  net::Request request;
  request.target = target;
  net::WebSocketOptions options;
  options.subprotocols = {"v5.channel.k8s.io"};
  const auto socket = co_await client.open_websocket(std::move(request), options);
  co_await socket->read();  // it runs
  if (!word.empty()) co_await send_bytes(*socket, word);
}

TEST_F(RemoteTest, ACommandEndsWithItsClient) {
  std::promise<bool> killed;
  backend_.behaviour = [&](const Inside& inside) {
    linux::write_all(inside.output.get(), "hi");
    killed.set_value(inside.is_killed());
  };
  run(leave_early(endpoint(), kExec, ""));
  EXPECT_TRUE(killed.get_future().get());
}

TEST_F(RemoteTest, ACommandThatFloodsEndsWithItsClient) {
  std::promise<bool> killed;
  backend_.behaviour = [&](const Inside& inside) {
    try {
      const std::string much(1 << 16, 'x');
      while (true) linux::write_all(inside.output.get(), much);
    } catch (const Error&) {
      killed.set_value(inside.is_killed());
    }
  };
  run(leave_early(endpoint(), kExec, ""));
  EXPECT_TRUE(killed.get_future().get());
}

TEST_F(RemoteTest, ACommandThatDoesNotReadEndsWithItsClient) {
  std::promise<bool> killed;
  backend_.behaviour = [&](const Inside& inside) {
    linux::write_all(inside.output.get(), "hi");
    killed.set_value(inside.is_killed());
  };
  run(leave_early(endpoint(), kExec, std::string(500'000, '\0')));
  EXPECT_TRUE(killed.get_future().get());
}

TEST_F(RemoteTest, ACommandEndsWithItsServer) {
  std::promise<void> started;
  std::promise<bool> killed;
  backend_.behaviour = [&](const Inside& inside) {
    started.set_value();
    killed.set_value(inside.is_killed());
  };
  std::thread client([&] {
    Seen seen;
    try {
      run(talk(endpoint(), kExec, "v5.channel.k8s.io", nullptr, seen));
    } catch (const Error&) {
      // Cut, as it must be.
    }
  });
  started.get_future().get();
  server_->stop();
  EXPECT_TRUE(killed.get_future().get());
  client.join();
}

TEST_F(RemoteTest, InputThatNobodyReadsIsForgotten) {
  backend_.behaviour = [](const Inside& inside) {
    const_cast<linux::Fd&>(inside.input).reset();
    linux::write_all(inside.output.get(), "closed");
    char byte = 0;
    EXPECT_EQ(::read(inside.life.get(), &byte, 1), 0);
  };
  // The client notices nothing, and its leaving still ends the command.
  run(leave_early(endpoint(), kExec, std::string(100'000, '\0')));
}

TEST_F(RemoteTest, AttachShowsWhatIsSaidAndNotHowItEnded) {
  backend_.behaviour = [](const Inside& inside) {
    EXPECT_EQ(inside.read_input(2), "in");
    linux::write_all(inside.life.get(), "oe\x05");
  };
  Seen seen;
  run(talk(
      endpoint(), "/attach?stdin=true&stdout=true&stderr=true", "v5.channel.k8s.io",
      [](net::WebSocket& socket) { return send_bytes(socket, std::string("\0in", 3)); }, seen));
  EXPECT_EQ(seen.channels[1], "o");
  EXPECT_EQ(seen.channels[2], "e");
  EXPECT_EQ(seen.channels[3], R"({"metadata":{},"status":"Success"})");
}

}  // namespace
}  // namespace hearth::remote
