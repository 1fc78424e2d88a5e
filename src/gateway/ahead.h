// Connections that are made before anybody asks for them: whoever is told of a new sandbox will
// soon send it something.
//
// Nobody may come for one: it is closed after a few seconds. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/guarded.h"
#include "gateway/dialler.h"
#include "gateway/errands.h"
#include "gateway/route.h"
#include "gateway/upstreams.h"

namespace hearth::gateway {

class Ahead {
 public:
  enum class Found { nothing, made, coming };
  using Arrival = std::function<void(Dialled dialled)>;

  // `dialler` must outlive it.
  explicit Ahead(const Dialler& dialler) : dialler_(dialler) {}

  // Returns at once. Nothing happens when there is one already, or too many are.
  void dial(const RoutePtr& route, std::uint16_t port);
  // One that is made already, for whoever comes soon.
  void put(UpstreamKey key, Dialled dialled);
  // Closes it, if it is made: a socket of a sandbox that is gone keeps its network alive.
  void drop(UpstreamKey key);
  // Takes it: into `made`, or as soon as it is there, from another thread, by `arrival`.
  Found take(UpstreamKey key, Dialled& made, Arrival arrival);
  // Closes those that were made so long ago.
  void sweep(Duration age);
  // After it nothing arrives any more. Idempotent.
  void stop() { errands_.stop(); }

 private:
  // Each is two descriptors and a thread of a guest, perhaps for nobody.
  static constexpr std::size_t kMost = 256;

  struct Entry {
    bool is_made = false;
    std::chrono::steady_clock::time_point since = {};
    Dialled dialled = {};
    Arrival arrival = {};  // whoever waits for it; empty: nobody
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;

  void arrive(std::uint64_t number, Dialled dialled);

  const Dialler& dialler_;
  Guarded<Entries> entries_;
  std::atomic<std::size_t> count_ = 0;  // of entries_, for those who look in vain
  // One thread that takes nobody's turn away: whoever is about to hear of the sandbox comes first.
  Errands errands_{1, kMost, Errands::Rank::background};
};

}  // namespace hearth::gateway
