// What keeps one team from taking everything: how many sandboxes run, how fast new ones come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "tenants/api_keys.h"

namespace hearth::e2b {

// How many sandboxes run for each namespace, from the cache, and those that are being made.
// Thread-safe.
class Census {
 public:
  // Before the cache starts.
  explicit Census(client::WatchCache& sandboxes);
  Census(const Census&) = delete;
  Census& operator=(const Census&) = delete;
  ~Census() = default;

  // A place for one that is about to run; given back when the cache shows it, or there is none.
  class Place {
   public:
    Place(Census& census, std::string ns) : census_(&census), ns_(std::move(ns)) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { census_->leave(ns_); }

   private:
    Census* census_;
    std::string ns_;
  };

  // Throws Refusal(429) when the team has as many as it may.
  [[nodiscard]] Place admit(const tenants::KeyHolder& holder);
  // The same for a namespace and a number.
  [[nodiscard]] Place admit(const std::string& ns, std::int64_t most);
  std::size_t running(std::string_view ns) const;

 private:
  struct Count {
    std::set<std::string, std::less<>> names;
    std::size_t coming = 0;
  };

  void see(const model::Json& sandbox);
  void forget(const model::Json& sandbox);
  void leave(const std::string& ns);

  mutable std::mutex mutex_;  // guards counts_
  std::map<std::string, Count, std::less<>> counts_;
};

// Creates a second of each team: a bucket that holds as many as come in a second. Thread-safe.
class Rates {
 public:
  explicit Rates(const Clock& clock) : clock_(clock) {}

  // Throws Refusal(429) with Retry-After.
  void admit(const tenants::KeyHolder& holder);

 private:
  struct Bucket {
    double tokens = 0;
    Time filled;
  };

  const Clock& clock_;
  std::mutex mutex_;  // guards buckets_
  std::map<std::string, Bucket, std::less<>> buckets_;
};

}  // namespace hearth::e2b
