// Keys that wait for a worker: each at most once, never with two workers at a time, and after a
// failure not before its pause is over.
//
// A key that is added while a worker has it comes again when that one is done. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>

#include "base/clock.h"
#include "model/meta.h"

namespace hearth::reconcile {

struct QueueOptions {
  // The pause doubles with each failure of a key in a row. Jitter takes up to a tenth off it.
  Duration first_pause = std::chrono::milliseconds(5);
  Duration most_pause = std::chrono::seconds(1000);
};

class Queue {
 public:
  explicit Queue(QueueOptions options = {}) : options_(options) {}

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

  void add_locked(const model::Key& key);
  void promote_due_locked(Moment now);

  const QueueOptions options_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  std::deque<model::Key> due_;
  std::set<model::Key> queued_;  // in due_, or to come back after done()
  std::set<model::Key> taken_;
  std::multimap<Moment, model::Key> later_;
  std::map<model::Key, Moment> when_;  // of those in later_
  std::map<model::Key, unsigned> failures_;
};

}  // namespace hearth::reconcile
