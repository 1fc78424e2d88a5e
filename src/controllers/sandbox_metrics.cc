#include "controllers/sandbox_metrics.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/time_text.h"
#include "controllers/sandbox_conditions.h"
#include "controllers/sandbox_lifetime.h"
#include "controllers/sandbox_pod.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

std::string owner_kind(const model::Json& sandbox) {
  const auto owner = model::controller_of(sandbox);
  if (!owner || owner->group() != model::kExtensionsGroup) return "None";
  const bool is_known = owner->kind == "SandboxClaim" || owner->kind == "SandboxWarmPool";
  return is_known ? owner->kind : "None";
}

std::string template_of(const model::Json& sandbox) {
  const std::string_view name = model::annotation_of(sandbox, model::kTemplateRefAnnotation);
  return name.empty() ? "unknown" : std::string(name);
}

metrics::Labels labels_of(const model::Json& sandbox) {
  const model::Json* ready = model::find_condition(sandbox, kReady);
  const bool is_expired = ready != nullptr && model::text_at(*ready, {"reason"}) == kReasonExpired;
  const bool is_warm = model::label_of(sandbox, model::kLaunchTypeLabel) == "warm";
  return {{"namespace", std::string(model::namespace_of(sandbox))},
          {"ready_condition", model::is_condition_true(sandbox, kReady) ? "true" : "false"},
          {"expired", is_expired ? "true" : "false"},
          {"launch_type", is_warm ? "warm" : "cold"},
          {"sandbox_template", template_of(sandbox)},
          {"owned_by", owner_kind(sandbox)},
          {"created_by",
           std::string(normalised_creator(model::label_of(sandbox, model::kCreatedByLabel)))}};
}

// Of everything that happens to a Sandbox.
metrics::Labels transition_labels(const model::Json& sandbox) {
  return {{"namespace", std::string(model::namespace_of(sandbox))},
          {"sandbox_template", template_of(sandbox)},
          {"owned_by", owner_kind(sandbox)}};
}

metrics::Labels transition_labels(const model::Json& sandbox, std::string_view name,
                                  std::string_view value) {
  metrics::Labels labels = transition_labels(sandbox);
  labels.emplace_back(name, value);
  return labels;
}

// Some engines suspend within milliseconds, some clusters take minutes.
std::vector<double> move_buckets() {
  return {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 240000};
}

// What a status says, of what counts here.
struct Moment {
  bool suspended = false;
  bool suspending = false;
  bool ready = false;
  bool expired = false;
  std::string_view finished;  // the reason
};

Moment moment_of(const model::Json& status) {
  const model::JsonArray* conditions = model::array_at(status, {"conditions"});
  if (conditions == nullptr) return {};
  const bool is_finished = is_true(*conditions, "Finished");
  const bool is_suspended = is_true(*conditions, "Suspended");
  const std::string_view ready_reason = condition_reason(*conditions, kReady);
  return {.suspended = is_suspended,
          .suspending = !is_suspended && ready_reason == "SandboxSuspended",
          .ready = is_true(*conditions, kReady),
          .expired = ready_reason == kReasonExpired,
          .finished = is_finished ? condition_reason(*conditions, "Finished") : std::string_view()};
}

std::vector<double> creation_buckets() {
  return {50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 240000, 300000, 600000};
}

}  // namespace

void collect_sandboxes(metrics::Registry& registry, const client::WatchCache& sandboxes) {
  registry.collect("agent_sandboxes", "Sandboxes that there are.", metrics::Kind::gauge,
                   [&sandboxes] {
                     std::map<metrics::Labels, double> counts;
                     for (const client::Object& each : sandboxes.list()) ++counts[labels_of(*each)];
                     std::vector<metrics::Sample> samples;
                     samples.reserve(counts.size());
                     for (const auto& [labels, count] : counts) samples.push_back({labels, count});
                     return samples;
                   });
}

