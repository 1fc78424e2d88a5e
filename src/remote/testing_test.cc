// The bodies of testing_internal.h.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "linux/pty.h"
#include "net/client.h"
#include "net/stream.h"
#include "remote/remote.h"
#include "remote/testing_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

std::pair<linux::Fd, linux::Fd> socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) throw_errno("socketpair");
  return {linux::Fd(fds[0]), linux::Fd(fds[1])};
}

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

void connect_pipes(const Streams& streams, Command& handed, Inside& inside) {
  if (streams.input) {
    linux::Pipe pipe = linux::make_pipe();
    handed.input = std::move(pipe.write);
    inside.input = std::move(pipe.read);
  }
  if (streams.output) {
    linux::Pipe pipe = linux::make_pipe();
    handed.output = std::move(pipe.read);
    inside.output = std::move(pipe.write);
  }
  if (streams.error) {
    linux::Pipe pipe = linux::make_pipe();
    handed.error = std::move(pipe.read);
    inside.error = std::move(pipe.write);
  }
}

net::Response render(const net::Problem& problem, const net::Request& /*request*/) {
  return net::text_response(problem.status, problem.message);
}

}  // namespace

FakeBackend::~FakeBackend() {
  for (std::thread& one : threads_) one.join();
}

Command FakeBackend::start(const Container& container, const std::vector<std::string>& command,
                           const Streams& streams) {
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
  run(handed, std::move(inside));
  return handed;
}

Command FakeBackend::attach(const Container& /*container*/, const Streams& streams) {
  Command handed;
  Inside inside{.command = {}, .streams = streams};
  connect_pipes({.input = streams.input}, handed, inside);
  run(handed, std::move(inside));
  return handed;
}

void FakeBackend::run(Command& handed, Inside inside) {
  auto [ours, theirs] = socket_pair();
  handed.life = std::make_unique<FakeLife>(std::move(ours));
  inside.life = std::move(theirs);
  threads_.emplace_back(
      [this, shared = std::make_shared<Inside>(std::move(inside))] { behaviour(*shared); });
}

linux::Fd FakeBackend::connect(const Container& /*container*/, std::uint16_t port) {
  if (!target) fail(Code::unavailable, "nobody listens on port {}", port);
  auto [ours, theirs] = socket_pair();
  threads_.emplace_back(
      [this, port, fd = std::make_shared<linux::Fd>(std::move(theirs))] { target(port, *fd); });
  return std::move(ours);
}

std::unique_ptr<LogFeed> FakeBackend::open_log(const Container& /*container*/,
                                               const LogOptions& options) {
  log_options = options;
  linux::Pipe pipe = linux::make_pipe();
  linux::write_all(pipe.write.get(), log_text);
  if (options.follow) log_writer = std::move(pipe.write);
  return std::make_unique<FakeFeed>(std::move(pipe.read));
}

RemoteTest::RemoteTest() {
  ::signal(SIGPIPE, SIG_IGN);
  net::Router router;
  router.set_error_renderer(render);
  for (const std::string method : {"GET", "POST"}) {
    router.add_stream(method, "/{what}", std::bind_front(&RemoteTest::serve, this));
  }
  server_.emplace(net::ServerOptions{}, std::move(router));
  server_->start();
}

asio::awaitable<void> RemoteTest::serve(net::Request request, net::Stream& stream) {
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

void RemoteTest::run(asio::awaitable<void> work) {
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

net::Response RemoteTest::get(const std::string& target) const {
  net::Request request;
  request.target = target;
  return net::Client(endpoint()).fetch(std::move(request));
}

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

}  // namespace hearth::remote
