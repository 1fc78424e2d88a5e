#include "controllers/sandbox_reconciler.h"

#include <utility>

#include "client/kinds.h"
#include "controllers/pass_span.h"
#include "controllers/sandbox_metrics.h"
#include "controllers/sandbox_pass_internal.h"
#include "controllers/sandbox_pod.h"
#include "model/agent_sandbox.h"
#include "reconcile/controller.h"
#include "reconcile/manager.h"

namespace hearth::controllers {
namespace {

std::vector<std::string> tracked_names(const Json& pod) {
  const std::string_view hash = model::label_of(pod, model::kNameHashLabel);
  if (hash.empty()) return {};
  std::string value(model::namespace_of(pod));
  value += '/';
  value += hash;
  return {std::move(value)};
}

// What the cache shows need not be remembered.
client::CacheHandlers watcher_of(OwnWrites& writes) {
  const auto seen = [&writes](const Object& object) { writes.seen(*object); };
  return {.on_add = seen,
          .on_update = [seen](const Object&, const Object& now) { seen(now); },
          .on_delete = seen};
}

}  // namespace

std::map<std::string, client::IndexFunction, std::less<>> pod_indexes() {
  return {{std::string(kPodsByNameHash), tracked_names}};
}

SandboxCaches sandbox_caches(reconcile::Manager& manager) {
  client::WatchCacheOptions pods;
  pods.indexes = pod_indexes();
  return {.sandboxes = manager.cache(client::kSandboxes),
          .pods = manager.cache(client::kPods, std::move(pods)),
          .services = manager.cache(client::kServices)};
}

struct SandboxReconciler::State {
  SandboxTools tools;
  metrics::Registry* metrics = nullptr;
};

SandboxReconciler::SandboxReconciler(client::Client& client, const SandboxCaches& caches,
                                     const Clock& clock, reconcile::EventRecorder& events,
                                     const Options& options, metrics::Registry* metrics)
    : state_(new State{.tools = {.client = client,
                                 .caches = caches,
                                 .clock = clock,
                                 .events = events,
                                 .options = options,
                                 .transitions = SandboxTransitions(metrics)},
                       .metrics = metrics}) {
  // Before the controller hears of a pod's end, so that no pass takes it for one that is to come.
  caches.pods.add_handlers(watcher_of(state_->tools.pods));
  caches.services.add_handlers(watcher_of(state_->tools.services));
  if (metrics != nullptr) collect_sandboxes(*metrics, caches.sandboxes);
}

SandboxReconciler::~SandboxReconciler() = default;

reconcile::Next SandboxReconciler::reconcile(const model::Key& key) {
  SandboxTools& tools = state_->tools;
  const Object cached = tools.caches.sandboxes.find(key.ns, key.name);
  if (!cached || model::is_deleting(*cached)) {
    tools.forget(key);
    return reconcile::kWhenChanged;
  }
  const Object sandbox = tools.sandboxes.newest(key, cached);
  tracing::Span span(tools.options.tracer, "ReconcileSandbox", tracing::context_of(*sandbox));
  describe(span, "sandbox", *sandbox);
  return traced(span, [&] { return SandboxPass(tools, sandbox, span).run(); });
}

reconcile::Controller& SandboxReconciler::add_to(reconcile::Manager& manager) {
  SandboxTools& tools = state_->tools;
  // Whoever waits for a sandbox to start waits for nobody else; what runs can be looked after
  // later.
  const auto is_up = [&sandboxes = tools.caches.sandboxes](const model::Key& key) {
    const client::Object found = sandboxes.find(key.ns, key.name);
    return found && model::is_condition_true(*found, "Ready");
  };
  reconcile::Controller& controller = manager.add(*this, {.name = "sandbox",
                                                          .workers = tools.options.sandbox_workers,
                                                          .is_background = true,
                                                          .patience = tools.options.patience,
                                                          .can_wait = is_up,
                                                          .metrics = state_->metrics});
  OwnWrites& own = tools.sandboxes;
  // Nothing is to be done about what was just done.
  controller.watch(tools.caches.sandboxes,
                   [&own](const Json&, const Json& now) { return !own.is_own(now); });
  tools.caches.sandboxes.add_handlers(watcher_of(own));
  controller.watch_owned(tools.caches.pods, model::kCoreGroup, "Sandbox", concerns_sandbox);
  controller.watch_owned(tools.caches.services, model::kCoreGroup, "Sandbox");
  return controller;
}

}  // namespace hearth::controllers
