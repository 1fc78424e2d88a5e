#include "e2b/team_pools.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "client/kinds.h"
#include "e2b/birth.h"
#include "model/status.h"
#include "model/template_ref.h"
#include "reconcile/manager.h"
#include "tenants/team_pools.h"

namespace hearth::e2b {
namespace {

// Public templates that are kept ready for one team: somebody who tries all of them once shall not
// fill the machine with what nobody wants.
constexpr std::ptrdiff_t kMostPools = 4;
// Nobody waits for a pool: those who create go first.
constexpr Duration kPatience = std::chrono::milliseconds(100);

// A namespace that ends, or a name that is too long: the same again would be refused again.
bool is_final(const model::StatusError& error) {
  const auto code = error.status().code;
  return code == 403 || code == 404 || code == 422;
}

}  // namespace

void TeamPools::add_to(reconcile::Manager& manager) {
  controller_ = &manager.add(*this, {.name = "e2b-team-pools",
                                     .workers = 1,
                                     .queue = {},
                                     .resync = std::chrono::hours(10),
                                     .is_background = true,
                                     .patience = kPatience});
  controller_->watch(core_.pools, [](const Json& before, const Json& now) {
    return model::generation_of(before) != model::generation_of(now) ||
           model::is_deleting(before) != model::is_deleting(now);
  });
  controller_->watch_mapped(
      core_.templates,
      [this](const Json& sandbox_template) {
        const model::Key key = model::key_of(sandbox_template);
        std::vector<model::Key> pools;
        for (const Object& pool : core_.pools.list())
          if (model::template_key_of(*pool) == key) pools.push_back(model::key_of(*pool));
        return pools;
      },
      [](const Json& before, const Json& now) {
        return model::is_public_template(before) != model::is_public_template(now);
      });
}

void TeamPools::note_use(const Birth& birth, const Json& sandbox_template) {
  if (core_.options.team_warm == 0 || model::namespace_of(sandbox_template) == birth.ns) return;
  const model::Key used = model::key_of(sandbox_template);
  const model::Key pool = tenants::team_pool_key(birth.ns, used);
  if (birth.pool && *birth.pool != pool) return;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = uses_.find(pool); known != uses_.end()) {
      known->second.last = core_.now();
      return;
    }
    const auto of_team =
        std::ranges::count(uses_, birth.ns, [](const auto& use) { return use.first.ns; });
    if (of_team >= kMostPools) return;
    uses_.emplace(pool, Use{.sandbox_template = used, .last = core_.now()});
  }
  controller_->queue().add(pool);
}

reconcile::Next TeamPools::reconcile(const model::Key& key) {
  const Object pool = core_.pools.find(key.ns, key.name);
  if (pool && model::is_deleting(*pool)) return reconcile::kWhenChanged;
  if (pool) return keep(key, *pool);
  const auto use = find_use(key);
  return use ? make(key, *use) : reconcile::kWhenChanged;
}

reconcile::Next TeamPools::make(const model::Key& key, const Use& use) {
  const Object sandbox_template =
      core_.templates.find(use.sandbox_template.ns, use.sandbox_template.name);
  const bool is_wanted = is_usable(key.ns, use.sandbox_template) && time_left(use) > Duration() &&
                         // Somebody has made one himself, of a size that he likes.
                         !find_pool(core_, key.ns, *sandbox_template);
  try {
    if (is_wanted) {
      tenants::settle_team_pool(core_.parts.client, key.ns, use.sandbox_template,
                                core_.options.team_warm);
      return time_left(use);
    }
  } catch (const model::StatusError& error) {
    if (!is_final(error)) throw;
    log::info("a team's sandboxes are not kept ready",
              {{"pool", key.text()}, {"error", error.what()}});
  }
  forget(key);
  return reconcile::kWhenChanged;
}

reconcile::Next TeamPools::keep(const model::Key& key, const Json& pool) {
  if (!tenants::is_team_pool(pool)) return reconcile::kWhenChanged;
  const model::Key sandbox_template = model::template_key_of(pool);
  // Of an earlier life: its time begins with ours.
  auto use = find_use(key);
  if (!use) {
    use = Use{.sandbox_template = sandbox_template, .last = core_.now()};
    const std::lock_guard lock(mutex_);
    uses_.emplace(key, *use);
  }
  const Duration left = time_left(*use);
  if (core_.options.team_warm == 0 || left <= Duration() || !is_usable(key.ns, sandbox_template)) {
    forget(key);
    remove(pool);
    return reconcile::kWhenChanged;
  }
  tenants::settle_team_pool(core_.parts.client, key.ns, sandbox_template, core_.options.team_warm);
  return left;
}

void TeamPools::remove(const Json& pool) {
  try {
    core_.parts.client.remove(client::kSandboxWarmPools, model::namespace_of(pool),
                              model::name_of(pool),
                              {.propagation = {},
                               .uid = std::string(model::uid_of(pool)),
                               .resource_version = {},
                               .grace_seconds = {}});
  } catch (const model::StatusError& error) {
    if (error.status().code != 404) throw;
  }
}

std::optional<TeamPools::Use> TeamPools::find_use(const model::Key& pool) const {
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(pool);
  return found == uses_.end() ? std::nullopt : std::optional(found->second);
}

void TeamPools::forget(const model::Key& pool) {
  const std::lock_guard lock(mutex_);
  uses_.erase(pool);
}

bool TeamPools::is_usable(std::string_view ns, const model::Key& sandbox_template) const {
  const Object found = core_.templates.find(sandbox_template.ns, sandbox_template.name);
  return found && !model::is_deleting(*found) && model::is_usable_from(ns, *found);
}

Duration TeamPools::time_left(const Use& use) const {
  return use.last + core_.options.team_idle - core_.now();
}

}  // namespace hearth::e2b
