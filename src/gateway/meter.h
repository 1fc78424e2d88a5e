// Counts what passes, under the names that sandbox-router has, and a few of our own. One for each
// thread, so that finding the right counter takes no lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "metrics/registry.h"

namespace hearth::gateway {

class Meter {
 public:
  // Null: nothing is counted.
  explicit Meter(metrics::Registry* registry);

  // Of one namespace; "-" where there is none. Lives as long as the meter.
  class Space;
  Space* space(const std::string& ns);

  void began();
  void ended();
  // Null for the control plane's: those are counted there.
  void answered(Space* space, std::string_view method, unsigned status, Duration took);
  // `reason`: dial, timeout, tls, eof, other.
  void failed(Space* space, std::string_view reason);
  // Whether access was granted.
  void decided(Space* space, bool is_granted);
  // Since the head of the request.
  void first_byte(Duration took);
  void retried();
  void connected(int by);
  void moved(std::uint64_t up, std::uint64_t down);
  void woke();
  // A request for a sandbox that is not known: one that was here and is gone is refused at once,
  // others are held for a moment.
  void missed(bool is_gone);

  class Space {
   public:
    std::string ns;
    struct Pair {
      metrics::Counter* count = nullptr;
      metrics::Histogram* time = nullptr;
    };
    std::unordered_map<std::uint32_t, Pair> answers;  // by method and status
    metrics::Counter* granted = nullptr;
    metrics::Counter* denied = nullptr;
  };

 private:
  metrics::Registry* registry_;
  std::unordered_map<std::string, Space> spaces_;
  metrics::Gauge* inflight_ = nullptr;
  metrics::Gauge* connections_ = nullptr;
  metrics::Counter* retries_ = nullptr;
  metrics::Counter* bytes_up_ = nullptr;
  metrics::Counter* bytes_down_ = nullptr;
  metrics::Counter* wakes_ = nullptr;
  metrics::Counter* unknown_ = nullptr;
  metrics::Counter* gone_ = nullptr;
  metrics::Histogram* first_byte_ = nullptr;
};

}  // namespace hearth::gateway
