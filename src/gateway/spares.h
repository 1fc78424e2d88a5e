// Connections to envd in sandboxes that nobody has yet: whoever is given one finds it connected,
// and its guest with threads that wait for the first request.
//
// Each costs two descriptors here and in its guest a few pages: only so many are kept. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/clock.h"
#include "base/guarded.h"
#include "gateway/dialler.h"
#include "gateway/errands.h"
#include "gateway/route.h"

namespace hearth::metrics {
class Gauge;
}

namespace hearth::gateway {

class Spares {
 public:
  static constexpr std::size_t kMost = 256;

  // Both must outlive it. `made` tells how many there are; null: nobody counts.
  Spares(const Dialler& dialler, metrics::Gauge* made) : dialler_(dialler), made_(made) {}

  // Returns at once. Nothing happens when it is kept already, or too many are.
  void keep(const RoutePtr& route);
  bool has(const Route& route) const;
  // What is there of it, and nothing is kept any longer.
  Dialled take(const Route& route);
  // Closes those that are not quiet, and makes those anew that are as old as `age`: servers lose
  // patience with a client that says nothing.
  void sweep(Duration age);
  // Idempotent.
  void stop() { errands_.stop(); }

 private:
  struct Entry {
    RoutePtr route;
    std::chrono::steady_clock::time_point since = {};
    Dialled dialled = {};  // connected, or still to come
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;  // by Route::serial

  void dial(const RoutePtr& route);
  void count(int change) const;

  const Dialler& dialler_;
  metrics::Gauge* const made_;
  Guarded<Entries> entries_;
  // One thread that takes nobody's turn away, and another than those who are about to be asked for
  // wait for: a pool that is filled up has many.
  Errands errands_{1, kMost, Errands::Rank::background};
};

}  // namespace hearth::gateway
