#include "controllers/claim_supply.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_text.h"
#include "client/kinds.h"
#include "controllers/blueprint.h"
#include "controllers/claim_adoption.h"
#include "controllers/claim_cold.h"
#include "controllers/claim_outfit.h"
#include "controllers/claim_problem.h"
#include "controllers/claim_status.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {
namespace {

using client::Object;
using model::text_at;

// How long a young claim may hope for a pool's sandbox that has no address yet.
constexpr Duration kGrace = std::chrono::seconds(2);
// Candidates that are lost to others in one pass. More mean that something else is wrong.
constexpr unsigned kMostAttempts = 32;
constexpr Duration kForEver = std::chrono::hours(24 * 365);

constexpr std::string_view kTenantLabel = "hearth.dev/tenant";

std::string_view when_empty_of(const Json& claim) {
  const std::string_view choice = text_at(claim, {"spec", "whenEmpty"});
  return choice.empty() ? "Cold" : choice;
}

// What is left of the claim's own time to wait, which counts from its making: a controller that
// starts anew does not start the wait anew.
Duration patience_of(const Json& claim, Time now) {
  const auto seconds = model::number_at(claim, {"spec", "waitSeconds"});
  if (!seconds) return kForEver;
  const Time end = model::created_at(claim).value_or(now) +
                   std::chrono::seconds(std::clamp<std::int64_t>(*seconds, 0, 86'400LL * 365));
  return std::max(Duration::zero(), end - now);
}

[[noreturn]] void throw_empty(const Json& claim, std::string_view after) {
  throw ClaimProblem("WarmPoolEmpty",
                     fmt::format("SandboxWarmPool {} has no sandbox to give{}",
                                 json_quote(pool_name_of(claim)), after),
                     Retry::when_changed);
}

// A claim that was told so stays so, until somebody changes it: its client has gone by now.
void check_not_given_up(const Json& claim) {
  const Json* ready = model::find_condition(claim, "Ready");
  if (!ready || text_at(*ready, {"reason"}) != "WarmPoolEmpty") return;
  if (model::number_at(*ready, {"observedGeneration"}) != model::generation_of(claim)) return;
  throw ClaimProblem("WarmPoolEmpty", std::string(text_at(*ready, {"message"})),
                     Retry::when_changed);
}

}  // namespace

// What one pass knows about the claim.
struct ClaimSupplier::Attempt {
  const Json& claim;
  ClaimMemory& memory;
  ClaimSource source;
  bool has_outfit = false;

  const Json* sandbox_template() const { return source.sandbox_template.get(); }
};

ClaimSupplier::ClaimSupplier(Parts parts, std::function<void(const model::Key&)> wake)
    : parts_(parts), wake_(std::move(wake)) {}

Supply ClaimSupplier::obtain(const Json& claim, ClaimMemory& memory) {
  check_not_given_up(claim);
  Attempt attempt{.claim = claim,
                  .memory = memory,
                  .source = parts_.sources.source_of(claim),
                  .has_outfit = has_outfit(claim)};
  if (attempt.has_outfit) {
    if (!attempt.sandbox_template()) throw_no_template(attempt.source.template_name);
    check_wishes(claim, *attempt.sandbox_template());
    const std::string ns(model::namespace_of(claim));
    check_references(claim, [&](const client::ResourceId& kind, std::string_view name) {
      return parts_.client.find(kind, ns, name);
    });
  }
  const bool may_be_warm =
      !attempt.has_outfit ||
      (parts_.outfitter && is_outfit_for_warm(claim, *attempt.sandbox_template()));
  if (may_be_warm && !attempt.source.pools.empty()) {
    Supply warm = obtain_warm(attempt);
    if (warm.sandbox || warm.is_silent || warm.is_waiting) return warm;
  }
  return {.sandbox = obtain_cold(attempt)};
}

Supply ClaimSupplier::obtain_warm(Attempt& attempt) {
  if (Object promised = adopt_promised(attempt)) return {.sandbox = promised};
  for (unsigned i = 0; i < kMostAttempts; ++i) {
    std::optional<pool::Hold> hold = take(attempt);
    if (!hold) return when_empty(attempt);
    // Where this one cannot be reached into, its neighbours cannot: the claim starts cold.
    if (attempt.has_outfit && !can_outfit(*hold->sandbox())) return {};
    if (Object adopted = adopt(attempt, std::move(*hold))) return {.sandbox = adopted};
  }
  throw ClaimProblem(
      "AdoptionConflict",
      fmt::format("adoption write conflict: claim {}: {} sandboxes were lost to others "
                  "(conflicting concurrent write); the next pass retries from a converged view",
                  model::name_of(attempt.claim), kMostAttempts),
      Retry::with_pause);
}

std::optional<ClaimSupplier::Reserved> ClaimSupplier::reserve(const Json& claim,
                                                              const Object& pool) {
  if (has_outfit(claim) || model::is_deleting(*pool)) return std::nullopt;
  const Object own_template = parts_.sources.cached_template_of(claim);
  if (!own_template || parts_.allocator.stock(model::key_of(*pool)).ready == 0) return std::nullopt;
  auto hold = parts_.allocator.take(wish_for(claim, *pool, own_template));
  if (!hold) return std::nullopt;
  Json patch;
  try {
    patch = adoption_patch(claim, *hold->sandbox(), own_template.get());
  } catch (const Error&) {
    return std::nullopt;
  }
  const bool is_to_be_outfitted =
      model::find(patch, {"metadata", "annotations", kOutfitAnnotation}) != nullptr;
  auto prepared = parts_.allocator.prepare(*hold, std::move(patch));
  if (!prepared || is_to_be_outfitted) return std::nullopt;
  const Json& sandbox = *hold->sandbox();
  if (!model::is_condition_true(sandbox, "Ready") || model::find_condition(sandbox, "Finished"))
    return std::nullopt;
  return Reserved{std::move(*hold), *std::move(prepared)};
}

void ClaimSupplier::tell_reserved(const Json& claim, const Reserved& reserved,
                                  const Object& sandbox, Duration took) {
  const Json& before = *reserved.hold.sandbox();
  parts_.allocator.conclude(reserved.hold, sandbox, took);
  tell_adopted(claim, *sandbox, model::controller_of(before).value_or(model::Owner()).name);
}

std::optional<pool::Hold> ClaimSupplier::take(Attempt& attempt) {
  if (attempt.memory.ticket) {
    if (!attempt.memory.ticket->is_called()) return std::nullopt;
    if (auto hold = attempt.memory.ticket->take_hold()) {
      attempt.memory.ticket.reset();
      return hold;
    }
  }
  for (const Object& pool : attempt.source.pools)
    if (auto hold =
            parts_.allocator.take(wish_for(attempt.claim, *pool, attempt.source.sandbox_template)))
      return hold;
  return std::nullopt;
}

pool::Wish ClaimSupplier::wish_for(const Json& claim, const Json& pool,
                                   const Object& own_template) {
  const std::string_view tenant = model::label_of(claim, kTenantLabel);
  pool::Wish wish{
      .pool = model::key_of(pool),
      .tenant = std::string(tenant.empty() ? model::namespace_of(claim) : tenant),
      .priority = static_cast<int>(model::number_at(claim, {"spec", "priority"}).value_or(0))};
  // Other pools let go of outdated members when they fill up: those are as good as any until then.
  if (text_at(pool, {"spec", "updateStrategy", "type"}) != "Recreate" || !own_template) return wish;
  auto blueprint = std::make_shared<const Blueprint>(blueprint_of(*own_template));
  wish.fits = [own_template, blueprint](const Json& sandbox) {
    return !is_stale(sandbox, *own_template, *blueprint);
  };
  return wish;
}

Object ClaimSupplier::adopt(Attempt& attempt, pool::Hold hold) {
  const Json& before = *hold.sandbox();
  const std::string name(model::name_of(before));
  const std::string pool = model::controller_of(before).value_or(model::Owner()).name;
  Json patch = adoption_patch(attempt.claim, before, attempt.sandbox_template());
  attempt.memory.is_in_doubt = true;  // if the answer is lost, the write may have been made
  Object sandbox = parts_.allocator.commit(parts_.client, std::move(hold), std::move(patch));
  // A write that was sent twice, since its first answer was lost, meets itself.
  if (!sandbox) sandbox = parts_.finder.read_own(attempt.claim, name);
  attempt.memory.is_in_doubt = false;
  if (!sandbox) return nullptr;
  attempt.memory.bound = sandbox;
  attempt.memory.bound_at = parts_.clock.now();
  attempt.memory.ticket.reset();
  tell_adopted(attempt.claim, *sandbox, pool);
  return sandbox;
}

// An adoption that another controller began: it wrote its choice down, and no more.
Object ClaimSupplier::adopt_promised(Attempt& attempt) {
  const Object promised = parts_.finder.find_promised(attempt.claim);
  if (!promised || (attempt.has_outfit && !can_outfit(*promised))) return nullptr;
  Json patch = adoption_patch(attempt.claim, *promised, attempt.sandbox_template());
  model::make_object_at(patch, {"metadata"})["resourceVersion"] =
      model::resource_version_of(*promised);
  const model::Key key = model::key_of(*promised);
  attempt.memory.is_in_doubt = true;
  Object sandbox;
  try {
    sandbox =
        parts_.client.patch(client::kSandboxes, key.ns, key.name, client::PatchKind::merge, patch);
  } catch (const model::StatusError& error) {
    if (error.code() != Code::conflict && error.code() != Code::not_found) throw;
    sandbox = parts_.finder.read_own(attempt.claim, key.name);
  }
  attempt.memory.is_in_doubt = false;
  if (!sandbox) return nullptr;
  attempt.memory.bound = sandbox;
  attempt.memory.bound_at = parts_.clock.now();
  tell_adopted(attempt.claim, *sandbox,
               model::controller_of(*promised).value_or(model::Owner()).name);
  return sandbox;
}

void ClaimSupplier::tell_adopted(const Json& claim, const Json& sandbox, std::string_view pool) {
  parts_.events.record(
      claim, reconcile::EventType::normal, "SandboxAdopted", "Adoption",
      fmt::format("Adopted warm pool Sandbox {}", json_quote(model::name_of(sandbox))));
  parts_.metrics.count_creation(claim, sandbox, pool);
}

Supply ClaimSupplier::when_empty(Attempt& attempt) {
  const Json& claim = attempt.claim;
  ClaimMemory& memory = attempt.memory;
  if (memory.ticket && !memory.ticket->is_called())
    return {.is_silent = memory.is_hoping, .is_waiting = !memory.is_hoping};
  const bool has_waited = memory.ticket && !memory.is_hoping;
  memory.ticket.reset();
  const Time now = parts_.clock.now();
  if (when_empty_of(claim) == "Wait" && !has_waited) {
    memory.is_hoping = false;
    wait_in_line(attempt, *attempt.source.pools.front(), patience_of(claim, now));
    return {.is_waiting = true};
  }
  if (has_waited) throw_empty(claim, " within the time the claim waits");
  const Duration age =
      std::max<Duration>(now - model::created_at(claim).value_or(Time()), Duration::zero());
  const auto starting = std::ranges::find_if(attempt.source.pools, [&](const Object& pool) {
    return parts_.allocator.stock(model::key_of(*pool)).starting > 0;
  });
  if (starting != attempt.source.pools.end() && age < kGrace) {
    memory.is_hoping = true;
    wait_in_line(attempt, **starting, kGrace - age);
    return {.is_silent = true};
  }
  if (when_empty_of(claim) == "Fail") throw_empty(claim, "");
  return {};
}

void ClaimSupplier::wait_in_line(Attempt& attempt, const Json& pool, Duration patience) {
  const model::Key key = model::key_of(attempt.claim);
  attempt.memory.ticket = std::make_unique<ClaimTicket>(
      parts_.allocator, wish_for(attempt.claim, pool, attempt.source.sandbox_template), patience,
      [wake = wake_, key] { wake(key); });
}

Object ClaimSupplier::obtain_cold(Attempt& attempt) {
  if (!attempt.sandbox_template()) throw_no_template(attempt.source.template_name);
  const Json wanted = cold_sandbox(attempt.claim, *attempt.sandbox_template());
  attempt.memory.is_in_doubt = true;
  Object sandbox;
  try {
    sandbox = parts_.client.create(client::kSandboxes, wanted);
  } catch (const model::StatusError& error) {
    if (error.status().reason != "AlreadyExists") throw;
    // Ours, from a write whose answer was lost, or somebody else's.
    sandbox = parts_.finder.read_own(attempt.claim, model::name_of(attempt.claim));
    attempt.memory.is_in_doubt = false;
    if (!sandbox)
      throw ClaimProblem("SandboxCreatePending",
                         "Sandbox already created; waiting for cache to converge", Retry::soon);
  }
  attempt.memory.is_in_doubt = false;
  attempt.memory.bound = sandbox;
  attempt.memory.bound_at = parts_.clock.now();
  parts_.events.record(attempt.claim, reconcile::EventType::normal, "SandboxProvisioned",
                       "Provisioning",
                       fmt::format("Created Sandbox {}", json_quote(model::name_of(*sandbox))));
  parts_.metrics.count_creation(attempt.claim, *sandbox, pool_name_of(attempt.claim));
  return sandbox;
}

std::optional<Json> ClaimSupplier::pod_of(const Json& sandbox) {
  const std::string_view named = model::annotation_of(sandbox, model::kPodNameAnnotation);
  return parts_.client.find(client::kPods, model::namespace_of(sandbox),
                            named.empty() ? model::name_of(sandbox) : named);
}

bool ClaimSupplier::can_outfit(const Json& sandbox) {
  if (!parts_.outfitter) return false;
  const auto pod = pod_of(sandbox);
  return pod && parts_.outfitter->can_outfit(*pod);
}

std::string ClaimSupplier::outfit(const Json& claim, const Json& sandbox) {
  const bool needs_it = !model::annotation_of(sandbox, kOutfitAnnotation).empty();
  if (!needs_it || !parts_.outfitter || !model::is_condition_true(sandbox, "Ready")) return {};
  const auto pod = pod_of(sandbox);
  if (!pod || model::is_deleting(*pod)) return {};
  std::string uid(model::uid_of(*pod));
  if (text_at(claim, {"status", "sandbox", "name"}) == model::name_of(sandbox) &&
      text_at(claim, {"status", "sandbox", "outfittedPodUID"}) == uid)
    return {};
  const std::string ns(model::namespace_of(claim));
  const auto outfits =
      outfits_of(claim, sandbox, [&](const client::ResourceId& kind, std::string_view name) {
        return parts_.client.find(kind, ns, name);
      });
  make_volumes(claim, sandbox);
  try {
    for (const pool::Outfit& outfit : outfits) parts_.outfitter->outfit(*pod, outfit);
  } catch (const Error& error) {
    fail(error.code(), "cannot outfit sandbox '{}': {}", model::name_of(sandbox),
         shown_text(error.what(), outfits));
  }
  return uid;
}

void ClaimSupplier::make_volumes(const Json& claim, const Json& sandbox) {
  for (const Json& wanted : outfit_volume_claims(claim, sandbox)) {
    const std::string_view name = model::name_of(wanted);
    auto there =
        parts_.client.find(client::kPersistentVolumeClaims, model::namespace_of(sandbox), name);
    if (!there) there = parts_.client.create(client::kPersistentVolumeClaims, wanted);
    if (!model::is_controlled_by(*there, model::uid_of(sandbox)))
      fail(Code::conflict, "PVC '{}' is not controlled by sandbox '{}'", name,
           model::name_of(sandbox));
  }
}

}  // namespace hearth::controllers
