// The subresources against a backend that is made of pipes and socket pairs, over a real server.
#include "remote/remote.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <future>
#include <map>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/error.h"
#include "linux/pty.h"
#include "model/status.h"
#include "net/byte_stream.h"
#include "net/client.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/workers.h"
#include "remote/backend.h"
#include "spdy/frames.h"

namespace hearth::remote {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr std::string_view kPod = R"({
  "metadata": {"name": "p1", "uid": "u1"},
  "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
  "status": {"containerStatuses": [
    {"name": "main", "containerID": "hearth://sb1", "state": {"running": {}}}]}})";
constexpr std::string_view kTwo = R"({
  "metadata": {"name": "p1"},
  "spec": {"nodeName": "n", "containers": [{"name": "main"}, {"name": "side"}]}})";
constexpr std::string_view kHomeless = R"({
  "metadata": {"name": "p1"}, "spec": {"containers": [{"name": "main"}]}})";

linux::Pipe blocking_pipe() {
  return linux::make_pipe();
}

std::pair<linux::Fd, linux::Fd> socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) throw_errno("socketpair");
  return {linux::Fd(fds[0]), linux::Fd(fds[1])};
}

// The command's side of what the backend handed out.
struct Inside {
  std::vector<std::string> command;
  Streams streams;
  linux::Fd input;
  linux::Fd output;
  linux::Fd error;
  linux::Fd life;  // one byte: the exit code; reads its end when the command is to be killed

  std::string read_input(std::size_t count) const {
    std::string all;
    char byte = 0;
    while (all.size() < count && ::read(input.get(), &byte, 1) == 1) all += byte;
    return all;
  }
  void exit(int code) const {
    linux::write_all(life.get(), std::string(1, static_cast<char>(code)));
  }
  // Whether nobody holds the other end any more; waits for it.
  bool is_killed() const {
    char byte = 0;
    return ::read(life.get(), &byte, 1) == 0;
  }
};

class FakeLife final : public Life {
 public:
  explicit FakeLife(linux::Fd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }
  std::variant<std::monostate, Said, Ended> next() override {
    char byte = 0;
    const ssize_t got = ::recv(fd_.get(), &byte, 1, MSG_DONTWAIT);
    if (got < 0) return std::monostate();
    if (got == 0) fail(Code::unavailable, "the sandbox went away");
    // Of one that is only looked at: a letter is what it says.
    if (byte >= 'a') return Said{.is_error = byte == 'e', .bytes = std::string(1, byte)};
    return Ended{.exit_code = byte};
  }

 private:
  linux::Fd fd_;
};

class FakeFeed final : public LogFeed {
 public:
  explicit FakeFeed(linux::Fd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }

 private:
  linux::Fd fd_;
};

// Each command is a function that runs on a thread of its own.
class FakeBackend final : public Backend {
 public:
  ~FakeBackend() override {
    for (std::thread& one : threads_) one.join();
  }
  net::Workers* workers() override { return &workers_; }

  Command start(const Container& container, const std::vector<std::string>& command,
                const Streams& streams) override {
    EXPECT_EQ(container.sandbox, "sb1");
    if (!behaviour) fail(Code::not_found, "no such program");
    Command handed;
    Inside inside{.command = command, .streams = streams};
    if (streams.terminal) {
      linux::Pty pty = linux::open_pty(24, 80);
      handed.input = linux::duplicate(pty.master.get());
      handed.output = std::move(pty.master);
      inside.input = linux::duplicate(pty.slave.get());
      inside.output = std::move(pty.slave);
    } else {
      connect_pipes(streams, handed, inside);
    }
    auto [ours, theirs] = socket_pair();
    handed.life = std::make_unique<FakeLife>(std::move(ours));
    inside.life = std::move(theirs);
    run(std::move(inside));
    return handed;
  }

  Command attach(const Container& /*container*/, const Streams& streams) override {
    Command handed;
    Inside inside{.command = {}, .streams = streams};
    if (streams.input) {
      linux::Pipe pipe = blocking_pipe();
      handed.input = std::move(pipe.write);
      inside.input = std::move(pipe.read);
    }
    auto [ours, theirs] = socket_pair();
    handed.life = std::make_unique<FakeLife>(std::move(ours));
    inside.life = std::move(theirs);
    run(std::move(inside));
    return handed;
  }

