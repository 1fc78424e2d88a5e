#include "controllers/claim_metrics.h"

#include <string>
#include <vector>

#include "base/time_text.h"
#include "controllers/sandbox_metrics.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

std::string launch_type_of(const Json& sandbox) {
  const std::string_view type = model::label_of(sandbox, model::kLaunchTypeLabel);
  return std::string(type == "warm" || type == "cold" ? type : "unknown");
}

std::string template_of(const Json& sandbox) {
  const std::string_view name = model::annotation_of(sandbox, model::kTemplateRefAnnotation);
  return std::string(name.empty() ? "__unknown__" : name);
}

const std::vector<double>& claim_buckets() {
  static const std::vector<double> kBuckets = {100,  250,  500,   750,   1000,  1250,   1500,  2000,
                                               2500, 5000, 10000, 30000, 60000, 120000, 240000};
  return kBuckets;
}

double milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

std::string_view known_creator(std::string_view creator) {
  for (const std::string_view known : {"go-client", "python-client", "controller"})
    if (creator == known) return known;
  return "unknown";
}

void ClaimMetrics::count_creation(const Json& claim, const Json& sandbox, std::string_view pool) {
  const bool is_ready = model::is_condition_true(sandbox, "Ready");
  registry_
      .counter("agent_sandbox_claim_creation_total", "Claims that were given a sandbox.",
               {{"namespace", std::string(model::namespace_of(claim))},
                {"sandbox_template", template_of(sandbox)},
                {"launch_type", launch_type_of(sandbox)},
                {"warmpool_name", std::string(pool)},
                {"pod_condition", is_ready ? "ready" : "not_ready"},
                {"created_by",
                 std::string(known_creator(model::label_of(claim, model::kCreatedByLabel)))}})
      .add();
}

void ClaimMetrics::observe(std::string_view name, std::string_view help, const Json& sandbox,
                           Duration time) {
  // Clocks of clients are not ours: what would be negative says nothing.
  if (time < Duration::zero()) return;
  registry_
      .histogram(
          name, help, claim_buckets(),
          {{"launch_type", launch_type_of(sandbox)}, {"sandbox_template", template_of(sandbox)}})
      .observe(milliseconds(time));
}

void ClaimMetrics::observe_ready(const Json& claim, const Json& sandbox, Time first_seen,
                                 Time now) {
  const auto since = [&](std::string_view annotation) {
    return parse_rfc3339(model::annotation_of(claim, annotation));
  };
  if (const auto webhook = since(model::kWebhookObservedAnnotation))
    observe("agent_sandbox_claim_startup_latency_ms", "From a claim's admission to Ready.", sandbox,
            now - *webhook);
  observe("agent_sandbox_claim_controller_startup_latency_ms",
          "From a claim's first sight by the controller to Ready.", sandbox,
          now - since(model::kFirstObservedAnnotation).value_or(first_seen));
  if (const auto client = since(model::kFirstRequestedAnnotation))
    observe("agent_sandbox_client_claim_startup_latency_ms", "From a client's wish to Ready.",
            sandbox, now - *client);
  observe_creation_latency(registry_, sandbox, launch_type_of(sandbox), template_of(sandbox));
}

}  // namespace hearth::controllers
