// Waiting for what a cache shows, without asking again and again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "model/meta.h"

namespace hearth::e2b {

// Of one object; null for none. Called with no lock held.
using IsSo = std::function<bool(const model::Json* object)>;

// The version that a write gave, or a later one.
IsSo has_version_of(const model::Json& written);
// Versions are numbers that rise; 0 for what is none.
std::uint64_t version_number(const model::Json& object);

// What it finds is what has been told: a change is visible in the cache before the cache's handlers
// have heard of it, and whoever goes on here may rely on what they do (limits.h, kept_images.h).
class CacheWaits {
 public:
  // The cache must outlive it.
  explicit CacheWaits(client::WatchCache& cache) : cache_(cache) {}
  CacheWaits(const CacheWaits&) = delete;
  CacheWaits& operator=(const CacheWaits&) = delete;
  ~CacheWaits() = default;

  // After all others of this room who listen, before the cache starts.
  void listen();

  // The object as soon as it is so (null: there is none). Nothing when the patience is over, or
  // everything is about to stop.
  std::optional<client::Object> until(const model::Key& key, const IsSo& is_so, Duration patience);

  // Whether everything up to what this write gave has been told.
  bool has_told(std::uint64_t version) const;
  // Returns when it has, or the patience is over.
  void catch_up(std::uint64_t version, Duration patience);
  // Lets go of it then.
  void keep_until(std::uint64_t version, std::shared_ptr<void> kept);

  // Whoever waits gives up, now and later.
  void stop();

 private:
  struct Waiter {
    std::condition_variable changed;
    bool is_due = true;
  };

  // `seen` is the object, or the last of one that is gone.
  void tell(const model::Json& seen, const client::Object& now);

  client::WatchCache& cache_;
  mutable std::mutex mutex_;  // guards what follows, and what is in the waiters
  std::map<std::string, client::Object, std::less<>> told_;
  std::multimap<std::string, Waiter*, std::less<>> waiters_;
  std::uint64_t version_ = 0;  // the highest that has been told
  std::condition_variable advanced_;
  std::multimap<std::uint64_t, std::shared_ptr<void>> kept_;
  bool is_stopped_ = false;
};

// One at a time for each sandbox: who changes its life has his turn.
class Turns {
 public:
  class Turn {
   public:
    Turn(Turns& turns, model::Key key) : turns_(&turns), key_(std::move(key)) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { turns_->end(key_); }

   private:
    Turns* turns_;
    model::Key key_;
  };

  // Waits for those before.
  [[nodiscard]] Turn take(const model::Key& key);
  // Whether somebody has his turn at this moment.
  bool is_taken(const model::Key& key) const;

 private:
  void end(const model::Key& key);

  mutable std::mutex mutex_;  // guards taken_
  std::condition_variable changed_;
  std::set<model::Key> taken_;
};

}  // namespace hearth::e2b
