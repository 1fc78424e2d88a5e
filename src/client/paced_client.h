// A client that asks no more often than it may: --kube-api-qps and --kube-api-burst.
//
// Watches count once, when they begin. Calls that come too soon wait their turn. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>

#include "client/passing_client.h"

namespace hearth::client {

class PacedClient final : public PassingClient {
 public:
  // `inner` must outlive it.
  PacedClient(Client& inner, double per_second, unsigned burst);

 private:
  Client& turn() override;

  const Duration between_;
  const Duration credit_;  // how far behind the next turn may lie
  std::mutex mutex_;       // guards next_
  // At first in the endless past: the clock's zero is the machine's start, which may have been a
  // moment ago.
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::time_point::min();
};

}  // namespace hearth::client
