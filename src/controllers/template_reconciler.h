// SandboxTemplates: the network policy of the sandboxes that are made from one.
//
// A template carries the hash of its name as a label, its sandboxes do too, and the policy
// NAME-network-policy selects their pods by it. What others do to the policy is undone; a policy of
// that name that is not the template's own is never touched.
#pragma once

#include "client/watch_cache.h"
#include "reconcile/controller.h"
#include "reconcile/reconciler.h"

namespace hearth::tracing {
class Tracer;
}

namespace hearth::controllers {

using model::Json;

// spec of the NetworkPolicy: the template's own rules, or to the public internet only and from
// routers only. Pure.
Json network_policy_spec(const Json& sandbox_template);

class TemplateReconciler final : public reconcile::Reconciler {
 public:
  // All must outlive it; `tracer` may be null.
  TemplateReconciler(client::Client& client, client::WatchCache& templates,
                     client::WatchCache& network_policies, tracing::Tracer* tracer = nullptr)
      : client_(client),
        templates_(templates),
        network_policies_(network_policies),
        tracer_(tracer) {}

  // Before the caches start.
  void watch(reconcile::Controller& controller);

  // Throws Error(conflict) for a policy that is somebody else's.
  reconcile::Next reconcile(const model::Key& key) override;

 private:
  void label(const Json& sandbox_template);
  void remove_policy(const Json& sandbox_template);
  void keep_policy(const Json& sandbox_template);

  client::Client& client_;
  client::WatchCache& templates_;
  client::WatchCache& network_policies_;
  tracing::Tracer* const tracer_;
};

}  // namespace hearth::controllers
