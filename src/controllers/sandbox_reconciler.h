// Makes the cluster agree with what one Sandbox asks for: its volumes, its pod, its Service, and a
// status that tells of them.
//
//   Running ──▶ PVCs, pod, Service ──▶ Ready          a pod that is gone is made again
//   Suspended ─▶ pod deleted, the rest stays
//   expired ──▶ status says so ──▶ pod and Service deleted ──▶ the object too, or it stays
//
// Whose a child is, is decided by the uid of its controller reference; names and labels only find
// candidates. Reads come from caches; what was written and is not there yet is remembered, so that
// a pass right after a write does nothing twice.
#pragma once

#include <memory>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "controllers/options.h"
#include "reconcile/reconciler.h"

namespace hearth::reconcile {
class Controller;
class EventRecorder;
class Manager;
}  // namespace hearth::reconcile

namespace hearth::metrics {
class Registry;
}

namespace hearth::controllers {

struct SandboxCaches {
  client::WatchCache& sandboxes;
  client::WatchCache& pods;  // with the index of pod_indexes()
  client::WatchCache& services;
};

// Pods by their Sandbox's tracking label, for WatchCacheOptions::indexes.
std::map<std::string, client::IndexFunction, std::less<>> pod_indexes();
// The manager's, made with what they need if nobody has asked for them before.
SandboxCaches sandbox_caches(reconcile::Manager& manager);

class SandboxReconciler final : public reconcile::Reconciler {
 public:
  // Everything must outlive it; `metrics` may be null. The caches have not been started yet, and
  // are stopped before it goes: they tell it what they see.
  SandboxReconciler(client::Client& client, const SandboxCaches& caches, const Clock& clock,
                    reconcile::EventRecorder& events, const Options& options,
                    metrics::Registry* metrics = nullptr);
  ~SandboxReconciler() override;

  reconcile::Next reconcile(const model::Key& key) override;

  // Its controller, with everything that makes it look: Sandboxes, and the pods and Services that
  // they control. Once, before the manager starts.
  reconcile::Controller& add_to(reconcile::Manager& manager);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::controllers
