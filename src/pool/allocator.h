// Who gets which warm sandbox: the one component that hands them out, for every front door.
//
//   cache event ─▶ idle of a pool ──take()──▶ Hold ──commit(one write)──▶ somebody's
//                      ▲                        │
//                      └────── given back ◀─────┘ dropped, or the write failed
//
// It knows the idle ones from the watch cache, reserves in memory, and commits with one optimistic
// write: whoever else wants the same sandbox, in this process or another, one of the two writes
// fails. Nothing here is remembered that the objects do not say: after a crash the cache tells it
// all again. Thread-safe; holds and tickets may outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "model/meta.h"

namespace hearth::metrics {
class Registry;
}

namespace hearth::pool {

using client::Object;
using model::Json;

// Which sandbox somebody wants.
struct Wish {
  model::Key pool;  // the SandboxWarmPool
  // Whom the wish is fair to: waiters of several tenants are served in turn. Usually a namespace or
  // a team.
  std::string tenant;
  int priority = 0;  // higher first, before fairness
  // What it must be besides idle; may be empty. Called with the allocator's lock held: short, pure.
  std::function<bool(const Json& sandbox)> fits;
};

struct Stock {
  std::size_t ready = 0;     // with an address and Ready
  std::size_t unready = 0;   // with an address, not Ready
  std::size_t starting = 0;  // without an address
  std::size_t held = 0;      // reserved at this moment
  std::size_t waiting = 0;   // who stands in line
};

class AllocatorState;

// One idle sandbox that nobody else is offered while this lives. Destroying it gives it back.
class Hold {
 public:
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  Hold(Hold&& other) noexcept = default;
  Hold& operator=(Hold&& other) noexcept;
  ~Hold();

  // As the cache had it.
  const Object& sandbox() const { return sandbox_; }
  // It was handed out, or is of no use: not offered again before the cache shows another version of
  // it that is idle.
  void keep();

 private:
  friend class Allocator;
  friend class AllocatorState;
  Hold(std::shared_ptr<AllocatorState> state, Object sandbox, std::uint64_t number)
      : state_(std::move(state)), sandbox_(std::move(sandbox)), number_(number) {}

  std::shared_ptr<AllocatorState> state_;  // null: kept, or moved from
  Object sandbox_;
  std::uint64_t number_ = 0;  // no two holds have the same
};

// Called once, on any thread, without locks. It must not block.
using Served = std::function<void(std::optional<Hold> hold)>;

class Allocator {
 public:
  // Hears of sandboxes through `sandboxes`: before that cache starts. `registry` must outlive both.
  Allocator(client::WatchCache& sandboxes, metrics::Registry& registry);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  // Who waits is served with nothing.
  ~Allocator();

  // The best one there is: Ready before not, with an address always; oldest first, spread over
  // nodes. Nothing: none is free, or others wait for it. Does not block.
  std::optional<Hold> take(const Wish& wish);

  // In line for the next one. `served` hears of a hold, or of none when `patience` is over or the
  // pool is dropped. Destroying the ticket is leaving the line: then it is not called any more,
  // unless that is happening already.
  class Ticket;
  std::shared_ptr<Ticket> wait(Wish wish, Duration patience, Served served);

  Stock stock(const model::Key& pool) const;
  // Of all pools that have any, or waiters.
  std::vector<std::pair<model::Key, Stock>> stocks() const;

  // The pool is gone: its members are not offered any more, whatever becomes of them.
  void drop(const model::Key& pool);

  // The one write: a merge patch of the held sandbox, with its resourceVersion. Null when
  // somebody was faster or it is gone: then take another. Other refusals are thrown, and the
  // sandbox is given back.
  Object commit(client::Client& client, Hold hold, Json patch,
                const client::PatchOptions& options = {});

  // The same for who writes it himself, together with something else. The patch as it has to be
  // written; nothing: the sandbox is gone or somebody's by now.
  std::optional<Json> prepare(Hold& hold, Json patch) const;
  // It was written: what the sandbox has become.
  void conclude(const Hold& hold, const Object& now, Duration took);

 private:
  Object try_commit(client::Client& client, Hold& hold, Json patch,
                    const client::PatchOptions& options);

  std::shared_ptr<AllocatorState> state_;
  std::jthread timer_;  // tells those whose patience is over
};

// Whether a Sandbox may be handed out by pools at all: pool-owned, labelled, not deleting.
bool is_adoptable(const Json& sandbox);

}  // namespace hearth::pool
