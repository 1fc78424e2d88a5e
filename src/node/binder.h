// Gives pods that name no node this one: all that a scheduler has to do where there is one node.
#pragma once

#include <string>

#include "client/watch_cache.h"
#include "node/vacancy.h"
#include "reconcile/event_recorder.h"
#include "reconcile/reconciler.h"

namespace hearth::node {

class Binder final : public reconcile::Reconciler {
 public:
  // `unbound` has the pods without a node. All must outlive it.
  Binder(client::Client& client, const client::WatchCache& unbound, Vacancy& vacancy,
         reconcile::EventRecorder& events, std::string node)
      : client_(client),
        unbound_(unbound),
        vacancy_(vacancy),
        events_(events),
        node_(std::move(node)) {}

  reconcile::Next reconcile(const model::Key& key) override;

 private:
  void bind(const model::Json& pod);
  void refuse(const model::Json& pod, const std::string& why);

  client::Client& client_;
  const client::WatchCache& unbound_;
  Vacancy& vacancy_;
  reconcile::EventRecorder& events_;
  const std::string node_;
};

}  // namespace hearth::node
