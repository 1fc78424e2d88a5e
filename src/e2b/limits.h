// What keeps one team from taking everything: how many sandboxes run, how fast new ones come.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <forward_list>
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

// How many sandboxes run for each namespace: those that the cache shows, and those that are being
// made or go on. One that is both counts once. Thread-safe.
class Census {
 public:
  // Before the cache starts.
  explicit Census(client::WatchCache& sandboxes);
  Census(const Census&) = delete;
  Census& operator=(const Census&) = delete;
  ~Census() = default;

  // A place for one that is about to run; given back when the cache shows it, or there is none.
  // One thread at a time has it.
  class Place {
   public:
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { census_.leave(*this); }

    // Which sandbox it is for, before the cache can show that one as running. The last word counts.
    // Takes no lock: every create from a pool passes here.
    void name(std::string_view sandbox);

   private:
    friend class Census;
    // Enters; with the census' lock held.
    Place(Census& census, std::string ns, std::string_view sandbox);

    Census& census_;
    const std::string ns_;
    std::forward_list<std::string> names_;  // whoever reads one may still do so after the next
    std::atomic<const std::string*> name_ = nullptr;
  };

  // Throws Refusal(429) when the team has as many as it may. `sandbox` may be empty: not known yet.
  [[nodiscard]] Place admit(const tenants::KeyHolder& holder, std::string_view sandbox = {});
  // The same for a namespace and a number.
  [[nodiscard]] Place admit(const std::string& ns, std::int64_t most,
                            std::string_view sandbox = {});
  std::size_t running(std::string_view ns) const;

 private:
  struct Count {
    std::set<std::string, std::less<>> names;
    std::set<const Place*> coming;
  };

  void see(const model::Json& sandbox);
  void forget(const model::Json& sandbox);
  void leave(const Place& place);
  static std::size_t count_others(const Count& count, std::string_view sandbox);

  mutable std::mutex mutex_;  // guards counts_; a Place in it lives until it has left
  std::map<std::string, Count, std::less<>> counts_;
};

// Creates a second of each team, and of each key that may do less: buckets that hold as many as
// come in a second. Thread-safe.
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

  // With the lock held.
  Bucket& fill(const std::string& whose, double rate, Time now);

  const Clock& clock_;
  std::mutex mutex_;  // guards buckets_
  std::map<std::string, Bucket, std::less<>> buckets_;
};

}  // namespace hearth::e2b