void observe_creation_latency(metrics::Registry& registry, const model::Json& sandbox,
                              std::string_view launch_type, std::string_view sandbox_template) {
  const model::Json* ready = model::find_condition(sandbox, kReady);
  if (ready == nullptr || model::text_at(*ready, {"status"}) != "True") return;
  const auto began = model::created_at(sandbox);
  const auto ended = parse_rfc3339(model::text_at(*ready, {"lastTransitionTime"}));
  if (!began || !ended || *ended < *began) return;
  const std::chrono::duration<double, std::milli> latency = *ended - *began;
  registry
      .histogram("agent_sandbox_creation_latency_ms",
                 "From the creation of a Sandbox to its being ready, in milliseconds.",
                 creation_buckets(),
                 {{"namespace", std::string(model::namespace_of(sandbox))},
                  {"launch_type", std::string(launch_type)},
                  {"sandbox_template", std::string(sandbox_template)}})
      .observe(latency.count());
}

void SandboxTransitions::note(const model::Json& sandbox, const model::Json& status_before,
                              const model::Json& status_now, Time now) {
  if (registry_ == nullptr) return;
  const Moment was = moment_of(status_before);
  const Moment is = moment_of(status_now);
  const model::Key key = model::key_of(sandbox);
  if (is.suspending && !was.suspending) begin(key, Move::suspend, now);
  if (is.suspended && !was.suspended) end(sandbox, Move::suspend, now);
  if (was.suspended && !is.suspended) begin(key, Move::resume, now);
  if (is.ready && !was.ready) end(sandbox, Move::resume, now);
  if (!is.finished.empty() && was.finished.empty())
    registry_
        ->counter("agent_sandbox_finished_total", "Sandboxes whose pod has ended for good.",
                  transition_labels(sandbox, "reason", is.finished))
        .add();
  if (is.expired && !was.expired)
    registry_
        ->counter("agent_sandbox_expired_total", "Sandboxes whose time was over.",
                  transition_labels(sandbox, "shutdown_policy",
                                    is_deleted_at_expiry(sandbox) ? "Delete" : "Retain"))
        .add();
}

void SandboxTransitions::note_failure(const model::Json& sandbox) {
  if (registry_ == nullptr) return;
  std::optional<Move> move;
  if (is_suspended(sandbox)) {
    if (!model::is_condition_true(sandbox, "Suspended")) move = Move::suspend;
  } else {
    const std::lock_guard lock(mutex_);
    const auto found = began_.find(model::key_of(sandbox));
    if (found != began_.end() && found->second.move == Move::resume) move = Move::resume;
  }
  if (move) count_end(sandbox, *move, "error");
}

void SandboxTransitions::forget(const model::Key& key) {
  const std::lock_guard lock(mutex_);
  began_.erase(key);
}

void SandboxTransitions::begin(const model::Key& key, Move move, Time now) {
  const std::lock_guard lock(mutex_);
  began_.insert_or_assign(key, Began{.move = move, .at = now});
}

// Being ready is the end of a resumption only for one that was suspended before.
void SandboxTransitions::end(const model::Json& sandbox, Move move, Time now) {
  std::optional<Began> began;
  {
    const std::lock_guard lock(mutex_);
    const auto found = began_.find(model::key_of(sandbox));
    if (found != began_.end()) {
      if (found->second.move == move) began = found->second;
      began_.erase(found);
    }
  }
  if (move == Move::resume && !began) return;
  count_end(sandbox, move, "success");
  if (!began) return;
  const std::chrono::duration<double, std::milli> took = now - began->at;
  const bool is_suspend = move == Move::suspend;
  registry_
      ->histogram(
          is_suspend ? "agent_sandbox_suspend_latency_ms" : "agent_sandbox_resume_latency_ms",
          is_suspend ? "From a Sandbox's suspension to the end of its pod, in milliseconds."
                     : "From a Sandbox's resumption to its being ready, in milliseconds.",
          move_buckets(), transition_labels(sandbox))
      .observe(took.count());
}

void SandboxTransitions::count_end(const model::Json& sandbox, Move move, std::string_view result) {
  const bool is_suspend = move == Move::suspend;
  registry_
      ->counter(is_suspend ? "agent_sandbox_suspend_total" : "agent_sandbox_resume_total",
                is_suspend ? "Suspensions of Sandboxes, and passes that failed at one."
                           : "Resumptions of Sandboxes, and passes that failed at one.",
                transition_labels(sandbox, "result", result))
      .add();
}

}  // namespace hearth::controllers
