// Shells made before anyone asks for them.
//
// Refilled by one thread, behind the requests: it works only when nobody has asked for anything for
// a moment, so that it never takes a processor from a request. Under steady load the pool runs dry
// and every sandbox is made when it is asked for, which costs no more in all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "runtime/shell.h"

namespace hearth::runtime {

struct PoolCounts {
  std::uint64_t ready = 0;
  std::uint64_t wanted = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
};

struct PoolOptions {
  Limits limits;              // that shells are made with
  bool with_network = false;  // they have a slot; nobody may use it yet
  unsigned size = 0;          // 0: no pool, every take() is a miss
};

// Thread-safe.
class ShellPool {
 public:
  // `maker` must outlive it.
  ShellPool(const ShellMaker& maker, const PoolOptions& options);
  ShellPool(const ShellPool&) = delete;
  ShellPool& operator=(const ShellPool&) = delete;
  // Ends what is left in it.
  ~ShellPool();

  // A shell that is ready, with the pool's limits; nothing when there is none left.
  std::optional<Shell> take();

  // To be called by whoever serves a request: the pool then waits with its own work.
  void note_request();

  PoolCounts counts() const;

  // Ends all shells, for good.
  void drain();

 private:
  void refill(const std::stop_token& stop);
  bool quiet() const;

  const ShellMaker& maker_;
  const Limits limits_;
  const bool with_network_;
  const unsigned size_;
  std::atomic<std::int64_t> last_request_ = 0;  // of the steady clock

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Shell> shells_;  // guarded by mutex_, as all below
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  std::jthread refiller_;
};

}  // namespace hearth::runtime
