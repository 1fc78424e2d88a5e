// Connections into sandboxes: through the guest where the sandbox is on this machine, otherwise to
// its pod's address.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gateway/errands.h"
#include "gateway/route.h"
#include "linux/fd.h"

namespace hearth::client {
class WatchCache;
}
namespace hearth::pool {
class Reach;
}

namespace hearth::gateway {

enum class DialState {
  connected,
  connecting,  // the socket says when, or that it failed
  refused,     // nobody listens on that port: perhaps soon
  absent,      // no pod that runs: perhaps soon
};

struct Dialled {
  DialState state = DialState::absent;
  linux::Fd socket;
};

class Dialler {
 public:
  Dialler(const client::WatchCache& pods, pool::Reach* reach) : pods_(pods), reach_(reach) {}

  // Blocks for milliseconds: on an errand. Does not throw.
  Dialled dial(const Route& route, std::uint16_t port) const;

 private:
  Dialled dial_pod(const Route& route, std::uint16_t port) const;

  const client::WatchCache& pods_;
  pool::Reach* reach_;
};

// Returns at once: connected or connecting; refused where that is known already.
Dialled dial_tcp(const std::string& address, std::uint16_t port);

}  // namespace hearth::gateway
