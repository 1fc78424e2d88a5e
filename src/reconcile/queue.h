// Keys that wait for a worker: each at most once, never with two workers at a time, and after a
// failure not before its pause is over.
//
// A key that is added while a worker has it comes again when that one is done. Of several times to
// come the earliest counts, and only that: whoever looks then says when to look again. Thread-safe.
//
// Many workers wait here. A key wakes one of them; one at most watches the clock.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "metrics/registry.h"
#include "model/meta.h"

namespace hearth::reconcile {

// Each may be null: not counted.
struct QueueMetrics {
  metrics::Gauge* depth = nullptr;       // how many are due
  metrics::Counter* added = nullptr;     // keys that became due
  metrics::Counter* retried = nullptr;   // add_failed()
  metrics::Histogram* waited = nullptr;  // seconds from due to taken
};

// Who goes first of those that are due. Urgent ones do, and leave one turn in eight to the others;
// those take turns, so that a thousand of one rank do not keep one of another waiting; where
// hundreds of usual ones are due, they have three turns of four. In the order of their coming
// within a rank.
enum class Rank : std::uint8_t { urgent, usual, idle };

struct QueueOptions {
  // The pause doubles with each failure of a key in a row. Jitter takes up to a tenth off it.
  Duration first_pause = std::chrono::milliseconds(5);
  Duration most_pause = std::chrono::seconds(1000);
  QueueMetrics metrics = {};
  // Asked whenever a key is added, without a lock; what it was then counts. Empty: all are usual.
  std::function<Rank(const model::Key& key)> rank_of = {};
};

class Queue {
 public:
  explicit Queue(QueueOptions options = {}) : options_(std::move(options)) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() = default;

  void add(const model::Key& key);
  // The earliest of several wins; add() makes it now.
  void add_after(const model::Key& key, Duration pause);
  // After the pause that its failures in a row have earned; returns it.
  Duration add_failed(const model::Key& key);
  // Its failures are forgotten.
  void forget(const model::Key& key);

  // The next key, which is the caller's until done(). Nothing: stopped.
  std::optional<model::Key> take(const std::stop_token& stop);
  void done(const model::Key& key);

  // How many are due now and not taken.
  std::size_t size() const;

 private:
  using Moment = std::chrono::steady_clock::time_point;
  struct Item;
  using Items = std::map<model::Key, Item>;
  using Later = std::multimap<Moment, Items::iterator>;

  // Gone when nothing is left to know about a key.
  struct Item {
    bool is_queued = false;  // in due_, or to go there after done()
    bool is_taken = false;
    Rank rank = Rank::usual;
    unsigned failures = 0;
    Moment since{};  // in due_
    std::optional<Later::iterator> later = {};
  };

  Rank rank_of(const model::Key& key) const;
  Items::iterator find_or_make_locked(const model::Key& key, Rank rank);
  void add_locked(Items::iterator item);
  void add_after_locked(Items::iterator item, Duration pause);
  void enqueue_locked(Items::iterator item);
  void note_depth_locked() const;
  bool is_any_due_locked() const { return due_count_ > 0; }
  Rank next_rank_locked();
  model::Key take_locked();
  void promote_due_locked();
  void wait_locked(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  bool needs_timekeeper_locked() const { return !has_timekeeper_ && !later_.empty(); }
  void wake_one_locked();
  void drop_if_idle_locked(Items::iterator item);

  const QueueOptions options_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  std::condition_variable_any clock_changed_;  // for the timekeeper
  bool has_timekeeper_ = false;
  std::size_t idle_ = 0;  // who wait and are not the timekeeper
  Items items_;
  std::array<std::deque<Items::iterator>, 3> due_;  // by rank
  std::size_t due_count_ = 0;
  unsigned turns_ = 0;         // taken while somebody was urgent
  unsigned others_turns_ = 0;  // and while both others were due
  Later later_;
};

}  // namespace hearth::reconcile
