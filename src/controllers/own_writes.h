// What a controller wrote and its cache has not shown yet, so that the next look at an object does
// not go back in time and do the same again.
//
// Keyed by the object's own namespace and name. Told of every event of the cache, it forgets what
// the cache has; what never shows is given up after a while, so that a lost event costs a second
// and no more. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "model/meta.h"

namespace hearth::controllers {

class OwnWrites {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(1);

  explicit OwnWrites(const Clock& clock) : clock_(clock) {}

  // What the server answered to a write.
  client::Object remember(const client::Answer& written);
  // The newer of what the cache has (null for nothing) and what was written.
  client::Object newest(const model::Key& key, const client::Object& cached);
  // Whether this version of the object was written here, and the cache is only now showing it.
  bool is_own(const model::Json& object) const;

  // The cache shows it, or the last of it.
  void seen(const model::Json& object);
  void forget(const model::Key& key);
  std::size_t size() const;

 private:
  struct Written {
    client::Object object;
    std::vector<std::uint64_t> versions;  // rising
    Time at;
  };

  const Clock& clock_;
  mutable std::mutex mutex_;  // guards written_
  std::map<model::Key, Written> written_;
};

}  // namespace hearth::controllers
