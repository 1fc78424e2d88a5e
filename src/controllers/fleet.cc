#include "controllers/fleet.h"

#include <optional>

#include "client/kinds.h"
#include "controllers/claim_reconciler.h"
#include "controllers/pool_index.h"
#include "controllers/sandbox_reconciler.h"
#include "controllers/template_reconciler.h"
#include "controllers/warm_pool_reconciler.h"
#include "metrics/registry.h"
#include "model/agent_sandbox.h"
#include "pool/allocator.h"
#include "reconcile/event_recorder.h"
#include "reconcile/manager.h"

namespace hearth::controllers {
namespace {

void tell_build(metrics::Registry& metrics) {
  const metrics::Labels labels{{"git_version", "v" HEARTH_VERSION},
                               {"git_commit", "unknown"},
                               {"build_date", "unknown"},
                               {"go_version", "none"},
                               {"compiler", "clang"},
                               {"platform", "linux/amd64"}};
  metrics.gauge("agent_sandbox_build_info", "Always 1; the labels say what was built.", labels)
      .set(1);
}

client::WatchCacheOptions both(client::WatchCacheOptions one, client::WatchCacheOptions other) {
  one.indexes.merge(other.indexes);
  return one;
}

}  // namespace

// Claims, pools and templates, and the allocator between them.
struct Fleet::Extensions {
  Extensions(reconcile::Manager& manager, const Clock& clock, metrics::Registry& metrics,
             const FleetOptions& options)
      : claim_cache(manager.cache(client::kSandboxClaims, claim_cache_options())),
        pool_cache(manager.cache(client::kSandboxWarmPools, warm_pool_cache_options())),
        template_cache(manager.cache(client::kSandboxTemplates)),
        sandbox_cache(manager.cache(
            client::kSandboxes, both(claim_sandbox_cache_options(), pool_sandbox_cache_options()))),
        claim_events(manager.client(), clock,
                     {.controller = "sandboxclaim-controller",
                      .is_silent = !options.controllers.claim_events}),
        pool_events(manager.client(), clock, {.controller = "sandboxwarmpool-controller"}),
        allocator(sandbox_cache, metrics),
        claims({.client = manager.client(),
                .claims = claim_cache,
                .sandboxes = sandbox_cache,
                .pools = pool_cache,
                .templates = template_cache,
                .allocator = allocator,
                .events = claim_events,
                .metrics = metrics,
                .clock = clock,
                .outfitter = options.outfitter},
               options.controllers),
        pools(manager.client(),
              {.pools = pool_cache, .templates = template_cache, .sandboxes = sandbox_cache}, clock,
              pool_events, options.controllers),
        templates(manager.client(), template_cache, manager.cache(client::kNetworkPolicies),
                  options.controllers.tracer) {
    const Options& wanted = options.controllers;
    // What was claimed is known to who claimed it.
    manager.let_lag(sandbox_cache);
    claims.watch(manager.add(
        claims, {.name = "sandboxclaim", .workers = wanted.claim_workers, .is_urgent = true}));
    // A pool with nothing left to give waits for nobody: those who claim wait for it.
    const auto has_some = [this](const model::Key& pool) {
      return allocator.stock(pool).ready > 0;
    };
    pools.watch(manager.add(pools, {.name = "sandboxwarmpool",
                                    .workers = wanted.pool_workers,
                                    .is_background = true,
                                    .patience = wanted.patience,
                                    .can_wait = has_some}));
    templates.watch(manager.add(
        templates,
        {.name = "sandboxtemplate", .workers = wanted.template_workers, .is_background = true}));
    pools.collect(metrics);
  }

  client::WatchCache& claim_cache;
  client::WatchCache& pool_cache;
  client::WatchCache& template_cache;
  client::WatchCache& sandbox_cache;
  reconcile::EventRecorder claim_events;
  reconcile::EventRecorder pool_events;
  pool::Allocator allocator;
  ClaimReconciler claims;
  WarmPoolReconciler pools;
  TemplateReconciler templates;
};

// Reconcilers are made after the manager whose caches they read, and go before it: nothing of it
// runs any more by then.
struct Fleet::State {
  State(client::Client& client, const Clock& clock, metrics::Registry& metrics, FleetOptions given)
      : options(std::move(given)),
        events(
            client, clock,
            {.controller = "sandbox-controller", .is_silent = !options.controllers.sandbox_events}),
        manager(client, &metrics),
        sandboxes(client, caches(), clock, events, options.controllers, &metrics) {
    sandboxes.add_to(manager);
    if (options.extensions) extensions.emplace(manager, clock, metrics, options);
  }

  SandboxCaches caches() {
    if (options.controllers.caches_by_label) {
      for (const client::ResourceId& resource : {client::kPods, client::kServices}) {
        manager.cache(resource, {.label_selector = std::string(model::kNameHashLabel)});
      }
    }
    return sandbox_caches(manager);
  }

  const FleetOptions options;
  reconcile::EventRecorder events;
  reconcile::Manager manager;
  SandboxReconciler sandboxes;
  std::optional<Extensions> extensions;
};

Fleet::Fleet(client::Client& client, const Clock& clock, metrics::Registry& metrics,
             FleetOptions options)
    : state_(std::make_unique<State>(client, clock, metrics, std::move(options))) {
  tell_build(metrics);
}

Fleet::~Fleet() {
  stop();
}

void Fleet::start_caches(Duration patience, const std::stop_token& stop) {
  state_->manager.start_caches(patience, stop);
}

void Fleet::start_controllers() {
  if (state_->extensions) state_->extensions->claims.begin();
  state_->manager.start_controllers();
}

void Fleet::stop() {
  state_->manager.stop();
  if (state_->extensions) state_->extensions->claims.stop();
}

bool Fleet::is_synced() const {
  return state_->manager.is_synced();
}

reconcile::Manager& Fleet::manager() {
  return state_->manager;
}

pool::Allocator* Fleet::allocator() {
  return state_->extensions ? &state_->extensions->allocator : nullptr;
}

client::Welcomer Fleet::claim_welcomer() {
  if (!state_->extensions) return {};
  return [&claims = state_->extensions->claims,
          &right = state_->manager.right_of_way()](const model::Json& claim) {
    // Until it is kept: those who fill the pool up hear of it before the claim's own worker does.
    auto urgent = std::make_shared<reconcile::RightOfWay::Urgent>(right);
    std::optional<client::Welcome> welcome = claims.welcome(claim);
    if (welcome)
      welcome->kept = [urgent, kept = std::move(welcome->kept)](const client::Object& made,
                                                                const client::Object& other) {
        kept(made, other);
      };
    return welcome;
  };
}

}  // namespace hearth::controllers
