// What the caches tell a pool, and what the pool tells about itself.
#include <algorithm>
#include <map>
#include <utility>

#include "controllers/pool_index.h"
#include "controllers/warm_pool_reconciler.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/template_ref.h"

namespace hearth::controllers {
namespace {

bool is_pool(const model::Owner& owner) {
  return owner.kind == "SandboxWarmPool" && owner.group() == model::kExtensionsGroup;
}

std::optional<model::Key> controlling_pool(const Json& sandbox) {
  const auto owner = model::controller_of(sandbox);
  if (!owner || !is_pool(*owner)) return std::nullopt;
  return model::Key{std::string(model::namespace_of(sandbox)), owner->name};
}

// Whether it was a pool's and is somebody else's: a claim's, or a front door's.
bool was_taken(const Json& sandbox) {
  if (model::label_of(sandbox, model::kLaunchTypeLabel) != "warm") return false;
  const auto owner = model::controller_of(sandbox);
  if (!owner) return !model::label_of(sandbox, model::kFrontLabel).empty();
  return owner->kind == "SandboxClaim" && owner->group() == model::kExtensionsGroup;
}

// Also of a member that was taken before the cache saw it for the first time: what its name was to
// begin with still tells who made it.
std::optional<model::Key> making_pool(const Json& sandbox) {
  if (auto pool = controlling_pool(sandbox)) return pool;
  if (!was_taken(sandbox)) return std::nullopt;
  std::string_view name = model::text_at(sandbox, {"metadata", "generateName"});
  if (name.size() < 2 || !name.ends_with('-')) return std::nullopt;
  name.remove_suffix(1);
  return model::Key{std::string(model::namespace_of(sandbox)), std::string(name)};
}

// What a pool decides by.
bool is_worth_a_look(const Json& before, const Json& now) {
  const auto controller = [](const Json& sandbox) {
    return model::controller_of(sandbox).value_or(model::Owner{}).uid;
  };
  return model::is_condition_true(before, "Ready") != model::is_condition_true(now, "Ready") ||
         model::is_deleting(before) != model::is_deleting(now) ||
         model::label_of(before, model::kPoolLabel) != model::label_of(now, model::kPoolLabel) ||
         model::generation_of(before) != model::generation_of(now) ||
         is_unschedulable(before) != is_unschedulable(now) || controller(before) != controller(now);
}

}  // namespace

void WarmPoolReconciler::watch(reconcile::Controller& controller) {
  // Without a filter: somebody else's write to the status is noticed, too.
  controller.watch(caches_.pools);
  controller.watch_mapped(caches_.templates, [this](const Json& sandbox_template) {
    std::vector<model::Key> keys;
    for (const Object& pool : pools_of_template(caches_.pools, model::key_of(sandbox_template)))
      keys.push_back(model::key_of(*pool));
    return keys;
  });
  reconcile::Queue& queue = controller.queue();
  caches_.sandboxes.add_handlers(
      {.on_add = [this, &queue](const Object& now) { saw_added(queue, *now); },
       .on_update = [this, &queue](const Object& before,
                                   const Object& now) { saw_updated(queue, *before, *now); },
       .on_delete = [this, &queue](const Object& last) { saw_deleted(queue, *last); }});
}

// The one that controls it; for an orphan those that its label names.
std::vector<model::Key> WarmPoolReconciler::pools_of(const Json& sandbox) const {
  if (auto pool = controlling_pool(sandbox)) return {*pool};
  const std::string_view label = model::label_of(sandbox, model::kPoolLabel);
  if (label.empty() || model::controller_of(sandbox)) return {};
  std::vector<model::Key> keys;
  for (const Object& pool : pools_by_label(caches_.pools, model::namespace_of(sandbox), label))
    keys.push_back(model::key_of(*pool));
  return keys;
}

// Expectations first: a pass that the event wakes must find them met.
void WarmPoolReconciler::saw_added(reconcile::Queue& queue, const Json& sandbox) {
  if (const auto pool = making_pool(sandbox)) {
    expectations_.creation_seen(*pool);
    queue.add(*pool);
  } else {
    for (const model::Key& key : pools_of(sandbox)) queue.add(key);
  }
}

void WarmPoolReconciler::saw_updated(reconcile::Queue& queue, const Json& before, const Json& now) {
  if (model::uid_of(before) != model::uid_of(now)) {
    saw_deleted(queue, before);
    saw_added(queue, now);
    return;
  }
  if (!is_worth_a_look(before, now)) return;
  // From here on the object itself says that it ends.
  if (const auto pool = controlling_pool(now); pool && model::is_deleting(now))
    expectations_.deletion_seen(*pool, model::uid_of(now));
  for (const model::Key& key : pools_of(before)) queue.add(key);
  for (const model::Key& key : pools_of(now)) queue.add(key);
}

void WarmPoolReconciler::saw_deleted(reconcile::Queue& queue, const Json& sandbox) {
  if (const auto pool = controlling_pool(sandbox))
    expectations_.deletion_seen(*pool, model::uid_of(sandbox));
  for (const model::Key& key : pools_of(sandbox)) queue.add(key);
}

void WarmPoolReconciler::collect(metrics::Registry& registry) {
  registry.collect("agent_sandbox_warmpool_size", "Sandboxes that wait in a warm pool.",
                   metrics::Kind::gauge, [this] { return count_members(); });
}

std::vector<metrics::Sample> WarmPoolReconciler::count_members() const {
  std::vector<metrics::Sample> samples;
  for (const Object& pool : caches_.pools.list()) {
    // All four, so that what alerts are made of is there at zero.
    std::map<std::string_view, double> counts{
        {"ready", 0}, {"pending", 0}, {"succeeded", 0}, {"failed", 0}};
    const model::Key key = model::key_of(*pool);
    for (const Object& member : members_of(caches_.sandboxes, key))
      if (model::is_controlled_by(*member, model::uid_of(*pool)) && !model::is_deleting(*member))
        ++counts[member_state(*member)];
    for (const auto& [state, count] : counts)
      samples.push_back(
          {.labels = {{"namespace", key.ns},
                      {"warmpool_name", key.name},
                      {"sandbox_template", std::string(model::template_ref_of(*pool))},
                      {"sandbox_status", std::string(state)}},
           .value = count});
  }
  return samples;
}

}  // namespace hearth::controllers
