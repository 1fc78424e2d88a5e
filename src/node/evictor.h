// Watches what this machine has left, and ends pods before it has nothing: one at a time, as
// node/pressure.h chooses.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "node/pressure.h"
#include "runtime/runtime.h"

namespace hearth::node {

struct EvictorOptions {
  Thresholds thresholds;
  std::function<Supplies()> supplies;
  // Called with a pod that has to go, and why.
  std::function<void(const Json& pod, const std::string& message)> evict;
  // A supply counts as short for so long after it was: who was evicted is not let in again at once.
  Duration calm = std::chrono::seconds(30);
};

// Used by one thread.
class Evictor {
 public:
  // `pods` are those of this node. All must outlive it.
  Evictor(runtime::Runtime& runtime, const client::WatchCache& pods, const Clock& clock,
          EvictorOptions options);

  // Looks, does what has to be done, and says what is short. Throws Error.
  NodePressure look();

 private:
  std::vector<PodUse> read_use(const std::vector<client::Object>& pods);
  void relieve(Supply supply, const Amount& amount);

  runtime::Runtime& runtime_;
  const client::WatchCache& pods_;
  const Clock& clock_;
  const EvictorOptions options_;
  PerSupply<std::optional<Time>> short_since_;  // last seen to be
  std::string victim_;                          // uid of who was told to go last
  Time told_;
};

}  // namespace hearth::node
