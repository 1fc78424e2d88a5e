// The pass itself: expiry, the order of steps, and the status that tells of them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/kinds.h"
#include "controllers/ownership.h"
#include "controllers/sandbox_lifetime.h"
#include "controllers/sandbox_pass_internal.h"
#include "controllers/sandbox_pod.h"
#include "controllers/sandbox_service.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {
namespace {

using std::chrono::milliseconds;

// Between the status that says "expired" and the end of what it is about: observers see both.
constexpr Duration kAfterMark = milliseconds(1);
// Of a pool's member that is not Ready yet: nobody has it, so nobody asks why, unless it takes
// long.
constexpr Duration kMemberStatusWindow = std::chrono::seconds(5);

Json status_of(const Json& sandbox) {
  const JsonObject* status = model::object_at(sandbox, {"status"});
  return status == nullptr ? JsonObject() : *status;
}

// The merge patch from one status to the other.
JsonObject difference(const JsonObject& before, const JsonObject& now) {
  JsonObject patch;
  for (const auto& [key, value] : before)
    if (!now.contains(key)) patch[key] = nullptr;
  for (const auto& [key, value] : now) {
    const Json* old = before.if_contains(key);
    if (old == nullptr || !model::is_same(*old, value)) patch[key] = value;
  }
  return patch;
}

}  // namespace

Duration Deferral::left(const Key& key, Duration window, Time now) {
  const std::lock_guard lock(mutex_);
  const Time due = since_.emplace(key, now).first->second + window;
  return std::max<Duration>(due - now, Duration::zero());
}

void Deferral::clear(const Key& key) {
  const std::lock_guard lock(mutex_);
  since_.erase(key);
}

Duration Failures::left(const Key& key, const Json& pod, Time now) {
  const std::lock_guard lock(mutex_);
  Failed& failed = failed_[key];
  if (failed.pod_uid != model::uid_of(pod)) {
    failed.pod_uid = model::uid_of(pod);
    failed.count = was_stable(pod, now) ? 1 : failed.count + 1;
    failed.due = now + recreation_pause(failed.count);
  }
  return std::max<Duration>(failed.due - now, Duration::zero());
}

void Failures::forget(const Key& key) {
  const std::lock_guard lock(mutex_);
  failed_.erase(key);
}

void SandboxTools::forget(const Key& key) {
  sandboxes.forget(key);
  pods.forget(key);
  services.forget(key);
  pod_metadata.clear(key);
  transitional_status.clear(key);
  failures.forget(key);
  transitions.forget(key);
}

SandboxPass::SandboxPass(SandboxTools& tools, Object sandbox, const tracing::Span& span)
    : tools_(tools),
      sandbox_(std::move(sandbox)),
      span_(span),
      key_(model::key_of(*sandbox_)),
      old_status_(status_of(*sandbox_)),
      status_(old_status_.get_object()) {}

reconcile::Next SandboxPass::run() {
  set_trace_annotation();
  if (is_expired(*sandbox_, now())) {
    const bool is_marked = condition_reason(conditions(), kReady) == kReasonExpired;
    return is_marked ? tear_down() : mark_expired();
  }
  keep_children();
  if (is_expired(*sandbox_, now())) {
    apply_expiry(conditions(), *sandbox_, now());
    look_again_after(kAfterMark);
  } else if (const auto left = until_expiry(*sandbox_, now())) {
    look_again_after(*left);
  }
  write_status();
  throw_errors();
  return next_;
}

reconcile::Next SandboxPass::mark_expired() {
  apply_expiry(conditions(), *sandbox_, now());
  write_status();
  return kAfterMark;
}

reconcile::Next SandboxPass::tear_down() {
  const auto attempt = [&](std::string_view what, const auto& act) {
    try {
      act();
    } catch (const Error& error) {
      seen_.errors.push_back(fmt::format("failed to delete {}: {}", what, error.what()));
    }
  };
  attempt("pod", [&] {
    // Every pod that is its own, by whatever name: a second one must not be left running.
    std::vector<Object> pods = owned_pods();
    if (Object tracked = find_pod(pod_name_of(*sandbox_), true)) pods.push_back(tracked);
    for (const Object& each : pods)
      if (ownership_of(*each, *sandbox_) == Ownership::owned) remove_pod(*each);
  });
  attempt("service", [&] {
    const Object service = find_service();
    if (service && ownership_of(*service, *sandbox_) == Ownership::owned) remove_service(*service);
  });
  if (is_deleted_at_expiry(*sandbox_)) {
    bool is_deleted = false;
    attempt("sandbox", [&] {
      try {
        tools_.client.remove(client::kSandboxes, key_.ns, key_.name,
                             {.uid = std::string(model::uid_of(*sandbox_))});
      } catch (const model::StatusError& error) {
        if (error.status().code != 404) throw;
      }
      is_deleted = true;
    });
    if (is_deleted) return reconcile::kWhenChanged;
  }
  if (seen_.errors.empty()) {
    JsonArray kept = std::move(conditions());
    status_ = JsonObject{};
    status_["conditions"] = std::move(kept);
    apply_expiry(conditions(), *sandbox_, now());
  }
  write_status();
  throw_errors();
  return reconcile::kWhenChanged;
}