  linux::Fd connect(const Container& /*container*/, std::uint16_t port) override {
    if (!target) fail(Code::unavailable, "nobody listens on port {}", port);
    auto [ours, theirs] = socket_pair();
    threads_.emplace_back(
        [this, port, fd = std::make_shared<linux::Fd>(std::move(theirs))] { target(port, *fd); });
    return std::move(ours);
  }

  std::unique_ptr<LogFeed> open_log(const Container& /*container*/,
                                    const LogOptions& options) override {
    log_options = options;
    linux::Pipe pipe = blocking_pipe();
    linux::write_all(pipe.write.get(), log_text);
    if (options.follow) log_writer = std::move(pipe.write);
    return std::make_unique<FakeFeed>(std::move(pipe.read));
  }

  std::function<void(const Inside&)> behaviour;
  std::function<void(std::uint16_t, linux::Fd&)> target;
  std::string log_text;
  LogOptions log_options;
  linux::Fd log_writer;

 private:
  static void connect_pipes(const Streams& streams, Command& handed, Inside& inside) {
    if (streams.input) {
      linux::Pipe pipe = blocking_pipe();
      handed.input = std::move(pipe.write);
      inside.input = std::move(pipe.read);
    }
    if (streams.output) {
      linux::Pipe pipe = blocking_pipe();
      handed.output = std::move(pipe.read);
      inside.output = std::move(pipe.write);
    }
    if (streams.error) {
      linux::Pipe pipe = blocking_pipe();
      handed.error = std::move(pipe.read);
      inside.error = std::move(pipe.write);
    }
  }

  void run(Inside inside) {
    threads_.emplace_back(
        [this, shared = std::make_shared<Inside>(std::move(inside))] { behaviour(*shared); });
  }

  net::Workers workers_{2};
  std::vector<std::thread> threads_;
};

net::Response render(const net::Problem& problem, const net::Request&) {
  return net::text_response(problem.status, problem.message);
}

class RemoteTest : public testing::Test {
 public:
  RemoteTest() {
    ::signal(SIGPIPE, SIG_IGN);
    net::Router router;
    router.set_error_renderer(render);
    for (const std::string method : {"GET", "POST"}) {
      router.add_stream(method, "/{what}", std::bind_front(&RemoteTest::serve, this));
    }
    server_.emplace(net::ServerOptions{}, std::move(router));
    server_->start();
  }

  asio::awaitable<void> serve(net::Request request, net::Stream& stream) {
    const std::string what = request.parameter("what");
    const auto handler = what == "log"      ? serve_log
                         : what == "exec"   ? serve_exec
                         : what == "attach" ? serve_attach
                                            : serve_portforward;
    try {
      co_await handler(std::move(request), stream, pod_, backend_);
    } catch (const model::StatusError& error) {
      refused_ = error.status();
      throw;
    }
  }

  void run(asio::awaitable<void> work) {
    std::exception_ptr failure;
    io_.restart();
    bool is_done = false;
    asio::co_spawn(io_, std::move(work), [&](const std::exception_ptr& e) {
      failure = e;
      is_done = true;
      io_.stop();
    });
    io_.run_for(20s);
    if (failure) std::rethrow_exception(failure);
    ASSERT_TRUE(is_done) << "it took too long";
  }

  net::Endpoint endpoint() const { return {.port = server_->port()}; }

  net::Response get(const std::string& target) const {
    net::Request request;
    request.target = target;
    return net::Client(endpoint()).fetch(std::move(request));
  }

  asio::io_context io_;  // of the clients, which must not outlive it
  model::Json pod_ = model::parse_json(kPod).value;
  FakeBackend backend_;
  model::Status refused_;
  std::optional<net::Server> server_;
};

// What a client saw, by channel.
struct Seen {
  std::map<int, std::string> channels;
  std::optional<std::uint16_t> close_code;
};

using Talk = std::function<asio::awaitable<void>(net::WebSocket&)>;

