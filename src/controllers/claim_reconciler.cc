#include "controllers/claim_reconciler.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/log.h"
#include "base/time_text.h"
#include "client/kinds.h"
#include "controllers/claim_adoption.h"
#include "controllers/claim_defaults.h"
#include "controllers/claim_expiry.h"
#include "controllers/claim_metadata.h"
#include "controllers/claim_outfit.h"
#include "controllers/claim_problem.h"
#include "controllers/pass_span.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {
namespace {

using client::Object;
using model::text_at;
using reconcile::EventType;
using reconcile::kWhenChanged;
using reconcile::Next;

constexpr Duration kAtOnce = std::chrono::milliseconds(1);
constexpr Duration kSoon = std::chrono::milliseconds(200);
constexpr Duration kAfterConflict = std::chrono::milliseconds(50);

Next sooner(Next left, Next right) {
  if (!left || !right) return left ? left : right;
  return std::min(*left, *right);
}

Next pause_until(const std::optional<Time>& moment, Time now) {
  return moment ? Next(*moment - now) : kWhenChanged;
}

bool is_ready(const Json& object) {
  return model::is_condition_true(object, "Ready");
}

// As it will be once its annotations are written: its sandbox is of the same trace.
Object with_trace(const Object& claim, const std::string& trace) {
  if (trace.empty()) return claim;
  Json copy = *claim;
  model::make_object_at(copy, {"metadata", "annotations"})[model::kTraceContextAnnotation] = trace;
  return std::make_shared<const Json>(std::move(copy));
}

// A conflict says nothing about the claim: the next look sees more.
bool is_passing(const Error& error) {
  return error.code() == Code::conflict && dynamic_cast<const model::StatusError*>(&error);
}

}  // namespace

// One look at a claim, and what came of it.
struct ClaimReconciler::Pass {
  const Json& claim;
  ClaimMemory& memory;
  std::optional<Json> lifecycle;
  Time now;
  Object sandbox;
  ClaimView view = {};
  bool is_silent = false;  // no status is written
  Retry retry = Retry::when_changed;
  std::string version = {};  // of the claim, as our write left it

  void fail_with(std::string_view reason, std::string_view message, Retry how) {
    view.reason = reason;
    view.message = message;
    retry = how;
  }
};

ClaimReconciler::ClaimReconciler(Parts parts, Options options)
    : parts_(parts),
      options_(std::move(options)),
      metrics_(parts.metrics),
      finder_(parts.client, parts.sandboxes, parts.clock),
      sources_(parts.client, parts.pools, parts.templates),
      supplier_({.client = parts.client,
                 .allocator = parts.allocator,
                 .finder = finder_,
                 .sources = sources_,
                 .metrics = metrics_,
                 .events = parts.events,
                 .clock = parts.clock,
                 .outfitter = parts.outfitter},
                [wakeup = wakeup_](const model::Key& key) {
                  const std::lock_guard lock(wakeup->mutex);
                  if (wakeup->queue) wakeup->queue->add(key);
                }) {}

ClaimReconciler::~ClaimReconciler() {
  stop();
}

void ClaimReconciler::begin() {
  finder_.begin(parts_.clock.now());
  memories_.forget_all();
  is_deciding_ = true;
}

void ClaimReconciler::stop() {
  is_deciding_ = false;
  memories_.forget_all();
  const std::lock_guard lock(wakeup_->mutex);
  wakeup_->queue = nullptr;
}

