// Warm sandboxes for teams that use a public template of somebody else's (docs/adr/0029).
//
// The first create of a team starts cold; then a small pool of that template is made in the team's
// own namespace, and later creates are warm. Sandboxes never change their namespace, so teams share
// templates and nothing else. A pool that its team has not created from for a while goes, and so
// does one whose template is gone or public no more. One that somebody has changed is his.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "e2b/core.h"
#include "reconcile/reconciler.h"

namespace hearth::reconcile {
class Controller;
}

namespace hearth::e2b {

struct Birth;

// Keys are those of pools.
class TeamPools final : public reconcile::Reconciler {
 public:
  // The core must outlive it.
  explicit TeamPools(Core& core) : core_(core) {}

  // Before the manager's caches start.
  void add_to(reconcile::Manager& manager);

  // Somebody has got a sandbox of this template. Nothing comes of it where the template is his own
  // team's, or he has a pool of his own for it. Does not block. Thread-safe.
  void note_use(const Birth& birth, const Json& sandbox_template);

  reconcile::Next reconcile(const model::Key& key) override;

 private:
  struct Use {
    model::Key sandbox_template;
    Time last;
  };

  std::optional<Use> find_use(const model::Key& pool) const;
  void forget(const model::Key& pool);
  bool is_usable(std::string_view ns, const model::Key& sandbox_template) const;
  reconcile::Next make(const model::Key& key, const Use& use);
  reconcile::Next keep(const model::Key& key, const Json& pool);
  Duration time_left(const Use& use) const;
  void remove(const Json& pool);

  Core& core_;
  reconcile::Controller* controller_ = nullptr;
  mutable std::mutex mutex_;        // guards uses_
  std::map<model::Key, Use> uses_;  // by pool
};

}  // namespace hearth::e2b
