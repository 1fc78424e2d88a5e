#include "node/pods.h"

#include <set>

#include "base/error.h"
#include "base/log.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "node/sandbox_ids.h"

namespace hearth::node {

void Pods::adopt() {
  std::set<std::string, std::less<>> uids;
  for (const client::Object& pod : cache_.list()) uids.emplace(model::uid_of(*pod));
  Found found;
  for (runtime::Sandbox& sandbox : tools_.runtime.list()) {
    const auto name = parse_sandbox_name(sandbox.id);
    if (!name) continue;
    if (uids.contains(name->pod_uid)) {
      found[name->pod_uid].push_back(std::move(sandbox));
      continue;
    }
    log::info("a sandbox of a pod that is no more is removed", {{"sandbox", sandbox.id}});
    tools_.runtime.destroy(sandbox.id);
  }
  for (const runtime::Volume& volume : tools_.runtime.list_volumes()) {
    const auto uid = pod_uid_of_volume(volume.name);
    if (uid && !uids.contains(*uid)) tools_.runtime.remove_volume(volume.name);
  }
  found_.with([&](Found& kept) { kept = std::move(found); });
}

reconcile::Next Pods::reconcile(const model::Key& key) {
  const client::Object pod = cache_.find(key.ns, key.name);
  if (!pod) {
    let_go(key);
    return reconcile::kWhenChanged;
  }
  return keeper_for(pod)->step(pod);
}

std::shared_ptr<Keeper> Pods::keeper_for(const client::Object& pod) {
  const model::Key key = model::key_of(*pod);
  std::shared_ptr<Keeper> keeper = find_keeper(key);
  if (keeper && keeper->uid() == model::uid_of(*pod)) return keeper;
  if (keeper) let_go(key);  // of another pod that had this name
  const auto sandboxes = found_.with([&](Found& found) {
    auto node = found.extract(std::string(model::uid_of(*pod)));
    return node ? std::move(node.mapped()) : std::vector<runtime::Sandbox>();
  });
  keeper = std::make_shared<Keeper>(tools_, *pod, sandboxes);
  keepers_.with([&](auto& keepers) { keepers[key] = keeper; });
  return keeper;
}

std::shared_ptr<Keeper> Pods::find_keeper(const model::Key& key) const {
  return keepers_.with([&](const auto& keepers) {
    const auto found = keepers.find(key);
    return found == keepers.end() ? nullptr : found->second;
  });
}

void Pods::evict(const Json& pod, const std::string& message) {
  const std::shared_ptr<Keeper> keeper = find_keeper(model::key_of(pod));
  if (keeper && keeper->uid() == model::uid_of(pod)) keeper->evict(message);
}

void Pods::let_go(const model::Key& key) {
  const std::shared_ptr<Keeper> keeper = find_keeper(key);
  if (!keeper) return;
  keeper->clear_away();
  keepers_.with([&](auto& keepers) { keepers.erase(key); });
}

reconcile::Rank rank_of(const Json* pod) {
  if (pod == nullptr || model::is_deleting(*pod)) return reconcile::Rank::usual;
  // A pod that runs at once has no status before: see Keeper::write_status.
  if (model::find(*pod, {"status", "containerStatuses"}) != nullptr) return reconcile::Rank::usual;
  return model::label_of(*pod, model::kPoolLabel).empty() ? reconcile::Rank::urgent
                                                          : reconcile::Rank::idle;
}

bool concerns_node(const Json& before, const Json& now) {
  const auto differs = [&](model::Path path) {
    const Json* left = model::find(before, path);
    const Json* right = model::find(now, path);
    if (!left || !right) return left != right;
    return !model::is_same(*left, *right);
  };
  if (differs({"metadata", "uid"}) || differs({"metadata", "deletionTimestamp"}) ||
      differs({"metadata", "deletionGracePeriodSeconds"}) || differs({"metadata", "finalizers"}) ||
      differs({"spec"}))
    return true;
  if (model::annotation_of(before, model::kPauseAnnotation) !=
      model::annotation_of(now, model::kPauseAnnotation))
    return true;
  const auto* gates = model::array_at(now, {"spec", "readinessGates"});
  return gates != nullptr && !gates->empty() && differs({"status", "conditions"});
}

}  // namespace hearth::node
