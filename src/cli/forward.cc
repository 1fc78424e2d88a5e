#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <list>

#include "base/error.h"
#include "cli/command.h"
#include "cli/relay.h"
#include "cli/signals.h"
#include "cli/surface.h"
#include "guest/client.h"
#include "linux/tcp.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

// Each is two descriptors of ours, and one inside.
constexpr std::size_t kMostRelays = 400;

struct Entrance {
  linux::Fd socket;
  std::uint16_t local = 0;
  std::uint16_t inside = 0;
};

Entrance listen_on(const ForwardedPort& port) {
  linux::TcpListener listener = linux::listen_tcp(linux::kLoopback, port.local, SOMAXCONN);
  return {.socket = std::move(listener.socket), .local = listener.port, .inside = port.inside};
}

class Forwarder {
 public:
  Forwarder(guest::Connection guest, const std::vector<ForwardedPort>& ports)
      : guest_(std::move(guest)) {
    for (const ForwardedPort& port : ports) entrances_.push_back(listen_on(port));
    for (const Entrance& each : entrances_)
      std::printf("127.0.0.1:%u -> %u\n", unsigned{each.local}, unsigned{each.inside});
    std::fflush(stdout);
  }

  // Until a signal comes.
  void run(const Signals& signals) {
    while (true) {
      std::vector<pollfd> waited = {{.fd = signals.fd(), .events = POLLIN, .revents = 0}};
      const short accepts = relays_.size() < kMostRelays ? POLLIN : 0;
      for (const Entrance& each : entrances_)
        waited.push_back({.fd = each.socket.get(), .events = accepts, .revents = 0});
      for (const Relay& relay : relays_) {
        for (const pollfd& one : relay.waiting()) waited.push_back(one);
      }
      if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR)
        throw_errno("wait for connections");
      if (waited.front().revents != 0) return;
      for (Relay& relay : relays_) relay.step();
      relays_.remove_if([](const Relay& relay) { return relay.is_over(); });
      for (const Entrance& each : entrances_) accept_from(each);
    }
  }

 private:
  void accept_from(const Entrance& entrance) {
    linux::Fd outer(::accept4(entrance.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!outer) return;
    try {
      relays_.emplace_back(std::move(outer), guest_.connect(entrance.inside));
    } catch (const Error& error) {
      if (error.code() != Code::unavailable || guest_is_gone()) throw;
      complain("forward", error.what());  // nobody listens there, yet
    }
  }

  bool guest_is_gone() const {
    pollfd looked{.fd = guest_.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&looked, 1, 0) > 0;
  }

  guest::Connection guest_;
  std::vector<Entrance> entrances_;
  std::list<Relay> relays_;
};

}  // namespace

int forward(const ForwardOptions& options) {
  const Signals signals({SIGINT, SIGTERM, SIGHUP});
  guest::Connection guest(runtime::RuntimeClient(options.state_dir).connect(options.id));
  Forwarder(std::move(guest), options.ports).run(signals);
  return 0;
}

}  // namespace hearth::cli
