// SandboxWarmPools: as many idle sandboxes as the pool wants, made from its template.
//
// A member that somebody takes is replaced at once: the cache's event wakes the pool. What was
// asked for and is not yet in the cache is remembered (expectations), so that a pool never makes
// more than it wants because it looked too early. Members are only ever deleted in the version that
// was judged: one that is claimed in the same moment survives.
//
// Beyond the replicas, the update strategies and the refill knobs see docs/pools.md.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/watch_cache.h"
#include "controllers/blueprint.h"
#include "controllers/options.h"
#include "controllers/pool_plan.h"
#include "controllers/pool_status_writer.h"
#include "controllers/refill.h"
#include "metrics/registry.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"
#include "reconcile/expectations.h"
#include "reconcile/reconciler.h"

namespace hearth::controllers {

// With the indexes of pool_index.h.
struct WarmPoolCaches {
  client::WatchCache& pools;      // with warm_pool_cache_options()
  client::WatchCache& templates;  //
  client::WatchCache& sandboxes;  // with pool_sandbox_cache_options()
};

class WarmPoolReconciler final : public reconcile::Reconciler {
 public:
  // All must outlive it.
  WarmPoolReconciler(client::Client& client, WarmPoolCaches caches, const Clock& clock,
                     reconcile::EventRecorder& events, const Options& options);
  ~WarmPoolReconciler() override;

  // Before the caches start. The controller must outlive the caches' threads.
  void watch(reconcile::Controller& controller);
  // agent_sandbox_warmpool_size; this and the caches must outlive the last rendering.
  void collect(metrics::Registry& registry);

  reconcile::Next reconcile(const model::Key& key) override;

  PoolStatusWriter& status_writer() { return status_writer_; }

 private:
  struct Memory;
  class Pass;

  // What is remembered about a pool between passes; only its own pass touches it.
  Memory& memory_of(const model::Key& key);
  void forget(const model::Key& key);

  // Events of the sandboxes' cache: what expectations wait for, and who is to look.
  void saw_added(reconcile::Queue& queue, const Json& sandbox);
  void saw_updated(reconcile::Queue& queue, const Json& before, const Json& now);
  void saw_deleted(reconcile::Queue& queue, const Json& sandbox);
  std::vector<model::Key> pools_of(const Json& sandbox) const;
  std::vector<metrics::Sample> count_members() const;

  client::Client& client_;
  const WarmPoolCaches caches_;
  const Clock& clock_;
  reconcile::EventRecorder& events_;
  const Options& options_;
  reconcile::Expectations expectations_;
  PoolStatusWriter status_writer_;
  std::mutex mutex_;  // guards memories_, not what is in them
  std::map<model::Key, std::unique_ptr<Memory>> memories_;
};

}  // namespace hearth::controllers