Next ClaimReconciler::reconcile(const model::Key& key) {
  const Object claim = parts_.claims.find(key.ns, key.name);
  const Time now = parts_.clock.now();
  if (!claim) return pause_until(memories_.forget_missing(key, now), now);
  if (model::is_deleting(*claim)) {
    memories_.forget(key);
    return kWhenChanged;
  }
  const auto memory = memories_.of(*claim, now);
  memory->take_over_birth(now);
  if (is_settled(*claim, *memory, now)) return pause_until(memory->look_again, now);
  memory->settled.reset();
  const auto parent = tracing::context_of(*claim);
  tracing::Span span(options_.tracer, "ReconcileSandboxClaim",
                     parent ? parent : tracing::parse_annotation(memory->trace));
  describe(span, "sandbox.claim", *claim);
  if (span.context() && memory->trace.empty() && !parent)
    memory->trace = tracing::to_annotation(*span.context());
  const Object traced_claim = with_trace(claim, memory->trace);
  const Object pool = sources_.cached_pool_of(*claim);
  Pass pass{.claim = *traced_claim,
            .memory = *memory,
            .lifecycle = lifecycle_of(*claim, pool ? *pool : Json(nullptr)),
            .now = now};
  return traced(span, [&] { return look_at(pass); });
}

ClaimSituation ClaimReconciler::situation_of(const Json& claim, const Json& sandbox) const {
  const Object pool = sources_.cached_pool_of(claim);
  return {.claim = std::string(model::resource_version_of(claim)),
          .sandbox = std::string(model::resource_version_of(sandbox)),
          .pool_generation = pool ? model::generation_of(*pool) : 0,
          .sandbox_template = sources_.cached_template_of(claim)};
}

bool ClaimReconciler::is_settled(const Json& claim, ClaimMemory& memory, Time now) {
  if (!memory.settled || (memory.look_again && *memory.look_again <= now)) return false;
  Object sandbox = finder_.find_bound(claim, memory);
  if (!sandbox)
    sandbox = parts_.sandboxes.find(model::namespace_of(claim),
                                    text_at(claim, {"status", "sandbox", "name"}));
  return sandbox && *memory.settled == situation_of(claim, *sandbox);
}

Next ClaimReconciler::look_at(Pass& pass) {
  if (is_over(expiry_of(pass.claim, pass.lifecycle), pass.now)) {
    pass.view.is_expired = true;
    pass.memory.ticket.reset();
    return ready_reason(pass.claim) == "ClaimExpired" ? end(pass) : announce_end(pass);
  }
  try {
    work(pass);
  } catch (const ClaimProblem& problem) {
    pass.fail_with(problem.reason(), problem.what(), problem.retry());
  } catch (const Error& error) {
    if (is_passing(error)) throw;
    pass.fail_with("ReconcilerError", fmt::format("Error seen: {}", error.what()),
                   Retry::with_pause);
  }
  return settle(pass);
}

void ClaimReconciler::work(Pass& pass) {
  check_additional_metadata(pass.claim, options_.label_domains);
  pass.sandbox = finder_.find(pass.claim, pass.memory);
  if (pass.sandbox) {
    pass.memory.ticket.reset();
    pass.view.sandbox = pass.sandbox.get();
    keep_up(pass);
  } else {
    const Supply supply = supplier_.obtain(pass.claim, pass.memory);
    pass.sandbox = supply.sandbox;
    pass.is_silent = supply.is_silent;
    if (supply.is_waiting)
      pass.fail_with("WaitingForWarmPool",
                     fmt::format("Waiting for a sandbox of SandboxWarmPool {}",
                                 json_quote(pool_name_of(pass.claim))),
                     Retry::when_changed);
  }
  pass.view.sandbox = pass.sandbox.get();
  if (pass.sandbox) pass.view.outfitted_pod = supplier_.outfit(pass.claim, *pass.sandbox);
}

// The metadata of template and claim reach a sandbox that is the claim's already.
void ClaimReconciler::keep_up(Pass& pass) {
  if (model::is_deleting(*pass.sandbox)) return;
  const Object own_template = sources_.cached_template_of(pass.claim);
  Json patch = upkeep_patch(pass.claim, *pass.sandbox, own_template.get());
  if (patch.is_null()) return;
  model::make_object_at(patch, {"metadata"})["resourceVersion"] =
      model::resource_version_of(*pass.sandbox);
  pass.sandbox =
      parts_.client.patch(client::kSandboxes, model::namespace_of(*pass.sandbox),
                          model::name_of(*pass.sandbox), client::PatchKind::merge, patch);
  pass.view.sandbox = pass.sandbox.get();
}

