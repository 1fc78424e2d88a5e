// All pods of this node: a keeper for each, found by the pod's key.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "node/keeper.h"
#include "reconcile/queue.h"

namespace hearth::node {

class Pods final : public reconcile::Reconciler {
 public:
  // Both must outlive it. The cache has the pods of this node and no others.
  Pods(Tools& tools, const client::WatchCache& cache) : tools_(tools), cache_(cache) {}

  // Before the first reconcile(), when the cache has synced: takes note of what is on this machine,
  // and clears away what belongs to pods that are no more. Throws Error.
  void adopt();

  reconcile::Next reconcile(const model::Key& key) override;

  // See Keeper::evict. Any thread; a pod that is not known is left alone.
  void evict(const Json& pod, const std::string& message);

 private:
  using Found = std::map<std::string, std::vector<runtime::Sandbox>, std::less<>>;  // by uid

  std::shared_ptr<Keeper> keeper_for(const client::Object& pod);
  std::shared_ptr<Keeper> find_keeper(const model::Key& key) const;
  void let_go(const model::Key& key);

  Tools& tools_;
  const client::WatchCache& cache_;
  Guarded<std::map<model::Key, std::shared_ptr<Keeper>>> keepers_;
  Guarded<Found> found_;  // at the start, and not yet taken over
};

// Who goes first: a pod that has not begun and that somebody waits for; then what is going on and
// what ends, and in turns with it members of warm pools, which nobody waits for; but as many ends
// as births where hundreds wait for theirs, so that they do not pile up. Of a pod that is no more:
// null.
reconcile::Rank rank_of(const Json* pod);

// Whether a change of a pod is one that its node acts on; what it wrote itself is not.
bool concerns_node(const Json& before, const Json& now);

}  // namespace hearth::node
