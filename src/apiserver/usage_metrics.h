// metrics.k8s.io/v1beta1: what nodes and pods use, in the words of metrics-server.
#pragma once

#include <optional>

#include "apiserver/resource.h"
#include "remote/usage.h"

namespace hearth::apiserver {

inline constexpr std::string_view kMetricsGroup = "metrics.k8s.io";

// Its two resources. They are read, and nothing of them is kept.
std::vector<Resource> metrics_resources();

// Of a pod whose containers were measured; nothing: none runs, or not there.
std::optional<Json> pod_metrics(const Json& pod, const remote::UsageReport& report);
// Of that node alone.
std::optional<Json> node_metrics(const Json& node, const remote::UsageReport& report);

// Cells of kubectl get (builtin_columns.h).
void pod_metrics_cells(const Json& metrics, Time now, model::JsonArray& cells);
void node_metrics_cells(const Json& metrics, Time now, model::JsonArray& cells);

}  // namespace hearth::apiserver
