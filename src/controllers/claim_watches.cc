// What wakes a claim up.
#include "client/kinds.h"
#include "controllers/claim_reconciler.h"
#include "controllers/pool_index.h"
#include "model/agent_sandbox.h"
#include "model/template_ref.h"

namespace hearth::controllers {
namespace {

using client::Object;
using model::text_at;

constexpr char kPoolIndex[] = "claim-pool";

std::string index_value(std::string_view ns, std::string_view pool) {
  return std::string(ns) + "/" + std::string(pool);
}

bool is_same_at(const Json& left, const Json& right, model::Path path) {
  const Json* one = model::find(left, path);
  const Json* other = model::find(right, path);
  if (!one || !other) return one == other;
  return model::is_same(*one, *other);
}

bool is_same_condition(const Json& left, const Json& right, std::string_view type) {
  const Json* one = model::find_condition(left, type);
  const Json* other = model::find_condition(right, type);
  if (!one || !other) return one == other;
  return model::is_same(*one, *other);
}

// What a claim copies from its sandbox, or has to answer.
bool concerns_claim(const Json& before, const Json& now) {
  return model::is_deleting(before) != model::is_deleting(now) ||
         !is_same_at(before, now, {"metadata", "ownerReferences"}) ||
         !is_same_at(before, now, {"status", "podIPs"}) ||
         !is_same_condition(before, now, "Ready") || !is_same_condition(before, now, "Finished");
}

bool is_spec_change(const Json& before, const Json& now) {
  return model::generation_of(before) != model::generation_of(now);
}

// Who may use it. What else changes in a template is for the claims that come.
bool is_lent_otherwise(const Json& before, const Json& now) {
  return model::is_public_template(before) != model::is_public_template(now);
}

bool is_bound(const Json& claim) {
  return !text_at(claim, {"status", "sandbox", "name"}).empty();
}

}  // namespace

client::WatchCacheOptions claim_cache_options() {
  client::WatchCacheOptions options;
  options.indexes[kPoolIndex] = [](const Json& claim) -> std::vector<std::string> {
    return {index_value(model::namespace_of(claim), pool_name_of(claim))};
  };
  return options;
}

client::WatchCacheOptions claim_sandbox_cache_options() {
  client::WatchCacheOptions options;
  options.indexes[kOwnerIndex] = client::owner_uids;
  return options;
}

std::vector<model::Key> ClaimReconciler::claims_of_pool(const Json& pool) const {
  std::vector<model::Key> keys;
  for (const Object& claim : parts_.claims.find_by_index(
           kPoolIndex, index_value(model::namespace_of(pool), model::name_of(pool))))
    if (!is_bound(*claim) && !model::is_deleting(*claim)) keys.push_back(model::key_of(*claim));
  return keys;
}

// Claims that are bound too: they were waiting for its metadata.
std::vector<model::Key> ClaimReconciler::claims_of_template(const Json& sandbox_template) const {
  std::vector<model::Key> keys;
  const model::Key key = model::key_of(sandbox_template);
  const auto add_claims = [&](std::string_view ns, std::string_view pool) {
    for (const Object& claim : parts_.claims.find_by_index(kPoolIndex, index_value(ns, pool)))
      if (!model::is_deleting(*claim)) keys.push_back(model::key_of(*claim));
  };
  for (const Object& pool : pools_of_template(parts_.pools, key))
    add_claims(model::namespace_of(*pool), model::name_of(*pool));
  add_claims(key.ns, "shadow-pool-" + key.name);
  for (const Object& claim : parts_.claims.find_by_index(kPoolIndex, index_value(key.ns, "")))
    if (text_at(*claim, {"spec", "sandboxTemplateRef", "name"}) == key.name)
      keys.push_back(model::key_of(*claim));
  return keys;
}

void ClaimReconciler::watch(reconcile::Controller& controller) {
  controller.watch(parts_.claims);
  controller.watch_owned(parts_.sandboxes, model::kExtensionsGroup, "SandboxClaim", concerns_claim);
  controller.watch_mapped(
      parts_.pools, [this](const Json& pool) { return claims_of_pool(pool); }, is_spec_change);
  controller.watch_mapped(
      parts_.templates, [this](const Json& each) { return claims_of_template(each); },
      is_lent_otherwise);
  parts_.pools.add_handlers(
      {.on_delete = [this](const Object& last) { parts_.allocator.drop(model::key_of(*last)); }});
  const std::lock_guard lock(wakeup_->mutex);
  wakeup_->queue = &controller.queue();
}

}  // namespace hearth::controllers
