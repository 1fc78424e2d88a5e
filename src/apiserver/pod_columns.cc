// What kubectl get pods shows: one word for the state of a pod, made of its phase, its reason and
// the states of its containers. People know these words, so the rules are kubectl's to the letter.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "apiserver/builtin_columns.h"
#include "base/time_text.h"
#include "model/age.h"

namespace hearth::apiserver {
namespace {

using model::array_at;
using model::is_true_at;
using model::JsonArray;
using model::number_at;
using model::object_at;
using model::text_at;

struct Summary {
  std::size_t ready = 0;
  std::size_t total = 0;
  std::int64_t restarts = 0;
  std::optional<Time> last_restart;
  std::string state;
};

const JsonArray& list_at(const Json& value, model::Path path) {
  static const JsonArray kNone;
  const JsonArray* array = array_at(value, path);
  return array ? *array : kNone;
}

const Json* find_condition(const Json& pod, std::string_view type) {
  for (const Json& condition : list_at(pod, {"status", "conditions"}))
    if (text_at(condition, {"type"}) == type) return &condition;
  return nullptr;
}

bool is_condition_true(const Json& pod, std::string_view type) {
  const Json* condition = find_condition(pod, type);
  return condition && text_at(*condition, {"status"}) == "True";
}

// Init containers that go on beside the others: they count as containers.
std::set<std::string_view> sidecars(const Json& pod) {
  std::set<std::string_view> names;
  for (const Json& container : list_at(pod, {"spec", "initContainers"}))
    if (text_at(container, {"restartPolicy"}) == "Always")
      names.insert(text_at(container, {"name"}));
  return names;
}

struct Restarts {
  std::int64_t count = 0;
  std::optional<Time> last;

