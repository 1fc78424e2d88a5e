#include "node/meter.h"

#include <unistd.h>

#include <charconv>

#include "node/machine.h"

namespace hearth::node {

Meter::Meter(runtime::Runtime& runtime, const Clock& clock, std::string node_name)
    : runtime_(runtime), clock_(clock), node_name_(std::move(node_name)) {
  const Sample now{.at = clock_.now(), .cpu_microseconds = read_busy_microseconds()};
  state_.with([&](State& state) { state.machine = {.from = now, .next = now}; });
}

remote::UsageReport Meter::measure() {
  return state_.with([&](State& state) {
    const Time now = clock_.now();
    if (now - state.last.at >= kFresh || now < state.last.at) state.last = measure_now(state, now);
    return state.last;
  });
}

remote::UsageReport Meter::measure_now(State& state, Time now) {
  remote::UsageReport report{.at = now, .node = node_name_};
  const Amount memory = read_memory();
  report.all =
      use_of(state.machine, {now, read_busy_microseconds()}, memory.capacity - memory.available);
  std::map<std::string, Track, std::less<>> tracks;
  for (const runtime::Sandbox& sandbox : runtime_.list()) {
    if (sandbox.state == runtime::State::exited) continue;
    const auto known = state.sandboxes.find(sandbox.id);
    const Sample birth{.at = sandbox.created};
    Track track = known != state.sandboxes.end() ? known->second : Track{birth, birth};
    report.sandboxes[sandbox.id] =
        use_of(track, {now, sandbox.usage.cpu_microseconds}, sandbox.usage.memory_bytes);
    tracks.emplace(sandbox.id, track);
  }
  state.sandboxes = std::move(tracks);
  return report;
}

remote::Usage Meter::use_of(Track& track, const Sample& now, std::uint64_t memory_bytes) {
  if (now.at - track.next.at >= kLeastWindow) {
    track.from = track.next;
    track.next = now;
  }
  const Duration window = now.at - track.from.at;
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(window).count();
  remote::Usage usage{.memory_bytes = memory_bytes, .window = window};
  // A sandbox that was restored, or a clock that was set, begins anew.
  if (microseconds <= 0 || now.cpu_microseconds < track.from.cpu_microseconds) {
    track = {now, now};
    return usage;
  }
  const double share = static_cast<double>(now.cpu_microseconds - track.from.cpu_microseconds) /
                       static_cast<double>(microseconds);
  usage.cpu_nanocores = static_cast<std::uint64_t>(share * 1e9);
  return usage;
}

std::uint64_t busy_microseconds(std::string_view stat, std::uint64_t hertz) {
  constexpr std::string_view kAll = "cpu ";
  if (!stat.starts_with(kAll) || hertz == 0) return 0;
  stat = stat.substr(kAll.size(), stat.find('\n') - kAll.size());
  // user nice system idle iowait irq softirq steal (proc(5)); guests are in user already.
  constexpr int kIdle = 3;
  constexpr int kWaiting = 4;
  constexpr int kFields = 7;  // steal is somebody else's
  std::uint64_t ticks = 0;
  for (int field = 0; field < kFields; ++field) {
    stat.remove_prefix(std::min(stat.find_first_not_of(' '), stat.size()));
    std::uint64_t value = 0;
    const auto read = std::from_chars(stat.data(), stat.data() + stat.size(), value);
    stat.remove_prefix(static_cast<std::size_t>(read.ptr - stat.data()));
    if (field != kIdle && field != kWaiting) ticks += value;
  }
  return ticks * 1'000'000 / hertz;
}

std::uint64_t read_busy_microseconds() {
  return busy_microseconds(read_or_nothing("/proc/stat"),
                           static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace hearth::node
