#include "controllers/sandbox_conditions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "controllers/sandbox_lifetime.h"
#include "controllers/sandbox_pod.h"
#include "controllers/sandbox_service.h"
#include "model/front_door.h"

namespace hearth::controllers {

using model::Condition;

namespace {

constexpr std::string_view kSuspended = "Suspended";
constexpr std::string_view kFinished = "Finished";
constexpr std::string_view kPodScheduled = "PodScheduled";
constexpr std::string_view kSucceededMessage = "Pod completed successfully";
constexpr std::string_view kFailedMessage = "Pod failed";
constexpr std::string_view kPausedMessage = "Sandbox is paused";
// A condition's message may have 32768 characters; errors of servers may be longer.
constexpr std::size_t kLongestMessage = 8192;

Condition condition(std::string_view type, std::string_view status, std::string_view reason,
                    std::string_view message) {
  return {.type = std::string(type),
          .status = std::string(status),
          .reason = std::string(reason),
          .message = std::string(message)};
}

std::string_view phase_of(const Json& pod) {
  return model::text_at(pod, {"status", "phase"});
}

bool is_owned(const Json* pod, const Json& sandbox) {
  return pod != nullptr && model::is_controlled_by(*pod, model::uid_of(sandbox));
}

bool is_paused(const Json* pod, const Json& sandbox) {
  return is_owned(pod, sandbox) && model::is_condition_true(*pod, model::kPausedCondition);
}

bool is_pod_unknown(const Seen& seen) {
  return seen.pod == nullptr && seen.has_pod_failed;
}

Condition suspended_condition(const Json& sandbox, const Seen& seen) {
  if (!is_suspended(sandbox))
    return condition(kSuspended, "False", "NotSuspended", "Sandbox is not suspended");
  if (is_pod_unknown(seen))
    return condition(kSuspended, "Unknown", "PodStateUnknown",
                     "Pod state is unknown. Sandbox suspension cannot be confirmed");
  if (seen.pod == nullptr)
    return condition(kSuspended, "True", "PodTerminated",
                     "Pod has been terminated. Sandbox is suspended");
  if (!is_owned(seen.pod, sandbox))
    return condition(kSuspended, "False", "PodNotOwned",
                     "Refused to delete pod because it is not owned by this sandbox");
  return condition(kSuspended, "False", "PodTerminating",
                   "Pod is terminating. Sandbox is suspending");
}

// As its pod has it; there is none before it is paused for the first time, and none afterwards.
std::optional<Condition> paused_condition(const Json& sandbox, const Seen& seen) {
  if (!is_paused(seen.pod, sandbox)) return std::nullopt;
  return condition(model::kPausedCondition, "True", "PodPaused", kPausedMessage);
}

std::optional<Condition> finished_condition(const Json& sandbox, const Seen& seen) {
  if (!is_owned(seen.pod, sandbox)) return std::nullopt;
  const std::string_view phase = phase_of(*seen.pod);
  if (phase == "Succeeded") return condition(kFinished, "True", "PodSucceeded", kSucceededMessage);
  // One that is made again has not finished.
  if (phase == "Failed" && !recreates_failed_pods(sandbox))
    return condition(kFinished, "True", "PodFailed", kFailedMessage);
  return std::nullopt;
}

Condition copied_scheduling(const Json& scheduled) {
  Condition copied =
      condition(kPodScheduled, model::text_at(scheduled, {"status"}),
                model::text_at(scheduled, {"reason"}), model::text_at(scheduled, {"message"}));
  if (copied.reason.empty())
    copied.reason = copied.status == "True" ? "PodScheduled" : "PodSchedulingUnknown";
  return copied;
}

std::optional<Condition> scheduled_condition(const Json& sandbox, const Seen& seen) {
  if (is_pod_unknown(seen))
    return condition(kPodScheduled, "Unknown", "PodSchedulingUnknown",
                     "Pod state is unknown. Pod scheduling cannot be determined");
  if (!is_owned(seen.pod, sandbox)) return std::nullopt;
  if (const Json* scheduled = model::find_condition(*seen.pod, kPodScheduled))
    return copied_scheduling(*scheduled);
  return condition(kPodScheduled, "Unknown", "PodSchedulingUnknown",
                   "Pod has not reported a PodScheduled condition yet");
}

struct Readiness {
  bool is_ready = false;
  std::string message;
};

Readiness pod_readiness(const Json* pod) {
  if (pod == nullptr) return {false, "Pod does not exist"};
  const std::string_view phase = phase_of(*pod);
  if (phase != "Running") return {false, fmt::format("Pod exists with phase: {}", phase)};
  if (!model::is_condition_true(*pod, kReady)) return {false, "Pod is Running but not Ready"};
  const JsonArray* addresses = model::array_at(*pod, {"status", "podIPs"});
  if (addresses == nullptr || addresses->empty())
    return {false, "Pod is Ready but has no podIPs yet"};
  return {true, "Pod is Ready"};
}

Readiness readiness(const Json& sandbox, const Seen& seen) {
  Readiness ready = pod_readiness(seen.pod);
  const ServiceWish wish = service_wish(sandbox);
  const bool needs_service =
      wish == ServiceWish::wanted || (wish == ServiceWish::unset && seen.service != nullptr);
  if (needs_service) {
    const bool has_service = seen.service != nullptr;
    ready.message += has_service ? "; Service Exists" : "; Service does not exist";
    ready.is_ready = ready.is_ready && has_service;
  }
  return ready;
}

Condition not_ready(std::string_view reason, std::string_view message) {
  return condition(kReady, "False", reason, message);
}

// Cut between characters.
std::string within_limit(std::string text) {
  if (text.size() <= kLongestMessage) return text;
  std::size_t end = kLongestMessage;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text;
}

Condition ready_condition(const Json& sandbox, const Seen& seen) {
  if (seen.owned_pods > 1)
    return not_ready(kReasonMultiplePods, multiple_pods_message(seen.owned_pods));
  if (!seen.errors.empty()) {
    std::string joined;
    for (const std::string& error : seen.errors) joined += (joined.empty() ? "" : "\n") + error;
    return not_ready("ReconcilerError", within_limit("Error seen: " + joined));
  }
  if (is_suspended(sandbox))
    return not_ready("SandboxSuspended",
                     seen.pod == nullptr ? "Sandbox is suspended" : "Sandbox is suspending");
  const std::string_view phase = seen.pod == nullptr ? "" : phase_of(*seen.pod);
  if (phase == "Succeeded") return not_ready("PodSucceeded", kSucceededMessage);
  if (phase == "Failed") return not_ready("PodFailed", kFailedMessage);
  if (is_paused(seen.pod, sandbox)) return not_ready("SandboxPaused", kPausedMessage);

  const Readiness ready = readiness(sandbox, seen);
  return ready.is_ready ? condition(kReady, "True", "DependenciesReady", ready.message)
                        : not_ready(kReasonNotReady, ready.message);
}

}  // namespace

std::string multiple_pods_message(std::size_t count) {
  return fmt::format(
      "multiple Pods ({}) are controlled by this Sandbox; refusing to choose or create a Pod",
      count);
}

std::vector<Condition> conditions_of(const Json& sandbox, const Seen& seen) {
  std::vector<Condition> conditions = {suspended_condition(sandbox, seen)};
  if (auto finished = finished_condition(sandbox, seen)) conditions.push_back(*finished);
  if (auto scheduled = scheduled_condition(sandbox, seen)) conditions.push_back(*scheduled);
  if (auto paused = paused_condition(sandbox, seen)) conditions.push_back(*paused);
  conditions.push_back(ready_condition(sandbox, seen));
  for (Condition& each : conditions) each.observed_generation = model::generation_of(sandbox);
  return conditions;
}

void apply_conditions(JsonArray& conditions, const Json& sandbox, const Seen& seen, Time now) {
  const std::vector<Condition> computed = conditions_of(sandbox, seen);
  for (const Condition& each : computed) model::set_condition(conditions, each, now);
  for (const std::string_view type : {kFinished, kPodScheduled, model::kPausedCondition})
    if (std::ranges::find(computed, type, &Condition::type) == computed.end())
      model::remove_condition(conditions, type);
}

void apply_expiry(JsonArray& conditions, const Json& sandbox, Time now) {
  Condition expired = not_ready(kReasonExpired, "Sandbox has expired");
  expired.observed_generation = model::generation_of(sandbox);
  model::set_condition(conditions, expired, now);
  model::remove_condition(conditions, kPodScheduled);
  model::remove_condition(conditions, model::kPausedCondition);
}

std::string_view condition_reason(const JsonArray& conditions, std::string_view type) {
  for (const Json& each : conditions)
    if (model::text_at(each, {"type"}) == type) return model::text_at(each, {"reason"});
  return {};
}

bool is_true(const JsonArray& conditions, std::string_view type) {
  return std::ranges::any_of(conditions, [&](const Json& each) {
    return model::text_at(each, {"type"}) == type && model::text_at(each, {"status"}) == "True";
  });
}

}  // namespace hearth::controllers