  void add(const Json& status) {
    count += number_at(status, {"restartCount"}).value_or(0);
    const auto finished = parse_rfc3339(text_at(status, {"lastState", "terminated", "finishedAt"}));
    if (finished && (!last || *last < *finished)) last = finished;
  }
};

// "Completed", "Error", "Signal:9", "ExitCode:1".
std::string how_terminated(const Json& status) {
  const std::string_view reason = text_at(status, {"state", "terminated", "reason"});
  if (!reason.empty()) return std::string(reason);
  const auto signal = number_at(status, {"state", "terminated", "signal"}).value_or(0);
  if (signal != 0) return fmt::format("Signal:{}", signal);
  return fmt::format("ExitCode:{}",
                     number_at(status, {"state", "terminated", "exitCode"}).value_or(0));
}

bool is_terminated(const Json& status) {
  return object_at(status, {"state", "terminated"}) != nullptr;
}

std::int64_t exit_code(const Json& status) {
  return number_at(status, {"state", "terminated", "exitCode"}).value_or(0);
}

// Whether the pod still waits for an init container; then `summary.state` tells for which.
bool look_at_init_containers(const Json& pod, Summary& summary, Restarts& all, Restarts& beside) {
  const auto going_on = sidecars(pod);
  const JsonArray& statuses = list_at(pod, {"status", "initContainerStatuses"});
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const Json& status = statuses[i];
    const bool is_sidecar = going_on.contains(text_at(status, {"name"}));
    all.add(status);
    if (is_sidecar) beside.add(status);
    if (is_terminated(status) && exit_code(status) == 0) continue;
    if (is_sidecar && is_true_at(status, {"started"})) {
      if (is_true_at(status, {"ready"})) ++summary.ready;
      continue;
    }
    const std::string_view waiting = text_at(status, {"state", "waiting", "reason"});
    if (is_terminated(status))
      summary.state = "Init:" + how_terminated(status);
    else if (!waiting.empty() && waiting != "PodInitializing")
      summary.state = fmt::format("Init:{}", waiting);
    else
      summary.state = fmt::format("Init:{}/{}", i, list_at(pod, {"spec", "initContainers"}).size());
    return true;
  }
  return false;
}

void look_at_containers(const Json& pod, Summary& summary, Restarts& restarts) {
  bool has_running = false;
  std::string error;
  const JsonArray& statuses = list_at(pod, {"status", "containerStatuses"});
  // From the back: the first container's state is the one that stays.
  for (std::size_t i = statuses.size(); i-- > 0;) {
    const Json& status = statuses[i];
    restarts.add(status);
    const std::string_view waiting = text_at(status, {"state", "waiting", "reason"});
    if (!waiting.empty()) {
      summary.state = waiting;
    } else if (is_terminated(status)) {
      summary.state = how_terminated(status);
      if (exit_code(status) != 0) error = summary.state;
    } else if (is_true_at(status, {"ready"}) && object_at(status, {"state", "running"})) {
      has_running = true;
      ++summary.ready;
    }
  }
  if (summary.state != "Completed") return;
  if (has_running && is_condition_true(pod, "Ready"))
    summary.state = "Running";
  else if (!error.empty())
    summary.state = error;
  else if (has_running)
    summary.state = "NotReady";
}

Summary summarise(const Json& pod) {
  Summary summary;
  summary.total = list_at(pod, {"spec", "containers"}).size() + sidecars(pod).size();
  const std::string_view phase = text_at(pod, {"status", "phase"});
  const std::string_view reason = text_at(pod, {"status", "reason"});
  summary.state = reason.empty() ? phase : reason;
  if (const Json* scheduled = find_condition(pod, "PodScheduled");
      scheduled && text_at(*scheduled, {"reason"}) == "SchedulingGated")
    summary.state = "SchedulingGated";

  Restarts restarts;
  Restarts beside;
  const bool is_initialising = look_at_init_containers(pod, summary, restarts, beside);
  if (!is_initialising || is_condition_true(pod, "Initialized")) {
    restarts = beside;
    look_at_containers(pod, summary, restarts);
  }
  summary.restarts = restarts.count;
  summary.last_restart = restarts.last;

  if (text_at(pod, {"metadata", "deletionTimestamp"}).empty()) return summary;
  if (reason == "NodeLost")
    summary.state = "Unknown";
  else if (phase != "Succeeded" && phase != "Failed")
    summary.state = "Terminating";
  return summary;
}

std::string readiness_gates(const Json& pod) {
  const JsonArray& gates = list_at(pod, {"spec", "readinessGates"});
  if (gates.empty()) return "<none>";
  const auto open = std::count_if(gates.begin(), gates.end(), [&](const Json& gate) {
    return is_condition_true(pod, text_at(gate, {"conditionType"}));
  });
  return fmt::format("{}/{}", open, gates.size());
}

}  // namespace

void pod_cells(const Json& pod, Time now, JsonArray& cells) {
  const Summary summary = summarise(pod);
  std::string restarts = fmt::format("{}", summary.restarts);
  if (summary.restarts != 0 && summary.last_restart)
    restarts += fmt::format(" ({} ago)", model::age_text(now - *summary.last_restart));
  const JsonArray& addresses = list_at(pod, {"status", "podIPs"});
  const std::string_view address =
      addresses.empty() ? text_at(pod, {"status", "podIP"}) : text_at(addresses[0], {"ip"});

  cells.emplace_back(text_at(pod, {"metadata", "name"}));
  cells.emplace_back(fmt::format("{}/{}", summary.ready, summary.total));
  cells.emplace_back(summary.state);
  cells.emplace_back(restarts);
  cells.emplace_back(object_age(pod, now));
  cells.emplace_back(text_or(address, "<none>"));
  cells.emplace_back(text_or(text_at(pod, {"spec", "nodeName"}), "<none>"));
  cells.emplace_back(text_or(text_at(pod, {"status", "nominatedNodeName"}), "<none>"));
  cells.emplace_back(readiness_gates(pod));
}

}  // namespace hearth::apiserver
