#include "apiserver/usage_metrics.h"

#include <algorithm>

#include <fmt/format.h>

#include "apiserver/strategy.h"
#include "base/time_text.h"
#include "model/container_id.h"
#include "model/meta.h"
#include "model/quantity.h"

namespace hearth::apiserver {
namespace {

using model::JsonArray;
using model::JsonObject;
using model::text_at;

constexpr std::string_view kVersion = "v1beta1";

Resource make_resource(std::string kind, std::string plural, bool namespaced) {
  Resource resource;
  resource.group = kMetricsGroup;
  resource.version = kVersion;
  resource.list_kind = kind + "List";
  resource.kind = std::move(kind);
  resource.plural = std::move(plural);
  resource.namespaced = namespaced;
  resource.measured = true;
  resource.storage_version = kVersion;
  resource.store_name = resource.group_resource().text();
  resource.strategy = find_strategy(resource.group, resource.version, resource.kind);
  return resource;
}

JsonObject amounts(const remote::Usage& usage) {
  return {{"cpu", fmt::format("{}n", usage.cpu_nanocores)},
          {"memory", fmt::format("{}Ki", usage.memory_bytes / 1024)}};
}

Json metrics_of(std::string_view kind, const Json& object, Time at, Duration window) {
  JsonObject metadata{{"name", model::name_of(object)}};
  if (const std::string_view ns = model::namespace_of(object); !ns.empty())
    metadata["namespace"] = ns;
  metadata["creationTimestamp"] = format_rfc3339(at);
  if (const Json* labels = model::find(object, {"metadata", "labels"}))
    metadata["labels"] = *labels;
  return JsonObject{
      {"kind", kind},
      {"apiVersion", fmt::format("{}/{}", kMetricsGroup, kVersion)},
      {"metadata", std::move(metadata)},
      {"timestamp", format_rfc3339(at)},
      {"window", fmt::format("{:.3f}s", std::chrono::duration<double>(window).count())}};
}

model::Quantity amount_in(const Json& holder, std::string_view what) {
  return model::Quantity::parse(text_at(holder, {"usage", what})).value_or(model::Quantity());
}

}  // namespace

std::vector<Resource> metrics_resources() {
  return {make_resource("NodeMetrics", "nodes", false), make_resource("PodMetrics", "pods", true)};
}

std::optional<Json> pod_metrics(const Json& pod, const remote::UsageReport& report) {
  JsonArray containers;
  Duration window{};
  for (const std::string_view list :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    const JsonArray* statuses = model::array_at(pod, {"status", list});
    if (!statuses) continue;
    for (const Json& status : *statuses) {
      if (!model::find(status, {"state", "running"})) continue;
      const auto found =
          report.sandboxes.find(model::sandbox_of_container(text_at(status, {"containerID"})));
      if (found == report.sandboxes.end()) continue;
      window = std::max(window, found->second.window);
      containers.push_back(
          JsonObject{{"name", text_at(status, {"name"})}, {"usage", amounts(found->second)}});
    }
  }
  if (containers.empty()) return std::nullopt;
  Json metrics = metrics_of("PodMetrics", pod, report.at, window);
  metrics.as_object()["containers"] = std::move(containers);
  return metrics;
}

std::optional<Json> node_metrics(const Json& node, const remote::UsageReport& report) {
  if (model::name_of(node) != report.node) return std::nullopt;
  Json metrics = metrics_of("NodeMetrics", node, report.at, report.all.window);
  metrics.as_object()["usage"] = amounts(report.all);
  return metrics;
}

void pod_metrics_cells(const Json& metrics, Time, JsonArray& cells) {
  model::Quantity cpu;
  model::Quantity memory;
  if (const JsonArray* containers = model::array_at(metrics, {"containers"}))
    for (const Json& container : *containers) {
      cpu = cpu + amount_in(container, "cpu");
      memory = memory + amount_in(container, "memory");
    }
  cells = {model::name_of(metrics), fmt::format("{}m", cpu.thousandths()),
           fmt::format("{}Ki", memory.units() / 1024), text_at(metrics, {"window"})};
}

void node_metrics_cells(const Json& metrics, Time, JsonArray& cells) {
  cells = {model::name_of(metrics), text_at(metrics, {"usage", "cpu"}),
           text_at(metrics, {"usage", "memory"}), text_at(metrics, {"window"})};
}

}  // namespace hearth::apiserver
