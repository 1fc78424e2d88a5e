// What has to happen to a sandbox without anybody asking: it is killed or paused when its time is
// over, its pod gets its outfit again after a restart, and its images go with it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "e2b/core.h"
#include "reconcile/reconciler.h"

namespace hearth::reconcile {
class Manager;
}

namespace hearth::e2b {

class Keeper final : public reconcile::Reconciler {
 public:
  // The core must outlive it.
  explicit Keeper(Core& core) : core_(core) {}

  // Before the manager's caches start.
  void add_to(reconcile::Manager& manager);

  reconcile::Next reconcile(const model::Key& key) override;

 private:
  // Its own last words: what is to be cleared up after it.
  void saw_deleted(const Json& sandbox);
  void clear_up(const model::Key& key);
  reconcile::Next end_its_time(const Json& sandbox);
  reconcile::Next end_lost(const Json& sandbox);
  void pause_now(const Json& sandbox);
  bool pause_files(const Json& sandbox);
  void end_now(const Json& sandbox);
  void keep_outfit(const Json& sandbox);

  Core& core_;
  std::mutex mutex_;                                          // guards leftovers_
  std::map<model::Key, std::vector<std::string>> leftovers_;  // images of sandboxes that are gone
};

}  // namespace hearth::e2b
