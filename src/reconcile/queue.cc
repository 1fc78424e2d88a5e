#include "reconcile/queue.h"

#include <algorithm>
#include <random>

namespace hearth::reconcile {
namespace {

// Keys that failed together need not come back together.
Duration jittered(Duration pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> factor(0.9, 1.0);
  return std::chrono::duration_cast<Duration>(pause * factor(random));
}

Duration pause_after(unsigned failures, const QueueOptions& options) {
  Duration pause = options.first_pause;
  for (unsigned i = 0; i < failures && pause < options.most_pause; ++i) pause *= 2;
  return std::min(pause, options.most_pause);
}

// One of these is not an urgent one's, if anybody else is due.
constexpr unsigned kTurns = 8;
// More usual ones than this that are due are a backlog, which must not grow: of four turns three
// are theirs. An end takes three looks of a node, a birth one.
constexpr std::size_t kBacklog = 512;
constexpr unsigned kTurnsBehind = 4;

}  // namespace

void Queue::add(const model::Key& key) {
  const Rank rank = rank_of(key);
  const std::lock_guard lock(mutex_);
  add_locked(find_or_make_locked(key, rank));
}

void Queue::add_after(const model::Key& key, Duration pause) {
  const Rank rank = rank_of(key);
  const std::lock_guard lock(mutex_);
  add_after_locked(find_or_make_locked(key, rank), pause);
}

Duration Queue::add_failed(const model::Key& key) {
  const Rank rank = rank_of(key);
  const std::lock_guard lock(mutex_);
  const auto item = find_or_make_locked(key, rank);
  const Duration pause = jittered(pause_after(item->second.failures, options_));
  ++item->second.failures;
  if (options_.metrics.retried != nullptr) options_.metrics.retried->add();
  add_after_locked(item, pause);
  return pause;
}

void Queue::forget(const model::Key& key) {
  const std::lock_guard lock(mutex_);
  const auto item = items_.find(key);
  if (item == items_.end()) return;
  item->second.failures = 0;
  drop_if_idle_locked(item);
}

std::optional<model::Key> Queue::take(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    promote_due_locked();
    if (is_any_due_locked()) return take_locked();
    wait_locked(lock, stop);
  }
  // Whoever goes may have been woken for work that others must do now.
  wake_one_locked();
  return std::nullopt;
}

void Queue::done(const model::Key& key) {
  const std::lock_guard lock(mutex_);
  const auto item = items_.find(key);
  if (item == items_.end()) return;
  item->second.is_taken = false;
  if (item->second.is_queued) {
    enqueue_locked(item);
    return wake_one_locked();
  }
  drop_if_idle_locked(item);
}

std::size_t Queue::size() const {
  const std::lock_guard lock(mutex_);
  return due_count_;
}

Rank Queue::rank_of(const model::Key& key) const {
  return options_.rank_of ? options_.rank_of(key) : Rank::usual;
}

Queue::Items::iterator Queue::find_or_make_locked(const model::Key& key, Rank rank) {
  const auto item = items_.try_emplace(key).first;
  item->second.rank = rank;
  return item;
}

void Queue::add_locked(Items::iterator item) {
  if (item->second.later) later_.erase(*item->second.later);
  item->second.later.reset();
  if (item->second.is_queued) return;
  item->second.is_queued = true;
  if (options_.metrics.added != nullptr) options_.metrics.added->add();
  if (item->second.is_taken) return;
  enqueue_locked(item);
  wake_one_locked();
}

void Queue::add_after_locked(Items::iterator item, Duration pause) {
  if (pause <= Duration::zero()) return add_locked(item);
  if (item->second.is_queued) return;
  const Moment at = std::chrono::steady_clock::now() + pause;
  if (item->second.later) {
    if ((*item->second.later)->first <= at) return;
    later_.erase(*item->second.later);
  }
  item->second.later = later_.emplace(at, item);
  const bool is_first = *item->second.later == later_.begin();
  if (!is_first) return;
  if (has_timekeeper_) {
    clock_changed_.notify_one();
  } else {
    changed_.notify_one();
  }
}

void Queue::enqueue_locked(Items::iterator item) {
  item->second.since = std::chrono::steady_clock::now();
  due_[static_cast<std::size_t>(item->second.rank)].push_back(item);
  ++due_count_;
  note_depth_locked();
}

void Queue::note_depth_locked() const {
  if (options_.metrics.depth != nullptr) {
    options_.metrics.depth->set(static_cast<double>(due_count_));
  }
}

// Of somebody who is due.
Rank Queue::next_rank_locked() {
  const auto is_due = [this](Rank rank) { return !due_[static_cast<std::size_t>(rank)].empty(); };
  if (is_due(Rank::urgent)) {
    const bool is_anybody_else = is_due(Rank::usual) || is_due(Rank::idle);
    if (!is_anybody_else || ++turns_ % kTurns != 0) return Rank::urgent;
  }
  if (!is_due(Rank::idle)) return Rank::usual;
  if (!is_due(Rank::usual)) return Rank::idle;
  const bool is_behind = due_[static_cast<std::size_t>(Rank::usual)].size() > kBacklog;
  return ++others_turns_ % (is_behind ? kTurnsBehind : 2) == 0 ? Rank::idle : Rank::usual;
}

model::Key Queue::take_locked() {
  auto& due = due_[static_cast<std::size_t>(next_rank_locked())];
  const auto item = due.front();
  due.pop_front();
  --due_count_;
  note_depth_locked();
  item->second.is_queued = false;
  item->second.is_taken = true;
  if (options_.metrics.waited != nullptr) {
    options_.metrics.waited->observe(std::chrono::steady_clock::now() - item->second.since);
  }
  wake_one_locked();
  return item->first;
}

void Queue::promote_due_locked() {
  if (later_.empty()) return;
  const Moment now = std::chrono::steady_clock::now();
  while (!later_.empty() && later_.begin()->first <= now) add_locked(later_.begin()->second);
}

void Queue::wait_locked(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  if (!needs_timekeeper_locked()) {
    ++idle_;
    changed_.wait(lock, stop, [this] { return is_any_due_locked() || needs_timekeeper_locked(); });
    --idle_;
    return;
  }
  has_timekeeper_ = true;
  const Moment until = later_.begin()->first;
  clock_changed_.wait_until(lock, stop, until, [&] {
    return is_any_due_locked() || later_.empty() || later_.begin()->first < until;
  });
  has_timekeeper_ = false;
}

// Each who takes a key wakes the next while there is something to do, so that one call for each
// key is enough.
void Queue::wake_one_locked() {
  if (!is_any_due_locked() && !needs_timekeeper_locked()) return;
  if (idle_ > 0) {
    changed_.notify_one();
  } else if (has_timekeeper_) {
    clock_changed_.notify_one();
  }
}

void Queue::drop_if_idle_locked(Items::iterator item) {
  const Item& known = item->second;
  if (known.is_queued || known.is_taken || known.later || known.failures > 0) return;
  items_.erase(item);
}

}  // namespace hearth::reconcile
