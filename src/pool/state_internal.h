// What the allocator knows: every member of every pool, where it is, and who waits.
//
// A member is in one place at a time. One that is free was offered to everybody in line before it
// went on its shelf: so whoever takes it from there passes nobody.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pool/allocator.h"
#include "pool/figures_internal.h"
#include "pool/line_internal.h"
#include "pool/shelf_internal.h"

namespace hearth::pool {

enum class Place {
  nowhere,   // not to be offered: somebody's, or put aside
  starting,  // without an address
  unready,
  ready,
  held,
};

struct Member {
  Object sandbox;  // the newest that is known, from the cache or from the server
  model::Key pool;
  std::string node;
  Age age;
  Place place = Place::nowhere;
  bool is_idle = false;
  bool is_seen = false;    // the cache has shown this version
  bool is_aside = false;   // until there is another version
  std::uint64_t hold = 0;  // its number; 0: none
};

// What is to be told once the lock is free.
struct Delivery {
  WaiterPtr waiter;
  std::optional<Hold> hold;
};
using Deliveries = std::vector<Delivery>;

class AllocatorState : public std::enable_shared_from_this<AllocatorState> {
 public:
  explicit AllocatorState(metrics::Registry& registry) : figures_(registry) {}

  void see(const Object& now) { learn(now, /*is_from_cache=*/true); }
  void see_gone(const Object& last);
  // What the server itself said: often newer than the cache.
  void learn(const Object& now, bool is_from_cache);

  std::optional<Hold> take(const Wish& wish);
  void wait(const WaiterPtr& waiter);
  void leave(const Waiter& waiter);
  void give_back(const Hold& hold);
  void keep(const Hold& hold);
  // The newest version of what is held; null when it is known to be gone or somebody's.
  Object newest(const Hold& hold) const;
  void drop(const model::Key& pool);
  void note_commit(const Hold& hold, Duration time, bool is_won);

  Stock stock(const model::Key& pool) const;
  std::vector<std::pair<model::Key, Stock>> stocks() const;

  // The timer's thread.
  void watch_deadlines(const std::stop_token& stop);
  // Everybody is served with nothing.
  void close();

 private:
  struct Pool {
    Shelf ready;
    Shelf unready;
    std::size_t starting = 0;
    std::size_t held = 0;
    Line line;

    bool is_empty() const {
      return ready.size() + unready.size() + starting + held + line.size() == 0;
    }
    Stock stock() const { return {ready.size(), unready.size(), starting, held, line.size()}; }
  };
  using Members = std::unordered_map<std::string, Member>;

  // All of these with the lock held.
  void lift(Member& member);
  void put(Member& member, Deliveries& deliveries);
  void put_in(Member& member, Place place);
  Hold hold(Member& member);
  void release(const Hold& hold, bool is_aside, Deliveries& deliveries);
  Member* find_held(const Hold& hold);
  std::optional<Hold> take_locked(const Wish& wish);
  void leave_locked(const Waiter& waiter);
  void serve_with_nothing(const std::vector<WaiterPtr>& waiters, Deliveries& deliveries);

  // Without it.
  static void deliver(Deliveries deliveries);

  mutable std::mutex mutex_;                                         // guards all below
  std::condition_variable_any earlier_;                              // another deadline is the next
  Members members_;                                                  // by "NS/NAME"
  std::map<model::Key, Pool> pools_;                                 // none that is empty
  std::map<std::pair<Moment, std::uint64_t>, WaiterPtr> deadlines_;  // with their numbers
  std::uint64_t last_number_ = 0;
  Figures figures_;
};

}  // namespace hearth::pool
