// A small internet for this room's kernel tests, made of namespaces of its own: the machine's
// network is never touched.
//
//   sandboxes ---- "host" 198.51.100.1 ---- 198.51.100.2 "internet", which also has
//                         203.0.113.7 and .8, 169.254.169.254, and no way to sandboxes' addresses
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "linux/fd.h"
#include "linux/kernel_testing.h"
#include "linux/namespaces.h"
#include "linux/route_socket.h"
#include "network/network.h"

namespace hearth::network {

inline constexpr const char* kHostAddress = "198.51.100.1";
inline constexpr const char* kWorldServer = "203.0.113.7";
inline constexpr const char* kOtherServer = "203.0.113.8";
inline constexpr const char* kMetadata = "169.254.169.254";

// What ought to arrive does so at once; what ought not to gets this long.
inline constexpr int kPatience = 3000;
inline constexpr int kImpatience = 250;

inline sockaddr_in socket_address(const std::string& ip, std::uint16_t port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  if (::inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1) fail(Code::invalid, "'{}'", ip);
  return address;
}

inline bool wait_for(int fd, short events, int milliseconds) {
  pollfd wanted{.fd = fd, .events = events};
  return ::poll(&wanted, 1, milliseconds) == 1;
}

// The errno that waits in a socket, as a word.
inline std::string outcome_of(int error) {
  if (error == 0) return "connected";
  if (error == ECONNREFUSED || error == ECONNRESET) return "refused";
  return errno_text(error);
}

class InternetTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEEDS(CAP_SYS_ADMIN);
    HEARTH_NEEDS(CAP_NET_ADMIN);
    outside_ = linux::open_namespace(::getpid(), "net");
    host_ = linux::make_net_namespace();
    internet_ = linux::make_net_namespace();
    linux::enter_namespace(host_.get(), CLONE_NEWNET);

    linux::RouteSocket here;
    here.link_up("lo");
    // Links whose two ends have the same number in their namespaces come up a second late: the
    // kernel takes them for physical ones (net/core/link_watch.c, linkwatch_urgent_event). These
    // use up some numbers.
    here.create_veth({.name = "spare0", .peer_name = "spare1"});
    here.create_veth({.name = "up0", .peer_name = "eth0", .peer_netns_fd = internet_.get()});
    here.add_address("up0", kHostAddress, 24);
    here.link_up("up0");
    linux::RouteSocket there(internet_.get());
    there.link_up("lo");
    there.add_address("eth0", "198.51.100.2", 24);
    for (const char* address : {kWorldServer, kOtherServer, kMetadata}) {
      there.add_address("lo", address, 32);
    }
    there.link_up("eth0");
    here.find_link("up0");  // settles it (host_side.cc)
    here.add_default_route("198.51.100.2");
    here.add_route("169.254.0.0/16", {.gateway = "198.51.100.2"});
  }

  void TearDown() override {
    if (outside_) linux::enter_namespace(outside_.get(), CLONE_NEWNET);
  }

  // In a namespace: sockets stay where they were made.
  template <typename F>
  auto in(const linux::Fd& where, F make) {
    linux::enter_namespace(where.get(), CLONE_NEWNET);
    const std::shared_ptr<void> back(
        nullptr, [this](void*) { linux::enter_namespace(host_.get(), CLONE_NEWNET); });
    return make();
  }

  linux::Fd make_socket(const linux::Fd& where, int type) {
    return in(where, [&] {
      linux::Fd made(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!made) throw_errno("make a socket");
      return made;
    });
  }

  linux::Fd listen_at(const linux::Fd& where, int type, const std::string& ip, std::uint16_t port) {
    linux::Fd made = make_socket(where, type);
    const sockaddr_in address = socket_address(ip, port);
    const int on = 1;
    ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw_errno("bind to {}:{}", ip, port);
    }
    if (type == SOCK_STREAM && ::listen(made.get(), 128) != 0) throw_errno("listen");
    return made;
  }

  // A stream to there, and how it went: "connected", "refused", "silence" or an errno.
  std::pair<linux::Fd, std::string> dial(const linux::Fd& from, const std::string& ip,
                                         std::uint16_t port, int patience = kPatience) {
    linux::Fd made = make_socket(from, SOCK_STREAM);
    const sockaddr_in to = socket_address(ip, port);
    const auto* raw = reinterpret_cast<const sockaddr*>(&to);
    if (::connect(made.get(), raw, sizeof to) != 0 && errno != EINPROGRESS) {
      return {linux::Fd(), outcome_of(errno)};
    }
    if (!wait_for(made.get(), POLLOUT, patience)) return {linux::Fd(), "silence"};
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return {std::move(made), outcome_of(error)};
  }
  std::string reach(const linux::Fd& from, const std::string& ip, std::uint16_t port,
                    int patience = kPatience) {
    return dial(from, ip, port, patience).second;
  }

  // A datagram to there and back: "answered", "unheard" or "unanswered".
  std::string ask(const linux::Fd& from, const std::string& ip, std::uint16_t port,
                  const linux::Fd& server, int patience = kPatience) {
    const linux::Fd made = make_socket(from, SOCK_DGRAM);
    const sockaddr_in to = socket_address(ip, port);
    const auto* raw = reinterpret_cast<const sockaddr*>(&to);
    if (::connect(made.get(), raw, sizeof to) != 0) return outcome_of(errno);
    if (::send(made.get(), "who?", 4, 0) != 4) return outcome_of(errno);
    if (!wait_for(server.get(), POLLIN, patience)) return "unheard";
    char buffer[16];
    sockaddr_in sender{};
    socklen_t size = sizeof sender;
    auto* raw_sender = reinterpret_cast<sockaddr*>(&sender);
    ::recvfrom(server.get(), buffer, sizeof buffer, 0, raw_sender, &size);
    ::sendto(server.get(), "me", 2, 0, raw_sender, size);
    if (!wait_for(made.get(), POLLIN, patience)) return "unanswered";
    return ::recv(made.get(), buffer, sizeof buffer, 0) == 2 ? "answered" : "unanswered";
  }

  linux::Fd listen_in_world(std::uint16_t port, const std::string& ip = kWorldServer) {
    return listen_at(internet_, SOCK_STREAM, ip, port);
  }

  linux::Fd outside_;  // where the test's process came from
  linux::Fd host_;
  linux::Fd internet_;
};

inline Policy world_policy() {
  return {.mode = Mode::world};
}

struct Box {
  linux::Fd ns;
  Slot slot;
};

// With a Network, tag "test", whose resolver is in the world.
class SandboxTest : public InternetTest {
 protected:
  void SetUp() override {
    InternetTest::SetUp();
    if (IsSkipped()) return;
    open_network({.tag = "test", .resolver = kWorldServer});
  }

  void open_network(const Options& options) {
    network_.emplace(options);
    network_->start();
  }

  Box make_box(const Policy& policy) {
    Box box{.ns = linux::make_net_namespace()};
    box.slot = network_->attach(box.ns.get(), policy);
    return box;
  }

  linux::Fd listen_in(const Box& box, std::uint16_t port) {
    return listen_at(box.ns, SOCK_STREAM, box.slot.address, port);
  }

  std::optional<Network> network_;
};

}  // namespace hearth::network