asio::awaitable<void> talk(net::Endpoint endpoint, std::string target, std::string protocol,
                           Talk begin, Seen& seen) {
  net::AsyncClient client(endpoint);
  net::Request request;
  request.target = target;
  net::WebSocketOptions options;
  if (!protocol.empty()) options.subprotocols = {protocol};
  const auto socket = co_await client.open_websocket(std::move(request), options);
  EXPECT_EQ(socket->subprotocol(), protocol);
  if (begin) co_await begin(*socket);
  while (const auto message = co_await socket->read()) {
    if (message->data.empty()) continue;
    const bool is_text = message->kind == net::MessageKind::text;
    const std::string payload = message->data.substr(1);
    seen.channels[message->data[0] - (is_text ? '0' : 0)] +=
        is_text ? base64_decode(payload).value_or("bad") : payload;
  }
  seen.close_code = socket->peer_close_code();
}

asio::awaitable<void> send_bytes(net::WebSocket& socket, std::string bytes) {
  co_await socket.write(bytes, net::MessageKind::binary);
}

void echo(const Inside& inside) {
  linux::write_all(inside.error.get(), "ready\n");
  char byte = 0;
  while (::read(inside.input.get(), &byte, 1) == 1) {
    linux::write_all(inside.output.get(), {&byte, 1});
  }
  inside.exit(3);
}

constexpr char kExec[] =
    "/exec?command=sh&command=-c&container=main&stdin=1&stdout=true&stderr=True";

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

TEST_F(RemoteTest, WordsOfRefusal) {
  struct Case {
    std::string_view pod;
    std::string target;
    unsigned code;
    std::string message;
  };
  const Case cases[] = {
      {kTwo, "/exec?command=ls&stdout=true", 400,
       "a container name must be specified for pod p1, choose one of: [main side]"},
      {kTwo, "/log", 400,
       "a container name must be specified for pod p1, choose one of: [main side]"},
      {kPod, "/exec?container=zz&command=ls&stdout=true", 400,
       "container zz is not valid for pod p1"},
      {kPod, "/log?container=zzz", 400, "container zzz is not valid for pod p1"},
      {kPod, "/exec?command=ls&stdout=true", 400, "Upgrade request required"},
      {kPod, "/attach?stdout=true", 400, "Upgrade request required"},
      {kPod, "/portforward?ports=80", 400, "Upgrade request required"},
      {kHomeless, "/exec?command=ls&stdout=true", 400, "pod p1 does not have a host assigned"},
      {kHomeless, "/portforward", 400, "pod p1 does not have a host assigned"},
      {kTwo, "/log?container=side", 400,
       "container \"side\" in pod \"p1\" is waiting to start: ContainerCreating"},
      {kPod, "/log?tailLines=-1", 422,
       "PodLogOptions \"p1\" is invalid: tailLines: Invalid value: -1: must be greater than or "
       "equal to 0"},
      {kPod, "/log?limitBytes=0", 422,
       "PodLogOptions \"p1\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"},
      {kPod, "/log?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z", 422,
       "PodLogOptions \"p1\" is invalid: []: Forbidden: at most one of `sinceTime` or "
       "`sinceSeconds` may be specified"},
      {kPod, "/log?tailLines=many", 400, "tailLines: 'many' is no number"},
  };
  for (const Case& one : cases) {
    pod_ = model::parse_json(one.pod).value;
    refused_ = {};
    get(one.target);
    EXPECT_EQ(refused_.message, one.message) << one.target;
    EXPECT_EQ(refused_.code, one.code) << one.target;
  }
}

