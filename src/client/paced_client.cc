#include "client/paced_client.h"

#include <algorithm>
#include <thread>

namespace hearth::client {

PacedClient::PacedClient(Client& inner, double per_second, unsigned burst)
    : PassingClient(inner),
      between_(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(1 / std::max(per_second, 1e-6)))),
      credit_(between_ * (std::max(burst, 1U) - 1)) {}

// Turns are handed out `between_` apart; those that nobody took may be taken later, all at once.
Client& PacedClient::turn() {
  std::chrono::steady_clock::time_point mine;
  {
    const std::lock_guard lock(mutex_);
    next_ = std::max(next_, std::chrono::steady_clock::now() - credit_);
    mine = next_;
    next_ += between_;
  }
  std::this_thread::sleep_until(mine);
  return PassingClient::turn();
}

}  // namespace hearth::client
