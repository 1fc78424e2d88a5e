#include "controllers/claim_status.h"

#include <algorithm>
#include <vector>

#include "base/time_text.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

using model::Condition;
using model::JsonArray;
using model::JsonObject;
using model::text_at;

std::string text(std::string_view view) {
  return std::string(view);
}

Condition not_ready(std::string_view reason, std::string_view message) {
  return {.type = "Ready", .status = "False", .reason = text(reason), .message = text(message)};
}

// Since when a sandbox's condition is as it is: the claim's copy says the same.
Time transition_of(const Json& condition, Time now) {
  return parse_rfc3339(text_at(condition, {"lastTransitionTime"})).value_or(now);
}

Condition copy_of(const Json& condition) {
  return {.type = text(text_at(condition, {"type"})),
          .status = text(text_at(condition, {"status"})),
          .reason = text(text_at(condition, {"reason"})),
          .message = text(text_at(condition, {"message"}))};
}

Condition ready_of(const ClaimView& view) {
  if (!view.reason.empty()) return not_ready(view.reason, view.message);
  if (view.is_expired)
    return not_ready("ClaimExpired", "Claim expired. Sandbox cleanup initiated.");
  if (!view.sandbox) return not_ready("SandboxMissing", "Sandbox does not exist");
  if (ready_reason(*view.sandbox) == "SandboxExpired")
    return not_ready("SandboxExpired",
                     "Underlying Sandbox resource has expired independently of the Claim.");
  if (const Json* ready = model::find_condition(*view.sandbox, "Ready")) return copy_of(*ready);
  return not_ready("SandboxNotReady", "Sandbox is not ready");
}

void set_ready(JsonArray& conditions, const Json& claim, const ClaimView& view, Time now) {
  Condition ready = ready_of(view);
  ready.observed_generation = model::generation_of(claim);
  const Json* theirs = view.sandbox ? model::find_condition(*view.sandbox, "Ready") : nullptr;
  const bool is_copy = theirs && ready.status == text_at(*theirs, {"status"}) &&
                       ready.reason == text_at(*theirs, {"reason"});
  model::set_condition(conditions, ready, is_copy ? transition_of(*theirs, now) : now);
}

// Verbatim, with the sandbox's own observedGeneration. It outlives the sandbox of a claim that is
// over: people still want to know how it ended.
void set_finished(JsonArray& conditions, const ClaimView& view, Time now) {
  const Json* finished = view.sandbox ? model::find_condition(*view.sandbox, "Finished") : nullptr;
  if (finished) {
    Condition copy = copy_of(*finished);
    copy.observed_generation = model::number_at(*finished, {"observedGeneration"}).value_or(0);
    model::set_condition(conditions, copy, transition_of(*finished, now));
  } else if (view.sandbox || (!view.is_expired && view.reason.empty())) {
    model::remove_condition(conditions, "Finished");
  }
}

void set_sandbox(JsonObject& status, const ClaimView& view) {
  if (!view.sandbox) {
    if (view.is_foreign || view.reason.empty()) status.erase("sandbox");
    return;
  }
  const std::string name = text(model::name_of(*view.sandbox));
  Json& entry = status["sandbox"];
  // Words about another sandbox do not stay.
  if (!entry.is_object() || text_at(entry, {"name"}) != name) entry = JsonObject();
  JsonObject& sandbox = entry.get_object();
  sandbox["name"] = name;
  const JsonArray* addresses = model::array_at(*view.sandbox, {"status", "podIPs"});
  if (addresses && !addresses->empty())
    sandbox["podIPs"] = *addresses;
  else
    sandbox.erase("podIPs");
  if (!view.outfitted_pod.empty()) sandbox["outfittedPodUID"] = view.outfitted_pod;
}

// A merge patch from one object to another, by members; arrays are replaced.
JsonObject changes_between(const JsonObject& from, const JsonObject& to) {
  JsonObject changes;
  for (const auto& [key, value] : to) {
    const Json* there = from.if_contains(key);
    if (there && model::is_same(*there, value)) continue;
    if (there && there->is_object() && value.is_object())
      changes[key] = changes_between(there->get_object(), value.get_object());
    else
      changes[key] = value;
  }
  for (const auto& [key, value] : from)
    if (!to.contains(key)) changes[key] = nullptr;
  return changes;
}

}  // namespace

std::string_view ready_reason(const Json& object) {
  const Json* ready = model::find_condition(object, "Ready");
  return ready ? text_at(*ready, {"reason"}) : std::string_view();
}

Json claim_status(const Json& claim, const ClaimView& view, Time now) {
  JsonObject status;
  if (const JsonObject* old = model::object_at(claim, {"status"})) status = *old;
  JsonArray conditions;
  if (const JsonArray* old = model::array_at(claim, {"status", "conditions"})) conditions = *old;
  set_finished(conditions, view, now);
  set_ready(conditions, claim, view, now);
  std::vector<Json> sorted(conditions.begin(), conditions.end());
  std::ranges::sort(sorted, {}, [](const Json& each) { return text_at(each, {"type"}); });
  status["conditions"] = JsonArray(sorted.begin(), sorted.end());
  set_sandbox(status, view);
  return status;
}

Json status_patch(const Json& claim, const Json& status) {
  JsonObject old;
  if (const JsonObject* there = model::object_at(claim, {"status"})) old = *there;
  JsonObject changes = changes_between(old, status.get_object());
  if (changes.empty()) return nullptr;
  return JsonObject{{"metadata", {{"resourceVersion", model::resource_version_of(claim)}}},
                    {"status", std::move(changes)}};
}

}  // namespace hearth::controllers
