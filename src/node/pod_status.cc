#include "node/pod_status.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/time_text.h"
#include "model/container_id.h"
#include "model/front_door.h"
#include "model/meta.h"

namespace hearth::node {
namespace {

using model::JsonArray;
using model::JsonObject;

// What a condition says, without its times.
struct Verdict {
  std::string_view status = "True";
  std::string_view reason = {};
  std::string message = {};
};

std::string_view status_list_of(Kind kind) {
  if (kind == Kind::ephemeral) return "ephemeralContainerStatuses";
  return kind == Kind::regular ? "containerStatuses" : "initContainerStatuses";
}

JsonObject terminated(const Ending& ending) {
  JsonObject state{{"exitCode", ending.exit_code}};
  if (ending.signal != 0) state["signal"] = ending.signal;
  state["reason"] = ending.reason;
  if (!ending.message.empty()) state["message"] = ending.message;
  // As a kubelet has it: there is no field for "never".
  state["startedAt"] =
      ending.started == Time() ? Json(nullptr) : Json(format_rfc3339(ending.started));
  state["finishedAt"] = format_rfc3339(ending.finished);
  if (!ending.sandbox.empty())
    state["containerID"] = fmt::format("{}{}", model::kContainerScheme, ending.sandbox);
  return JsonObject{{"terminated", std::move(state)}};
}

JsonObject waiting(std::string_view reason, std::string_view message) {
  JsonObject state{{"reason", reason}};
  if (!message.empty()) state["message"] = message;
  return JsonObject{{"waiting", std::move(state)}};
}

JsonObject state_of(const Container& container, bool is_initialising) {
  switch (container.stage) {
    case Stage::running:
      return JsonObject{{"running", JsonObject{{"startedAt", format_rfc3339(container.started)}}}};
    case Stage::terminated:
      if (container.end) return terminated(*container.end);
      break;
    case Stage::waiting:
      break;
  }
  if (!container.reason.empty()) return waiting(container.reason, container.message);
  return waiting(is_initialising ? "PodInitializing" : "ContainerCreating", {});
}

bool is_container_ready(const Container& container) {
  if (container.kind == Kind::init)
    return container.stage == Stage::terminated && container.end && container.end->exit_code == 0;
  return container.stage == Stage::running && container.is_ready && !container.is_paused;
}

JsonObject container_status(const Json& pod, const Container& container, bool is_initialising) {
  JsonObject status{{"name", container.name}};
  status["state"] = state_of(container, is_initialising);
  status["lastState"] = container.before ? terminated(*container.before) : JsonObject();
  status["ready"] = container.kind != Kind::ephemeral && is_container_ready(container);
  status["restartCount"] = container.attempt;
  status["image"] = container.stage == Stage::waiting
                        ? model::text_at(spec_of(pod, container), {"image"})
                        : container.image;
  status["imageID"] = container.image_id;
  if (!container.sandbox.empty())
    status["containerID"] = fmt::format("{}{}", model::kContainerScheme, container.sandbox);
  else if (container.before && !container.before->sandbox.empty())
    status["containerID"] = fmt::format("{}{}", model::kContainerScheme, container.before->sandbox);
  if (container.kind != Kind::ephemeral)
    status["started"] = container.stage == Stage::running && container.is_started;
  return status;
}

bool is_initialised(const Container& container) {
  if (container.kind == Kind::sidecar)
    return container.stage == Stage::running && container.is_started;
  return is_container_ready(container);
}

Verdict initialised(const Pod& known, std::string_view phase) {
  if (phase == "Succeeded") return {.reason = "PodCompleted"};
  std::vector<std::string_view> incomplete;
  for (const Container& container : known.containers) {
    if (container.kind == Kind::regular) {
      if (container.stage != Stage::waiting || container.before) return {};
    } else if (container.kind != Kind::ephemeral && !is_initialised(container)) {
      incomplete.push_back(container.name);
    }
  }
  if (incomplete.empty()) return {};
  return {.status = "False",
          .reason = "ContainersNotInitialized",
          .message =
              fmt::format("containers with incomplete status: [{}]", fmt::join(incomplete, " "))};
}

Verdict containers_ready(const Pod& known, std::string_view phase) {
  if (phase == "Succeeded") return {.status = "False", .reason = "PodCompleted"};
  if (phase == "Failed") return {.status = "False", .reason = "PodFailed"};
  if (known.is_paused)
    return {.status = "False", .reason = "Paused", .message = "the pod stands still"};
  std::vector<std::string_view> unready;
  for (const Container& container : known.containers)
    if (container.kind != Kind::init && container.kind != Kind::ephemeral &&
        !is_container_ready(container))
      unready.push_back(container.name);
  if (unready.empty()) return {};
  return {.status = "False",
          .reason = "ContainersNotReady",
          .message = fmt::format("containers with unready status: [{}]", fmt::join(unready, " "))};
}

// What others have to say before the pod counts as ready.
Verdict pod_ready(const Json& pod, const Verdict& containers) {
  if (containers.status != "True") return containers;
  std::vector<std::string> missing;
  if (const auto* gates = model::array_at(pod, {"spec", "readinessGates"})) {
    for (const Json& gate : *gates) {
      const std::string_view type = model::text_at(gate, {"conditionType"});
      const Json* condition = model::find_condition(pod, type);
      if (condition == nullptr)
        missing.push_back(fmt::format(
            "corresponding condition of pod readiness gate \"{}\" does not exist.", type));
      else if (const auto status = model::text_at(*condition, {"status"}); status != "True")
        missing.push_back(fmt::format(
            "the status of pod readiness gate \"{}\" is not \"True\", but {}", type, status));
    }
  }
  if (missing.empty()) return {};
  return {.status = "False",
          .reason = "ReadinessGatesNotReady",
          .message = fmt::format("{}", fmt::join(missing, ", "))};
}

void set_condition(JsonArray& conditions, std::string_view type, const Verdict& verdict,
                   std::string_view now) {
  JsonObject condition{{"type", type}, {"status", verdict.status}, {"lastProbeTime", nullptr}};
  condition["lastTransitionTime"] = now;
  if (!verdict.reason.empty()) condition["reason"] = verdict.reason;
  if (!verdict.message.empty()) condition["message"] = verdict.message;
  for (Json& one : conditions) {
    if (model::text_at(one, {"type"}) != type) continue;
    if (model::text_at(one, {"status"}) == verdict.status)
      condition["lastTransitionTime"] = model::text_at(one, {"lastTransitionTime"});
    one = std::move(condition);
    return;
  }
  conditions.push_back(std::move(condition));
}

JsonArray make_conditions(const Json& pod, const Pod& known, std::string_view phase, Time now) {
  JsonArray conditions;
  if (const auto* old = model::array_at(pod, {"status", "conditions"})) conditions = *old;
  const std::string moment = format_rfc3339(now);
  const Verdict containers = containers_ready(known, phase);
  const bool has_sandbox =
      !is_terminal(phase) &&
      std::ranges::any_of(known.containers, [](const Container& one) { return one.has_lived; });
  set_condition(conditions, "PodReadyToStartContainers", {.status = has_sandbox ? "True" : "False"},
                moment);
  set_condition(conditions, "Initialized", initialised(known, phase), moment);
  set_condition(conditions, "Ready", pod_ready(pod, containers), moment);
  set_condition(conditions, "ContainersReady", containers, moment);
  set_condition(conditions, "PodScheduled", {}, moment);
  if (known.failure == kEvicted)
    set_condition(
        conditions, "DisruptionTarget",
        {.status = "True", .reason = "TerminationByKubelet", .message = known.failure_message},
        moment);
  const bool was_paused = std::ranges::any_of(conditions, [](const Json& one) {
    return model::text_at(one, {"type"}) == model::kPausedCondition;
  });
  if (known.is_paused || was_paused)
    set_condition(conditions, model::kPausedCondition,
                  {.status = known.is_paused ? "True" : "False"}, moment);
  return conditions;
}

Ending ending_from(const Json& state) {
  Ending ending;
  ending.exit_code = static_cast<int>(model::number_at(state, {"exitCode"}).value_or(0));
  ending.signal = static_cast<int>(model::number_at(state, {"signal"}).value_or(0));
  ending.reason = model::text_at(state, {"reason"});
  ending.message = model::text_at(state, {"message"});
  ending.started = parse_rfc3339(model::text_at(state, {"startedAt"})).value_or(Time());
  ending.finished = parse_rfc3339(model::text_at(state, {"finishedAt"})).value_or(Time());
  ending.sandbox = model::sandbox_of_container(model::text_at(state, {"containerID"}));
  return ending;
}

void read_container(Container& container, const Json& status) {
  constexpr std::int64_t kMostRestarts = 1'000'000'000;
  container.attempt = static_cast<unsigned>(std::clamp<std::int64_t>(
      model::number_at(status, {"restartCount"}).value_or(0), 0, kMostRestarts));
  container.streak = container.attempt;
  if (const auto image = model::text_at(status, {"image"}); !image.empty()) container.image = image;
  container.image_id = model::text_at(status, {"imageID"});
  container.is_ready = model::is_true_at(status, {"ready"});
  container.is_started = model::is_true_at(status, {"started"});
  const std::string_view id = model::text_at(status, {"containerID"});
  container.sandbox = model::sandbox_of_container(id);
  container.has_lived = !id.empty();
  if (const Json* last = model::find(status, {"lastState", "terminated"}))
    container.before = ending_from(*last);
  if (const Json* running = model::find(status, {"state", "running"})) {
    container.stage = Stage::running;
    container.started = parse_rfc3339(model::text_at(*running, {"startedAt"})).value_or(Time());
  } else if (const Json* end = model::find(status, {"state", "terminated"})) {
    container.stage = Stage::terminated;
    container.end = ending_from(*end);
  } else {
    container.sandbox.clear();  // of its last life, if any
    container.reason = model::text_at(status, {"state", "waiting", "reason"});
    container.message = model::text_at(status, {"state", "waiting", "message"});
  }
}

const Json* find_container_status(const Json& pod, const Container& container) {
  const auto* statuses = model::array_at(pod, {"status", status_list_of(container.kind)});
  if (statuses == nullptr) return nullptr;
  for (const Json& status : *statuses)
    if (model::text_at(status, {"name"}) == container.name) return &status;
  return nullptr;
}

// Conditions are merged, so what is no longer said of one has to be taken back.
void take_back(JsonArray& conditions, const Json& pod) {
  for (Json& condition : conditions) {
    const Json* old = model::find_condition(pod, model::text_at(condition, {"type"}));
    if (old == nullptr || !old->is_object()) continue;
    for (const auto& [name, value] : old->get_object())
      condition.get_object().insert({{name, nullptr}});  // unless it is there
  }
}

}  // namespace

Json make_status(const Json& pod, const Pod& known, Time now) {
  Json made = JsonObject();
  if (const auto* old = model::object_at(pod, {"status"})) made = *old;
  JsonObject& status = made.get_object();
  const std::string_view phase = phase_of(pod, known);
  status["phase"] = phase;
  status["conditions"] = make_conditions(pod, known, phase, now);
  if (!known.host_address.empty()) {
    status["hostIP"] = known.host_address;
    status["hostIPs"] = JsonArray{JsonObject{{"ip", known.host_address}}};
  }
  if (!known.address.empty()) {
    status["podIP"] = known.address;
    status["podIPs"] = JsonArray{JsonObject{{"ip", known.address}}};
  }
  status["startTime"] = format_rfc3339(known.started);
  JsonArray init;
  JsonArray regular;
  JsonArray ephemeral;
  const bool is_initialising = initialised(known, phase).status != "True";
  for (const Container& container : known.containers) {
    JsonArray& list = container.kind == Kind::ephemeral ? ephemeral
                      : container.kind == Kind::regular ? regular
                                                        : init;
    list.push_back(container_status(pod, container, is_initialising));
  }
  if (!init.empty()) status["initContainerStatuses"] = std::move(init);
  if (!ephemeral.empty()) status["ephemeralContainerStatuses"] = std::move(ephemeral);
  // Of a pod that was not taken nothing is said, as nothing has been.
  const bool has_lived = std::ranges::any_of(known.containers, &Container::has_lived);
  if (known.failure.empty() || has_lived) status["containerStatuses"] = std::move(regular);
  for (const auto& [name, text] :
       {std::pair("reason", &known.failure), std::pair("message", &known.failure_message)}) {
    if (text->empty() || phase != "Failed")
      status.erase(name);
    else
      status[name] = *text;
  }
  return made;
}

Json status_patch(const Json& pod, const Json& status) {
  JsonObject changes;
  const Json* old = model::find(pod, {"status"});
  static const Json kNone = JsonObject();
  const Json& before = old && old->is_object() ? *old : kNone;
  for (const auto& [name, value] : status.get_object()) {
    const Json* one = before.get_object().if_contains(name);
    if (one == nullptr || !model::is_same(*one, value)) changes[name] = value;
  }
  for (const auto& [name, value] : before.get_object())
    if (!status.get_object().contains(name)) changes[name] = nullptr;
  if (changes.empty()) return nullptr;
  if (Json* conditions = changes.if_contains("conditions")) take_back(conditions->get_array(), pod);
  // The same goes for addresses.
  for (const std::string_view addresses : {"podIPs", "hostIPs"})
    if (Json* changed = changes.if_contains(addresses); changed && changed->is_array())
      changed->get_array().push_back(JsonObject{{"$patch", "replace"}});
  return JsonObject{{"metadata", JsonObject{{"uid", model::uid_of(pod)}}},
                    {"status", std::move(changes)}};
}

Pod known_from_status(const Json& pod) {
  Pod known;
  known.containers = containers_of(pod);
  for (Container& container : known.containers)
    if (const Json* status = find_container_status(pod, container))
      read_container(container, *status);
  known.address = model::text_at(pod, {"status", "podIP"});
  known.host_address = model::text_at(pod, {"status", "hostIP"});
  known.started = parse_rfc3339(model::text_at(pod, {"status", "startTime"})).value_or(Time());
  if (model::text_at(pod, {"status", "phase"}) == "Failed") {
    known.failure = model::text_at(pod, {"status", "reason"});
    known.failure_message = model::text_at(pod, {"status", "message"});
  }
  return known;
}

}  // namespace hearth::node
