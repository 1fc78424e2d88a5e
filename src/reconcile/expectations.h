// What a controller has asked for and not yet seen in its cache. Until then it must not count what
// is there and ask for more: the cache is behind.
//
// One set for each key of the controller. What does not arrive within `patience` is given up, so
// that a lost event costs time and not the controller. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/meta.h"

namespace hearth::reconcile {

class Expectations {
 public:
  explicit Expectations(const Clock& clock, Duration patience = std::chrono::minutes(5))
      : clock_(clock), patience_(patience) {}

  // Before the calls are made. False, and nothing is raised, while earlier ones are open.
  bool expect_creations(const model::Key& key, unsigned count);
  // By uid.
  void expect_deletion(const model::Key& key, std::string_view uid);

  // Seen in the cache, or the call failed.
  void creation_seen(const model::Key& key);
  void deletion_seen(const model::Key& key, std::string_view uid);

  bool are_met(const model::Key& key) const;
  // Whether this uid's end was asked for and not seen.
  bool expects_deletion_of(const model::Key& key, std::string_view uid) const;
  // The key's object is gone.
  void forget(const model::Key& key);

 private:
  struct Open {
    unsigned creations = 0;
    std::set<std::string, std::less<>> deletions;
    Time raised;
  };

  bool is_met(const Open& open) const;

  const Clock& clock_;
  const Duration patience_;
  mutable std::mutex mutex_;  // guards open_
  std::map<model::Key, Open> open_;
};

}  // namespace hearth::reconcile
