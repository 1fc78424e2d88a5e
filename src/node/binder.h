// Gives pods that name no node this one: all that a scheduler has to do where there is one node.
#pragma once

#include <string>

#include "client/watch_cache.h"
#include "reconcile/event_recorder.h"
#include "reconcile/reconciler.h"

namespace hearth::node {

class Binder final : public reconcile::Reconciler {
 public:
  struct Caches {
    const client::WatchCache& unbound;  // the pods without a node
    const client::WatchCache& bound;    // those of this one
  };
  // All must outlive it.
  Binder(client::Client& client, Caches caches, reconcile::EventRecorder& events, std::string node)
      : client_(client), caches_(caches), events_(events), node_(std::move(node)) {}

  reconcile::Next reconcile(const model::Key& key) override;

 private:
  std::string why_not(const model::Json& pod) const;
  void bind(const model::Json& pod);
  void refuse(const model::Json& pod, const std::string& why);

  client::Client& client_;
  const Caches caches_;
  reconcile::EventRecorder& events_;
  const std::string node_;
};

}  // namespace hearth::node
