#include "e2b/sampler.h"

#include <algorithm>

#include "base/log.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "model/front_door.h"
#include "pool/reach.h"

namespace hearth::e2b {
namespace {

constexpr Duration kInterval = std::chrono::seconds(5);
// Of one sandbox, or one team.
constexpr std::size_t kMostSamples = 240;
// A start that a cache tells of later was before this process.
constexpr Duration kRecent = std::chrono::seconds(30);

Second second_of(Time time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

// When it is full, every second one of the older half goes: the past gets coarser, and no longer.
template <typename Sample>
void add_sample(std::vector<Sample>& samples, const Sample& sample) {
  if (samples.size() >= kMostSamples) {
    const std::size_t half = samples.size() / 2;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (i >= half || i % 2 == 0) samples[kept++] = samples[i];
    samples.resize(kept);
  }
  samples.push_back(sample);
}

template <typename Sample>
std::vector<Sample> within(const std::vector<Sample>& samples, const Range& range) {
  std::vector<Sample> found;
  std::ranges::copy_if(samples, std::back_inserter(found),
                       [&](const Sample& each) { return range.has(each.at); });
  return found;
}

float percent(std::uint64_t microseconds, Duration elapsed, double cores) {
  const double available = std::chrono::duration<double, std::micro>(elapsed).count() * cores;
  if (available <= 0) return 0;
  return static_cast<float>(
      std::clamp(100 * static_cast<double>(microseconds) / available, 0.0, 100.0));
}

bool is_ours(const Json& sandbox) {
  return model::label_of(sandbox, model::kFrontLabel) == kFront;
}

}  // namespace

Sampler::Sampler(Core& core) : core_(core) {
  core.sandboxes.add_handlers({
      .on_add = [this](const Object& now) { note_start(*now); },
      .on_update =
          [this](const Object& before, const Object& now) {
            if (!is_ours(*before)) note_start(*now);
          },
      .on_delete = {},
  });
}

Sampler::~Sampler() {
  stop();
}

void Sampler::note_start(const Json& sandbox) {
  if (!is_ours(sandbox)) return;
  const auto started = started_at(sandbox);
  if (!started || core_.now() - *started > kRecent) return;
  const std::lock_guard lock(mutex_);
  ++starts_[std::string(model::namespace_of(sandbox))];
}

void Sampler::start() {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kInterval, [&] { return is_stopped_; })) {
      lock.unlock();
      sample();
      lock.lock();
    }
  });
}

void Sampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Sampler::sample() {
  std::uint64_t round = 0;
  {
    const std::lock_guard lock(mutex_);
    round = ++round_;
  }
  for (const Object& each : core_.sandboxes.list())
    if (is_ours(*each)) sample_sandbox(*each, round);
  sample_teams(core_.now());
  const std::lock_guard lock(mutex_);
  std::erase_if(histories_, [&](const auto& each) { return each.second.round < round; });
}

void Sampler::sample_sandbox(const Json& sandbox, std::uint64_t round) {
  const Object pod = state_of(sandbox) == State::running ? core_.find_pod(sandbox) : nullptr;
  std::optional<pool::PodUsage> usage;
  try {
    if (pod && core_.parts.reach != nullptr && core_.parts.reach->is_here(*pod))
      usage = core_.parts.reach->usage(*pod);
  } catch (const Error&) {
    // It went while we looked, or is about to: no sample.
  }
  const Time now = core_.now();
  const std::lock_guard lock(mutex_);
  History& history = histories_[model::key_of(sandbox)];
  if (history.uid != model::uid_of(sandbox))
    history = {.uid = std::string(model::uid_of(sandbox)), .cpu_microseconds = {}, .samples = {}};
  history.round = round;
  if (!usage) {
    history.cpu_microseconds.reset();
    return;
  }
  UsageSample sample{.at = second_of(now),
                     .cpu_percent = 0,
                     .memory_bytes = usage->memory_bytes,
                     .memory_limit_bytes = usage->memory_limit_bytes,
                     .disk_bytes = usage->disk_bytes,
                     .disk_limit_bytes = usage->disk_limit_bytes};
  const double cores = usage->cpu_millis > 0 ? usage->cpu_millis / 1000.0
                                             : static_cast<double>(core_.options.cpu_count);
  const auto before = history.cpu_microseconds;
  // A container that started anew counts from nothing.
  if (before && usage->cpu_microseconds >= before->second)
    sample.cpu_percent =
        percent(usage->cpu_microseconds - before->second, now - before->first, cores);
  history.cpu_microseconds = {now, usage->cpu_microseconds};
  add_sample(history.samples, sample);
}

void Sampler::sample_teams(Time now) {
  const std::vector<tenants::Team> teams = core_.parts.keys.teams();
  const std::lock_guard lock(mutex_);
  const double seconds =
      last_round_ ? std::chrono::duration<double>(now - *last_round_).count() : 0;
  last_round_ = now;
  for (const tenants::Team& team : teams) {
    const auto started = starts_.find(team.ns);
    const double starts = started == starts_.end() ? 0 : started->second;
    const TeamSample sample{
        .at = second_of(now),
        .sandboxes = static_cast<std::uint32_t>(core_.census.running(team.ns)),
        .starts_per_second = static_cast<float>(seconds > 0 ? starts / seconds : 0)};
    add_sample(teams_[team.ns], sample);
  }
  starts_.clear();
  std::erase_if(teams_, [&](const auto& each) {
    return std::ranges::find(teams, each.first, &tenants::Team::ns) == teams.end();
  });
}

std::vector<UsageSample> Sampler::usage(const Json& sandbox, const Range& range) const {
  const std::lock_guard lock(mutex_);
  const auto found = histories_.find(model::key_of(sandbox));
  if (found == histories_.end() || found->second.uid != model::uid_of(sandbox)) return {};
  return within(found->second.samples, range);
}

std::optional<UsageSample> Sampler::latest_usage(const Json& sandbox) const {
  const std::lock_guard lock(mutex_);
  const auto found = histories_.find(model::key_of(sandbox));
  if (found == histories_.end() || found->second.uid != model::uid_of(sandbox) ||
      found->second.samples.empty())
    return {};
  return found->second.samples.back();
}

std::vector<TeamSample> Sampler::team(std::string_view ns, const Range& range) const {
  const std::lock_guard lock(mutex_);
  const auto found = teams_.find(ns);
  return found == teams_.end() ? std::vector<TeamSample>() : within(found->second, range);
}

}  // namespace hearth::e2b