TEST_F(RemoteTest, WebSocketRefusals) {
  const auto refusal = [&](const std::string& target, const std::string& protocol) {
    net::Request request;
    request.target = target;
    request.headers = {{"Connection", "Upgrade"},
                       {"Upgrade", "websocket"},
                       {"Sec-WebSocket-Version", "13"},
                       {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                       {"Sec-WebSocket-Protocol", protocol}};
    refused_ = {};
    return net::Client(endpoint()).fetch(std::move(request)).status;
  };
  EXPECT_EQ(refusal("/exec?command=ls&stdout=1", "v9.channel.k8s.io"), 403U);
  EXPECT_EQ(refusal("/exec?stdout=1", "v5.channel.k8s.io"), 400U);
  EXPECT_EQ(refusal("/exec?command=ls", "v5.channel.k8s.io"), 400U);
  EXPECT_EQ(refused_.message, "you must specify at least 1 of stdin, stdout, stderr");
  EXPECT_EQ(refusal("/portforward", "v4.channel.k8s.io"), 400U);
  EXPECT_EQ(refusal("/portforward?ports=0", "v4.channel.k8s.io"), 400U);
  pod_ = model::parse_json(kTwo).value;
  EXPECT_EQ(refusal("/exec?container=main&command=ls&stdout=1", "v5.channel.k8s.io"), 500U);
  EXPECT_EQ(refused_.message, "container not found (\"main\")");
}

TEST_F(RemoteTest, LogIsPlainText) {
  backend_.log_text = "one\ntwo\n";
  const net::Response all = get("/log?timestamps=true&tailLines=2&sinceSeconds=60&previous=0");
  EXPECT_EQ(all.status, 200U);
  EXPECT_EQ(all.body, "one\ntwo\n");
  EXPECT_EQ(all.headers.value("Content-Type"), "text/plain");
  EXPECT_TRUE(backend_.log_options.timestamps);
  EXPECT_FALSE(backend_.log_options.previous);
  EXPECT_EQ(backend_.log_options.tail_lines, 2U);
  EXPECT_TRUE(backend_.log_options.since.has_value());
  EXPECT_EQ(get("/log?limitBytes=5").body, "one\nt");
  pod_ = model::parse_json(kHomeless).value;
  EXPECT_EQ(get("/log").body, "");
}

asio::awaitable<void> follow_a_bit(net::Endpoint endpoint, linux::Fd& writer) {
  net::AsyncClient client(endpoint);
  net::Request request;
  request.target = "/log?follow=true&stream=Stderr";
  const auto exchange = co_await client.open(std::move(request));
  co_await exchange->read_head(5s);
  EXPECT_EQ(co_await exchange->read_some(5s), "begin\n");
  linux::write_all(writer.get(), "more\n");
  EXPECT_EQ(co_await exchange->read_some(5s), "more\n");
}

TEST_F(RemoteTest, AFollowedLogEndsWithItsClient) {
  backend_.log_text = "begin\n";
  run(follow_a_bit(endpoint(), backend_.log_writer));
  EXPECT_EQ(backend_.log_options.stream, LogStream::error);
  const auto deadline = Deadline::after(10s);
  bool is_closed = false;
  while (!is_closed && !deadline.passed()) {
    is_closed = ::write(backend_.log_writer.get(), "x", 1) < 0;
    std::this_thread::yield();
  }
  EXPECT_TRUE(is_closed);
}

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

asio::awaitable<void> forward_and_leave(SpdyClient& client, net::Endpoint endpoint) {
  co_await client.open(endpoint, "/portforward", {"portforward.k8s.io"});
  co_await open_pair(client, 1, "8080", "0");
  const std::string much(100'000, 'x');
  for (int i = 0; i < 20; ++i)
    co_await client.send(spdy::Encoder::data_head(3, much.size()) + much);
}

TEST_F(RemoteTest, ATargetThatDoesNotReadIsLeftWithTheClient) {
  std::promise<bool> closed;
  backend_.target = [&](std::uint16_t, linux::Fd& socket) {
    pollfd state{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
    closed.set_value(::poll(&state, 1, 10'000) == 1);
  };
  SpdyClient client;
  try {
    run(forward_and_leave(client, endpoint()));
  } catch (const std::exception&) {
    // It may have got stuck, which is the point.
  }
  client.leave();
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

TEST(NoNodeTest, SaysThatNothingRuns) {
  NoNode none;
  EXPECT_EQ(none.workers(), nullptr);
  EXPECT_THROW(none.start({}, {}, {}), Error);
  EXPECT_THROW(none.attach({}, {}), Error);
  EXPECT_THROW(none.connect({}, 1), Error);
  EXPECT_THROW(none.open_log({}, {}), Error);
}

}  // namespace
}  // namespace hearth::remote
