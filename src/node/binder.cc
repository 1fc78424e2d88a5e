#include "node/binder.h"

#include <algorithm>

#include "base/time_text.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "node/fit.h"
#include "node/life.h"

namespace hearth::node {
namespace {

using model::Json;
using model::JsonArray;
using model::JsonObject;

// What is taken may be free by then.
constexpr Duration kLookAgain = std::chrono::seconds(2);

bool is_for_us(const Json& pod) {
  if (model::is_deleting(pod) || !model::text_at(pod, {"spec", "nodeName"}).empty()) return false;
  if (is_terminal(model::text_at(pod, {"status", "phase"}))) return false;
  return !is_left_to_others(pod);
}

// It is gone, or placed, or another has its name: the watch tells.
void ignore_late(const model::StatusError& error) {
  if (error.status().code != 404 && error.status().code != 409) throw error;
}

}  // namespace

reconcile::Next Binder::reconcile(const model::Key& key) {
  const client::Object pod = unbound_.find(key.ns, key.name);
  if (!pod || !is_for_us(*pod)) return reconcile::kWhenChanged;
  const std::string why = vacancy_.take(*pod);
  if (!why.empty()) {
    refuse(*pod, why);
    return kLookAgain;
  }
  bind(*pod);
  return reconcile::kWhenChanged;
}

void Binder::bind(const Json& pod) {
  const model::Key key = model::key_of(pod);
  const JsonObject binding{
      {"apiVersion", "v1"},
      {"kind", "Binding"},
      {"metadata",
       JsonObject{{"name", key.name}, {"namespace", key.ns}, {"uid", model::uid_of(pod)}}},
      {"target", JsonObject{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node_}}}};
  try {
    client_.post(client::kPods, key.ns, key.name, "binding", binding);
    events_.record(pod, reconcile::EventType::normal, "Scheduled", "Binding",
                   fmt::format("Successfully assigned {}/{} to {}", key.ns, key.name, node_));
  } catch (const model::StatusError& error) {
    ignore_late(error);
  }
}

void Binder::refuse(const Json& pod, const std::string& why) {
  const std::string message = fmt::format("0/1 nodes are available: 1 {}.", why);
  const Json* before = model::find_condition(pod, "PodScheduled");
  if (before && model::text_at(*before, {"message"}) == message) return;
  const JsonObject condition{
      {"type", "PodScheduled"},    {"status", "False"},
      {"reason", "Unschedulable"}, {"message", message},
      {"lastProbeTime", nullptr},  {"lastTransitionTime", format_rfc3339(SystemClock().now())}};
  const JsonObject patch{{"metadata", JsonObject{{"uid", model::uid_of(pod)}}},
                         {"status", JsonObject{{"conditions", JsonArray{condition}}}}};
  const model::Key key = model::key_of(pod);
  events_.record(pod, reconcile::EventType::warning, "FailedScheduling", "Scheduling", message);
  try {
    client_.patch(client::kPods, key.ns, key.name, client::PatchKind::strategic, patch,
                  {.subresource = "status", .manager = "hearth-binder"});
  } catch (const model::StatusError& error) {
    ignore_late(error);
  }
}

}  // namespace hearth::node
