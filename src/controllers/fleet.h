// All controllers of our kinds, on one set of caches: what `hearth controller` runs on any cluster
// and `hearth up` on its own.
#pragma once

#include <memory>
#include <stop_token>

#include "base/clock.h"
#include "client/welcome.h"
#include "controllers/options.h"

namespace hearth::metrics {
class Registry;
}
namespace hearth::pool {
class Allocator;
class Outfitter;
}  // namespace hearth::pool
namespace hearth::reconcile {
class Manager;
}

namespace hearth::controllers {

struct FleetOptions {
  Options controllers;
  bool extensions = true;  // claims, pools and templates, not Sandboxes alone
  // Who reaches into running sandboxes; null: nobody.
  pool::Outfitter* outfitter = nullptr;
};

class Fleet {
 public:
  // All must outlive it; nobody may render the metrics after it is gone. Nothing runs yet.
  Fleet(client::Client& client, const Clock& clock, metrics::Registry& metrics,
        FleetOptions options);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet();

  // As Manager's: caches first, which anybody may have, then what acts.
  void start_caches(Duration patience = std::chrono::minutes(2), const std::stop_token& stop = {});
  void start_controllers();
  // Idempotent.
  void stop();
  bool is_synced() const;

  // To share its caches, and to add controllers, before it starts.
  reconcile::Manager& manager();
  // Null without extensions.
  pool::Allocator* allocator();
  // For a server in this process (client/welcome.h); empty without extensions. Only as long as this
  // lives.
  client::Welcomer claim_welcomer();

 private:
  struct Extensions;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::controllers