// Says what came of it, and when to look again.
Next ClaimReconciler::settle(Pass& pass) {
  if (pass.is_silent) return kWhenChanged;
  Json status = claim_status(pass.claim, pass.view, pass.now);
  // With the status of now it may be over: TTL 0 and a sandbox that has just finished.
  Json next = pass.claim;
  next.get_object()["status"] = status;
  const auto expiry = expiry_of(next, pass.lifecycle);
  if (is_over(expiry, pass.now)) {
    pass.view.is_expired = true;
    pass.view.reason.clear();
    return announce_end(pass);
  }
  const Written written = write_status(pass, status);
  if (written == Written::conflict) return kAfterConflict;
  after_ready(pass, status);
  const std::optional<Time> look = earlier(expiry, pass.memory.annotating);
  const Next next_look = pause_until(look, pass.now);
  if (pass.retry == Retry::when_changed && is_ready(next) && pass.sandbox &&
      !has_outfit(pass.claim)) {
    pass.memory.settled = situation_of(pass.claim, *pass.sandbox);
    if (!pass.version.empty()) pass.memory.settled->claim = pass.version;
    pass.memory.look_again = look;
  }
  switch (pass.retry) {
    case Retry::when_changed:
      return next_look;
    case Retry::each_minute:
      return sooner(next_look, std::chrono::minutes(1));
    case Retry::soon:
      return sooner(next_look, kSoon);
    case Retry::with_pause:
      break;
  }
  // Whatever it was, trying again may help: templates change, and nobody wakes claims for it.
  fail(Code::unavailable, "claim '{}': {}", model::key_of(pass.claim).text(), pass.view.message);
}

ClaimReconciler::Written ClaimReconciler::write_status(Pass& pass, const Json& status) {
  const Json patch = status_patch(pass.claim, status);
  if (patch.is_null()) return Written::nothing;
  try {
    const client::Object written = parts_.client.patch(
        client::kSandboxClaims, model::namespace_of(pass.claim), model::name_of(pass.claim),
        client::PatchKind::merge, patch, {.subresource = "status"});
    pass.version = model::resource_version_of(*written);
  } catch (const model::StatusError& error) {
    if (error.code() == Code::conflict) return Written::conflict;
    if (error.code() != Code::not_found) throw;
  }
  return Written::status;
}

// Nobody waits for any of this.
void ClaimReconciler::after_ready(Pass& pass, const Json& status) {
  const Json holder = model::JsonObject{{"status", status}};
  if (!pass.sandbox || !is_ready(holder)) return;
  if (!pass.memory.is_measured) measure(pass);
  if (!options_.claim_observability_annotations) return;
  if (pass.memory.annotated_for == model::name_of(*pass.sandbox)) return;
  if (!pass.memory.annotating) pass.memory.annotating = pass.now + options_.annotation_delay;
  if (*pass.memory.annotating <= pass.now) annotate(pass);
}

void ClaimReconciler::measure(Pass& pass) {
  pass.memory.is_measured = true;
  // When a claim became Ready before this process looked at it, nobody knows when.
  if (is_ready(pass.claim) ||
      !model::annotation_of(pass.claim, model::kFirstReadyAnnotation).empty())
    return;
  pass.memory.first_ready = parts_.clock.now();  // later than the pass began
  metrics_.observe_ready(pass.claim, *pass.sandbox, pass.memory.first_seen,
                         *pass.memory.first_ready);
}

