// A gateway on a real API server, programs in "sandboxes" that are threads of the test, and a
// client that says exactly what a test wants.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/guarded.h"
#include "client/kinds.h"
#include "client/watch_cache.h"
#include "gateway/dialler.h"
#include "gateway/gateway.h"
#include "http/body.h"
#include "http/head.h"
#include "linux/tcp.h"
#include "metrics/registry.h"
#include "model/front_door.h"
#include "pool/reach.h"

namespace hearth::gateway {

using namespace std::chrono_literals;

inline constexpr Duration kPatience = 20s;

struct Answer {
  http::Head head;
  std::string body;
  bool is_whole = false;  // its body ended as the head said
};

// One end of a connection, blocking, with patience.
class Peer {
 public:
  explicit Peer(linux::Fd socket) : socket_(std::move(socket)) {}

  static Peer connect(std::uint16_t port) {
    Dialled dialled = dial_tcp("127.0.0.1", port);
    EXPECT_TRUE(dialled.socket);
    linux::set_nonblocking(dialled.socket.get(), false);
    return Peer(std::move(dialled.socket));
  }

  int fd() const { return socket_.get(); }
  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;  // what it missed, a test sees
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  // More of what comes. False: it ended.
  bool more() {
    pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
    if (::poll(&wait, 1, static_cast<int>(patience)) != 1) {
      ADD_FAILURE() << "nothing came";
      return false;
    }
    char piece[16384];
    const ssize_t count = ::recv(socket_.get(), piece, sizeof piece, 0);
    was_reset_ = count < 0;
    if (count <= 0) return false;
    bytes_.append(piece, static_cast<std::size_t>(count));
    return true;
  }
  bool was_reset() const { return was_reset_; }
  std::string& bytes() { return bytes_; }
  // Until it ends.
  std::string rest() {
    while (more()) {
    }
    return std::exchange(bytes_, {});
  }
  std::string read(std::size_t count) {
    while (bytes_.size() < count && more()) {
    }
    std::string text = bytes_.substr(0, count);
    bytes_.erase(0, count);
    return text;
  }
  // A head as it came; empty for none.
  std::string read_head() {
    while (bytes_.find("\r\n\r\n") == std::string::npos) {
      if (!more()) return {};
    }
    return read(bytes_.find("\r\n\r\n") + 4);
  }
  // Of a body that a head announced: the bytes as they came on the wire go to `raw`.
  std::string read_body(const http::Framing& framing, bool& is_whole) {
    http::BodyDecoder decoder(framing);
    std::string body;
    while (!decoder.is_done()) {
      const auto step = decoder.take(bytes_);
      if (step.bad) return body;
      body += step.body;
      const bool is_stuck = step.used == 0;
      bytes_.erase(0, step.used);
      if (is_stuck && !more()) {
        is_whole = decoder.ends_with_connection() && !was_reset_;
        return body;
      }
    }
    is_whole = true;
    return body;
  }
  Answer read_answer(bool for_head = false) {
    Answer answer;
    const std::string head = read_head();
    if (const auto problem = http::parse_response_head(head, {}, for_head, answer.head)) {
      ADD_FAILURE() << problem->message << " in '" << head << "'";
      return answer;
    }
    answer.body = read_body(answer.head.framing, answer.is_whole);
    return answer;
  }
  http::Head read_request(std::string& body) {
    http::Head head;
    const std::string text = read_head();
    if (text.empty()) return head;
    if (const auto problem = http::parse_request_head(text, {}, head)) {
      ADD_FAILURE() << problem->message << " in '" << text << "'";
    }
    bool is_whole = false;
    body = read_body(head.framing, is_whole);
    return head;
  }
  void finish() { ::shutdown(socket_.get(), SHUT_WR); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    socket_.reset();
  }
  void close() { socket_.reset(); }
  Answer ask(std::string_view request) {
    send(request);
    return read_answer();
  }