void SandboxPass::keep_children() {
  try {
    keep_volumes();
  } catch (const Error& error) {
    seen_.errors.emplace_back(error.what());
  }
  try {
    pod_ = keep_pod();
  } catch (const Error& error) {
    seen_.has_pod_failed = true;
    seen_.errors.emplace_back(error.what());
    tools_.transitions.note_failure(*sandbox_);
  }
  const bool is_ambiguous = seen_.owned_pods > 1;
  if (is_ambiguous) {
    seen_.has_pod_failed = true;
    tell_of_multiple_pods();
  }
  tell_of_pod();
  // Nothing is routed to a Sandbox whose pod is not known.
  if (!is_ambiguous) {
    try {
      service_ = keep_service();
      tell_of_service();
    } catch (const Error& error) {
      seen_.errors.emplace_back(error.what());
    }
  }
  seen_.pod = pod_.get();
  seen_.service = service_.get();
  apply_conditions(conditions(), *sandbox_, seen_, now());
}

void SandboxPass::tell_of_pod() {
  status_.erase("podIPs");
  status_.erase("nodeName");
  if (!pod_) return;
  status_["selector"] = fmt::format("{}={}", model::kNameHashLabel, model::name_hash(key_.name));
  if (ownership_of(*pod_, *sandbox_) != Ownership::owned) return;
  JsonArray addresses;
  if (const JsonArray* given = model::array_at(*pod_, {"status", "podIPs"}))
    for (const Json& each : *given) addresses.emplace_back(model::text_at(each, {"ip"}));
  if (!addresses.empty()) status_["podIPs"] = std::move(addresses);
  const std::string_view node = model::text_at(*pod_, {"spec", "nodeName"});
  if (!node.empty()) status_["nodeName"] = node;
}

void SandboxPass::tell_of_service() {
  status_.erase("service");
  status_.erase("serviceFQDN");
  if (!service_) return;
  status_["service"] = model::name_of(*service_);
  status_["serviceFQDN"] = service_fqdn(*service_, tools_.options.cluster_domain);
}

void SandboxPass::tell_of_multiple_pods() {
  if (condition_reason(conditions(), kReady) == kReasonMultiplePods) return;
  tools_.events.record(*sandbox_, reconcile::EventType::warning, kReasonMultiplePods, "Reconciling",
                       multiple_pods_message(seen_.owned_pods));
}

bool SandboxPass::is_worth_writing() const {
  if (model::is_same(old_status_, Json(status_))) return false;
  const auto without_node = [](JsonObject status) {
    status.erase("nodeName");
    return Json(std::move(status));
  };
  const Json* conditions = status_.if_contains("conditions");
  const bool is_ready = conditions != nullptr && is_true(conditions->as_array(), kReady);
  // The node alone goes with the next write, which comes when the pod runs.
  return is_ready || !model::is_same(without_node(old_status_.get_object()), without_node(status_));
}

bool SandboxPass::is_transitional() const {
  const Json wrapped = JsonObject{{"status", old_status_}};
  return !model::is_condition_true(wrapped, kReady) &&
         condition_reason(status_.at("conditions").as_array(), kReady) == kReasonNotReady;
}

Duration SandboxPass::status_window() const {
  const Duration window = std::min(tools_.options.transitional_status_window, kLongestDeferral);
  const auto owner = model::controller_of(*sandbox_);
  const bool is_idle = owner && owner->kind == "SandboxWarmPool";
  return window > Duration::zero() && is_idle ? kMemberStatusWindow : window;
}

void SandboxPass::write_status() {
  const bool is_worth = is_worth_writing();
  if (is_worth && is_transitional()) {
    const Duration left = tools_.transitional_status.left(key_, status_window(), now());
    if (left > Duration::zero()) return look_again_after(left);
  }
  tools_.transitional_status.clear(key_);
  if (!is_worth) return;
  const Json patch = JsonObject{{"status", difference(old_status_.get_object(), status_)}};
  try {
    tools_.sandboxes.remember(
        tools_.client.patch(client::kSandboxes, key_.ns, key_.name, client::PatchKind::merge, patch,
                            {.subresource = "status", .manager = kSandboxManager}));
    tools_.transitions.note(*sandbox_, old_status_, Json(status_), now());
  } catch (const model::StatusError& error) {
    if (error.status().code == 404) return;  // deleted meanwhile
    seen_.errors.emplace_back(error.what());
  }
}

JsonArray& SandboxPass::conditions() {
  Json& conditions = status_["conditions"];
  if (!conditions.is_array()) conditions = JsonArray();
  return conditions.get_array();
}

void SandboxPass::throw_errors() const {
  if (seen_.errors.empty()) return;
  throw Error(Code::unavailable,
              fmt::format("sandbox {}: {}", key_.text(), fmt::join(seen_.errors, "; ")));
}

void SandboxPass::look_again_after(Duration time) {
  next_ = next_ ? std::min(*next_, time) : time;
}

}  // namespace hearth::controllers
