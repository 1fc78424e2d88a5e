#include "node/evictor.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "model/meta.h"
#include "node/life.h"
#include "node/plan.h"
#include "node/sandbox_ids.h"

namespace hearth::node {
namespace {

// Who was told to go and is still here after this long is not waited for.
constexpr Duration kPatience = std::chrono::seconds(30);

bool may_go(const Json& pod) {
  return !model::is_deleting(pod) && !is_terminal(model::text_at(pod, {"status", "phase"}));
}

// The layer of who did not ask for a disk is in memory (see Planner).
bool has_disk(const Json& container) {
  return model::find(container, {"resources", "limits", "ephemeral-storage"}) != nullptr ||
         model::find(container, {"resources", "requests", "ephemeral-storage"}) != nullptr;
}

PerSupply<std::uint64_t> used_by(const runtime::Sandbox& sandbox, bool with_disk) {
  PerSupply<std::uint64_t> used;
  used[Supply::memory] = sandbox.usage.memory_bytes;
  used[Supply::disk] = with_disk ? sandbox.usage.disk_bytes : 0;
  used[Supply::processes] = sandbox.usage.pids;
  return used;
}

}  // namespace

Evictor::Evictor(runtime::Runtime& runtime, const client::WatchCache& pods, const Clock& clock,
                 EvictorOptions options)
    : runtime_(runtime), pods_(pods), clock_(clock), options_(std::move(options)) {}

NodePressure Evictor::look() {
  const Supplies now = options_.supplies();
  const NodePressure pressure = pressure_of(now, options_.thresholds);
  const Time moment = clock_.now();
  NodePressure told;
  for (const Supply supply : kSupplies) {
    if (pressure[supply]) short_since_[supply] = moment;
    told[supply] = short_since_[supply] && moment - *short_since_[supply] < options_.calm;
  }
  const auto worst = std::ranges::find_if(kSupplies, [&](Supply each) { return pressure[each]; });
  if (worst != kSupplies.end()) relieve(*worst, now[*worst]);
  return told;
}

void Evictor::relieve(Supply supply, const Amount& amount) {
  const std::vector<client::Object> pods = pods_.list();
  const std::vector<PodUse> uses = read_use(pods);
  const bool is_leaving = std::ranges::any_of(uses, [&](const PodUse& use) {
    return model::uid_of(*use.pod) == victim_ && !use.containers.empty();
  });
  // What it leaves may be enough.
  if (is_leaving && clock_.now() - told_ < kPatience) return;
  std::vector<PodUse> candidates;
  std::ranges::copy_if(uses, std::back_inserter(candidates),
                       [](const PodUse& use) { return may_go(*use.pod); });
  const PodUse* victim = choose_victim(candidates, supply);
  if (victim == nullptr) return;
  const std::uint64_t threshold = options_.thresholds[supply]->of(amount.capacity);
  const std::string message = eviction_message(*victim, supply, threshold, amount.available);
  log::warning("a pod is evicted", {{"pod", model::key_of(*victim->pod).text()}, {"why", message}});
  victim_ = model::uid_of(*victim->pod);
  told_ = clock_.now();
  options_.evict(*victim->pod, message);
}

std::vector<PodUse> Evictor::read_use(const std::vector<client::Object>& pods) {
  std::map<std::string, PodUse, std::less<>> by_uid;
  for (const client::Object& pod : pods) by_uid[std::string(model::uid_of(*pod))].pod = pod.get();
  for (const runtime::Sandbox& sandbox : runtime_.list()) {
    const auto name = parse_sandbox_name(sandbox.id);
    const auto found = name ? by_uid.find(name->pod_uid) : by_uid.end();
    if (found == by_uid.end() || sandbox.state == runtime::State::exited) continue;
    const Json& pod = *found->second.pod;
    for (const Container& container : containers_of(pod))
      if (model::name_hash(container.name) == name->container_hash)
        found->second.containers.push_back(
            {.name = container.name, .used = used_by(sandbox, has_disk(spec_of(pod, container)))});
  }
  for (const runtime::Volume& volume : runtime_.list_volumes()) {
    const auto uid = pod_uid_of_volume(volume.name);
    const auto found = uid ? by_uid.find(*uid) : by_uid.end();
    if (found != by_uid.end()) found->second.volumes[Supply::disk] += volume.taken_bytes;
  }
  std::vector<PodUse> all;
  for (auto& [uid, use] : by_uid) all.push_back(std::move(use));
  return all;
}

}  // namespace hearth::node