 private:
  linux::Fd socket_;
  std::string bytes_;
  bool was_reset_ = false;
};

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
  ~Program() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_ = {};
    for (const auto& peer : peers_) ::shutdown(peer->fd(), SHUT_RDWR);
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
    return std::move(dialled.socket);
  }
  void commit(const model::Json&, const std::string&) override {}
  bool remove_image(const std::string&) override { return false; }
  void set_egress(const model::Json&, const pool::Egress&) override {}
  pool::PodUsage usage(const model::Json&) override { return {}; }

 private:
  Guarded<std::map<std::uint16_t, std::uint16_t>> ports_;
  std::atomic<int> dials_ = 0;
};

inline const std::string kId = "iabcdefghij0123456789";

struct SandboxWords {
  std::string name = kId;
  std::string ns = "default";
  std::map<std::string, std::string> labels = {{std::string(model::kFrontLabel), "e2b"}};
  std::map<std::string, std::string> annotations = {};
};

// The whole house.
class House {
 public:
  explicit House(GatewayOptions options = {}) {
    options.reach = options.reach != nullptr ? options.reach : &reach;
    options.registry = &registry;
    if (!options.envd_token)
      options.envd_token = [](auto id) { return fmt::format("envd-{}", id); };
    if (!options.traffic_token) {
      options.traffic_token = [](auto id) { return fmt::format("traffic-{}", id); };
    }
    gateway.emplace(sandboxes, pods, std::move(options));
    sandboxes.start();
    pods.start();
    EXPECT_TRUE(sandboxes.wait_synced(kPatience));
    EXPECT_TRUE(pods.wait_synced(kPatience));
    gateway->start();
  }
  ~House() {
    sandboxes.stop();
    pods.stop();
    gateway.reset();
  }

  client::Client& api() { return server.client(); }
  Peer connect() { return Peer::connect(gateway->ports()[0]); }

  // With its pod; the gateway knows of both.
  model::Json make_sandbox(const SandboxWords& words = {}) {
    model::Json object = apiserver::json(
        R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
            "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})");
    model::JsonObject& metadata = model::make_object_at(object, {"metadata"});
    metadata["name"] = words.name;
    metadata["namespace"] = words.ns;
    model::JsonObject& labels = model::make_object_at(object, {"metadata", "labels"});
    for (const auto& [key, value] : words.labels) labels[key] = value;
    model::JsonObject& annotations = model::make_object_at(object, {"metadata", "annotations"});
    for (const auto& [key, value] : words.annotations) annotations[key] = value;
    model::Json made = api().create(client::kSandboxes, object);
    make_pod(made);
    gateway->learn(made);
    return made;
  }
  void make_pod(const model::Json& sandbox) {
    model::Json pod = apiserver::json(R"({"apiVersion":"v1","kind":"Pod",
        "spec":{"containers":[{"name":"main","image":"x"}]}})");
    model::JsonObject& metadata = model::make_object_at(pod, {"metadata"});
    metadata["name"] = std::string(model::name_of(sandbox));
    metadata["namespace"] = std::string(model::namespace_of(sandbox));
    metadata["ownerReferences"] = model::JsonArray{model::controller_reference(sandbox)};
    api().create(client::kPods, pod);
    comes_true([&] {
      return pods.find(model::namespace_of(sandbox), model::name_of(sandbox)) != nullptr;
    });
  }
  model::Json annotate(std::string_view key, const model::Json& value) {
    return api().patch(
        client::kSandboxes, "default", kId, client::PatchKind::merge,
        model::JsonObject{
            {"metadata", model::JsonObject{{"annotations", model::JsonObject{{key, value}}}}}});
  }
  static bool comes_true(const std::function<bool()>& condition) {
    for (const Deadline end = Deadline::after(kPatience); !end.passed();) {
      if (condition()) return true;
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "it did not come true";
    return false;
  }

  metrics::Registry registry;
  FakeReach reach;
  apiserver::TestServer server;
  client::WatchCache sandboxes{server.client(), client::kSandboxes};
  client::WatchCache pods{server.client(), client::kPods};
  std::optional<Gateway> gateway;
};

// A request to a port of the sandbox, without body unless told.
inline std::string request(std::string_view line, std::uint16_t port = 8000,
                           std::string_view more = "") {
  return fmt::format(
      "{} HTTP/1.1\r\nHost: gw\r\nE2b-Sandbox-Id: {}\r\nE2b-Sandbox-Port: {}\r\n{}\r\n", line, kId,
      port, more);
}

}  // namespace hearth::gateway
