#include "controllers/sandbox_metrics.h"

#include <map>
#include <vector>

#include "base/time_text.h"
#include "controllers/sandbox_conditions.h"
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

metrics::Labels labels_of(const model::Json& sandbox) {
  const model::Json* ready = model::find_condition(sandbox, kReady);
  const bool is_expired = ready != nullptr && model::text_at(*ready, {"reason"}) == kReasonExpired;
  const bool is_warm = model::label_of(sandbox, model::kLaunchTypeLabel) == "warm";
  const std::string_view name = model::annotation_of(sandbox, model::kTemplateRefAnnotation);
  return {{"namespace", std::string(model::namespace_of(sandbox))},
          {"ready_condition", model::is_condition_true(sandbox, kReady) ? "true" : "false"},
          {"expired", is_expired ? "true" : "false"},
          {"launch_type", is_warm ? "warm" : "cold"},
          {"sandbox_template", name.empty() ? "unknown" : std::string(name)},
          {"owned_by", owner_kind(sandbox)},
          {"created_by",
           std::string(normalised_creator(model::label_of(sandbox, model::kCreatedByLabel)))}};
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

}  // namespace hearth::controllers
