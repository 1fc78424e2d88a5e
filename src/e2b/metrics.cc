// What sandboxes and teams use: GET /sandboxes/{id}/metrics, /sandboxes/metrics,
// /teams/{id}/metrics and /teams/{id}/metrics/max.
#include <algorithm>
#include <cmath>

#include "base/time_text.h"
#include "e2b/answers.h"
#include "e2b/routes.h"
#include "e2b/sampler.h"
#include "e2b/state.h"
#include "e2b/view.h"

namespace hearth::e2b {
namespace {

constexpr std::size_t kMostIds = 100;
// The last second that a Time can hold: April 2262.
constexpr std::int64_t kLastSecond = 9'223'372'036;

Range query_range(const Call& call) {
  const auto from = call.query_number("start", 0, kLastSecond);
  const auto to = call.query_number("end", 0, kLastSecond);
  const Range range{Second(std::chrono::seconds(from.value_or(0))),
                    Second(std::chrono::seconds(to.value_or(kLastSecond)))};
  if (range.to < range.from) refuse(400, "the parameter 'start' is after 'end'");
  return range;
}

JsonObject answer_at(Second at) {
  return {{"timestamp", format_rfc3339(at)}, {"timestampUnix", at.time_since_epoch().count()}};
}

double rounded(double value) {
  return std::round(value * 100) / 100;
}

JsonObject render(const Core& core, const Json& sandbox, const UsageSample& sample) {
  constexpr std::uint64_t kMib = 1 << 20;
  const Size size = size_of(core, sandbox);
  const auto or_else = [](std::uint64_t limit, std::int64_t mib) {
    return limit > 0 ? limit : static_cast<std::uint64_t>(mib) * kMib;
  };
  JsonObject answer = answer_at(sample.at);
  answer["cpuCount"] = size.cpu_count;
  answer["cpuUsedPct"] = rounded(sample.cpu_percent);
  answer["memUsed"] = sample.memory_bytes;
  answer["memTotal"] = or_else(sample.memory_limit_bytes, size.memory_mib);
  answer["memCache"] = 0;
  answer["diskUsed"] = sample.disk_bytes;
  answer["diskTotal"] = or_else(sample.disk_limit_bytes, size.disk_mib);
  return answer;
}

http::Response of_sandbox(const Core& core, const Sampler& sampler, const Call& call) {
  const Range range = query_range(call);
  const Object sandbox = call.find_sandbox(core);
  model::JsonArray all;
  // As of one that nobody has looked at yet: who asks for a chart to the end has not failed.
  if (!sandbox) return answer_json(200, std::move(all));
  for (const UsageSample& each : sampler.usage(*sandbox, range))
    all.push_back(render(core, *sandbox, each));
  return answer_json(200, std::move(all));
}

// The last sample of each. Ids of nobody, or of others, are left out.
http::Response of_sandboxes(const Core& core, const Sampler& sampler, const Call& call) {
  const std::vector<std::string> ids = split_list(call.query("sandbox_ids").value_or(""));
  if (ids.empty()) refuse(400, "the parameter 'sandbox_ids' is required");
  if (ids.size() > kMostIds)
    refuse(400, "the parameter 'sandbox_ids' has {} ids; {} are the most", ids.size(), kMostIds);
  JsonObject all;
  for (const std::string& each : ids) {
    const std::string id = parse_sandbox_id(each);
    const Object sandbox = core.find_sandbox(call.holder.ns, id);
    if (!sandbox) continue;
    if (const auto sample = sampler.latest_usage(*sandbox))
      all[id] = render(core, *sandbox, *sample);
  }
  return answer_json(200, JsonObject{{"sandboxes", std::move(all)}});
}

// One's own alone; whether others exist is not told.
void check_team(const Call& call) {
  if (call.request.parameter("id") != call.holder.team)
    refuse(403, "the API key is not one of team '{}'", call.request.parameter("id"));
}

http::Response of_team(const Sampler& sampler, const Call& call) {
  check_team(call);
  model::JsonArray all;
  for (const TeamSample& each : sampler.team(call.holder.ns, query_range(call))) {
    JsonObject answer = answer_at(each.at);
    answer["concurrentSandboxes"] = each.sandboxes;
    answer["sandboxStartRate"] = rounded(each.starts_per_second);
    all.push_back(std::move(answer));
  }
  return answer_json(200, std::move(all));
}

http::Response most_of_team(const Core& core, const Sampler& sampler, const Call& call) {
  check_team(call);
  const std::string metric = call.query("metric").value_or("");
  if (metric != "concurrent_sandboxes" && metric != "sandbox_start_rate")
    refuse(400,
           "the parameter 'metric' is '{}'; there are concurrent_sandboxes and sandbox_start_rate",
           metric);
  const bool is_rate = metric == "sandbox_start_rate";
  const auto value = [&](const TeamSample& each) {
    return is_rate ? rounded(each.starts_per_second) : static_cast<double>(each.sandboxes);
  };
  const auto samples = sampler.team(call.holder.ns, query_range(call));
  const auto most = std::ranges::max_element(samples, {}, value);
  const bool is_none = most == samples.end();
  JsonObject answer =
      answer_at(is_none ? std::chrono::floor<std::chrono::seconds>(core.now()) : most->at);
  answer["value"] = is_none ? 0.0 : value(*most);
  return answer_json(200, answer);
}

}  // namespace

void add_metrics_routes(Routes& routes, Core& core, const Sampler& sampler) {
  routes.add("GET", "/sandboxes/{id}/metrics",
             [&](const Call& call) { return of_sandbox(core, sampler, call); });
  routes.add("GET", "/sandboxes/metrics",
             [&](const Call& call) { return of_sandboxes(core, sampler, call); });
  routes.add("GET", "/teams/{id}/metrics",
             [&](const Call& call) { return of_team(sampler, call); });
  routes.add("GET", "/teams/{id}/metrics/max",
             [&](const Call& call) { return most_of_team(core, sampler, call); });
}

}  // namespace hearth::e2b