void ClaimReconciler::annotate(Pass& pass) {
  const ClaimMemory& memory = pass.memory;
  model::JsonObject annotations;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (model::annotation_of(pass.claim, key).empty()) annotations[key] = value;
  };
  add(model::kFirstReadyAnnotation,
      memory.first_ready ? format_rfc3339(*memory.first_ready, 9) : "unknown");
  add(model::kFirstObservedAnnotation, format_rfc3339(memory.first_seen, 9));
  if (!memory.trace.empty()) annotations[model::kTraceContextAnnotation] = memory.trace;
  const std::string_view sandbox = model::name_of(*pass.sandbox);
  if (model::label_of(*pass.sandbox, model::kLaunchTypeLabel) == "warm" &&
      model::annotation_of(pass.claim, model::kSandboxNameAnnotation) != sandbox)
    annotations[model::kSandboxNameAnnotation] = sandbox;
  pass.memory.annotated_for = sandbox;  // once, whatever comes of it
  pass.memory.annotating.reset();
  if (annotations.empty()) return;
  try {
    parts_.client.patch(client::kSandboxClaims, model::namespace_of(pass.claim),
                        model::name_of(pass.claim), client::PatchKind::merge,
                        model::JsonObject{{"metadata", {{"annotations", annotations}}}});
  } catch (const Error& error) {
    log::debug("a claim is not annotated",
               {{"claim", model::key_of(pass.claim).text()}, {"reason", error.what()}});
  }
}

// First the status, then the deed: who watches the claim learns why it goes.
Next ClaimReconciler::announce_end(Pass& pass) {
  if (!pass.sandbox) {
    const auto own = finder_.find_all(pass.claim, pass.memory);
    if (!own.empty()) pass.sandbox = own.front();
  }
  pass.view.sandbox = pass.sandbox.get();
  const Json status = claim_status(pass.claim, pass.view, pass.now);
  if (write_status(pass, status) == Written::conflict) return kAfterConflict;
  parts_.events.record(pass.claim, EventType::normal, "ClaimExpired", "Claim Expired",
                       "Claim expired");
  return kAtOnce;
}

Next ClaimReconciler::end(Pass& pass) {
  const std::string_view policy = shutdown_policy_of(pass.lifecycle);
  if (policy != "Retain") {
    delete_claim(pass, policy);
    return kWhenChanged;
  }
  delete_sandboxes(pass);
  const Json status = claim_status(pass.claim, pass.view, pass.now);
  return write_status(pass, status) == Written::conflict ? Next(kAfterConflict) : kWhenChanged;
}

void ClaimReconciler::delete_claim(Pass& pass, std::string_view policy) {
  parts_.events.record(pass.claim, EventType::normal, "ClaimExpired", "Deleting",
                       fmt::format("Deleting Claim (ShutdownPolicy={})", policy));
  try {
    parts_.client.remove(client::kSandboxClaims, model::namespace_of(pass.claim),
                         model::name_of(pass.claim),
                         {.propagation = policy == "DeleteForeground" ? "Foreground" : "Background",
                          .uid = std::string(model::uid_of(pass.claim))});
  } catch (const model::StatusError& error) {
    if (error.code() != Code::not_found && error.code() != Code::conflict) throw;
  }
}

// Never somebody else's, whatever the status says.
void ClaimReconciler::delete_sandboxes(Pass& pass) {
  const auto own = finder_.find_all(pass.claim, pass.memory);
  for (const Object& sandbox : own) {
    if (!pass.sandbox) pass.sandbox = sandbox;
    if (model::is_deleting(*sandbox)) continue;
    try {
      parts_.client.remove(client::kSandboxes, model::namespace_of(*sandbox),
                           model::name_of(*sandbox), {.uid = std::string(model::uid_of(*sandbox))});
    } catch (const model::StatusError& error) {
      if (error.code() != Code::not_found && error.code() != Code::conflict) throw;
    }
  }
  pass.view.sandbox = pass.sandbox.get();
  if (!own.empty()) return;
  const std::string_view in_status = model::text_at(pass.claim, {"status", "sandbox", "name"});
  const std::string_view name = in_status.empty() ? model::name_of(pass.claim) : in_status;
  const Object other = parts_.sandboxes.find(model::namespace_of(pass.claim), name);
  if (!other || model::is_controlled_by(*other, model::uid_of(pass.claim))) return;
  pass.view.is_foreign = true;
  pass.fail_with("ClaimExpired",
                 fmt::format("Claim expired. sandbox not owned by this claim: sandbox {} is not "
                             "owned by claim {}; deletion skipped.",
                             json_quote(name), json_quote(model::name_of(pass.claim))),
                 Retry::when_changed);
}

}  // namespace hearth::controllers
