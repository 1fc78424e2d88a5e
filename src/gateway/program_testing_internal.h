// Programs in "sandboxes": threads of the test that listen, and a Reach that finds them.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/guarded.h"
#include "gateway/peer_testing_internal.h"
#include "linux/tcp.h"
#include "pool/reach.h"

namespace hearth::gateway {

// A program that listens: `serve` gets each connection, on a thread of its own.
class Program {
 public:
  using Serve = std::function<void(Peer& peer)>;

  explicit Program(Serve serve) : serve_(std::move(serve)) {
    auto made = linux::listen_tcp(linux::kLoopback, 0, 64);
    port_ = made.port;
    socket_ = std::move(made.socket);
    linux::set_nonblocking(socket_.get(), false);
    thread_ = std::jthread([this] { accept(); });
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_ = {};
    for (const auto& peer : peers_) peer->cut();
    threads_.clear();
  }
  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return connections_; }

 private:
  void accept() {
    while (true) {
      linux::Fd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      ++connections_;
      peers_.push_back(std::make_shared<Peer>(std::move(client)));
      threads_.emplace_back([this, peer = peers_.back()] { serve_(*peer); });
    }
  }

  Serve serve_;
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> connections_ = 0;
  linux::Fd socket_;
  std::jthread thread_;
  std::list<std::shared_ptr<Peer>> peers_;
  std::list<std::jthread> threads_;
};

// Answers every request with what it saw of it.
inline void echo(Peer& peer) {
  while (true) {
    std::string body;
    const http::Head head = peer.read_request(body);
    if (head.method.empty()) return;
    std::string seen = fmt::format("{} {}\n", head.method, head.target);
    for (const auto& field : head.headers) seen += fmt::format("{}: {}\n", field.name, field.value);
    seen += "\n" + body;
    peer.send(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", seen.size(),
                          head.method == "HEAD" ? "" : seen));
  }
}

// Ports of all "sandboxes", by number.
class FakeReach final : public pool::Reach {
 public:
  void open(std::uint16_t port, std::uint16_t real) {
    ports_.with([&](auto& ports) { ports[port] = real; });
  }
  int dials() const { return dials_; }
  // What a guest does with the socket that it connects, besides handing it out. Before any dial.
  void meddle(std::function<void(int socket_fd)> with) { meddle_ = std::move(with); }

  bool can_outfit(const model::Json&) override { return false; }
  void outfit(const model::Json&, const pool::Outfit&) override {}
  bool is_here(const model::Json&) override { return true; }
  linux::Fd connect(const model::Json&, std::uint16_t port) override {
    ++dials_;
    const std::uint16_t real = ports_.with([&](auto& ports) { return ports[port]; });
    if (real == 0) fail(Code::unavailable, "connect to port {}: connection refused", port);
    Dialled dialled = dial_tcp("127.0.0.1", real);
    pollfd wait{.fd = dialled.socket.get(), .events = POLLOUT, .revents = 0};
    ::poll(&wait, 1, 5000);
    if (meddle_) meddle_(dialled.socket.get());
    return std::move(dialled.socket);
  }
  void commit(const model::Json&, const std::string&) override {}
  bool remove_image(const std::string&) override { return false; }
  std::vector<std::string> find_images(std::string_view) override { return {}; }
  void set_egress(const model::Json&, const pool::Egress&) override {}
  pool::PodUsage usage(const model::Json&) override { return {}; }

 private:
  std::function<void(int socket_fd)> meddle_;
  Guarded<std::map<std::uint16_t, std::uint16_t>> ports_;
  std::atomic<int> dials_ = 0;
};

}  // namespace hearth::gateway
