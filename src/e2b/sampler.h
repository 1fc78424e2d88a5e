// What sandboxes use, looked at every few seconds, and how many each team has: in memory only,
// newer moments close together, older ones further apart.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "e2b/core.h"

namespace hearth::e2b {

// Whole seconds: clients ask for ranges of seconds, and compare.
using Second = std::chrono::sys_seconds;

struct UsageSample {
  Second at;
  float cpu_percent = 0;  // of all that it may use
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_limit_bytes = 0;
};

struct TeamSample {
  Second at;
  std::uint32_t sandboxes = 0;
  float starts_per_second = 0;
};

// Both ends are inside.
struct Range {
  Second from;
  Second to;

  bool has(Second at) const { return from <= at && at <= to; }
};

// Thread-safe.
class Sampler {
 public:
  // Before the core's caches start. The core must outlive it.
  explicit Sampler(Core& core);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler();

  // After the caches have synced: a thread that samples.
  void start();
  void stop();
  // One round: every sandbox that runs, every team.
  void sample();

  // Of that very sandbox; the oldest first.
  std::vector<UsageSample> usage(const Json& sandbox, const Range& range) const;
  std::optional<UsageSample> latest_usage(const Json& sandbox) const;
  std::vector<TeamSample> team(std::string_view ns, const Range& range) const;

 private:
  struct History {
    std::string uid;
    std::uint64_t round = 0;  // in which it was last seen
    // Of the last look; none while it stands still.
    std::optional<std::pair<Time, std::uint64_t>> cpu_microseconds;
    std::vector<UsageSample> samples;
  };

  void note_start(const Json& sandbox);
  void sample_sandbox(const Json& sandbox, std::uint64_t round);
  void sample_teams(Time now);

  Core& core_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_stopped_ = false;
  std::uint64_t round_ = 0;
  std::map<model::Key, History> histories_;
  std::map<std::string, std::vector<TeamSample>, std::less<>> teams_;  // by namespace
  std::map<std::string, std::uint32_t, std::less<>> starts_;           // since the last round
  std::optional<Time> last_round_;
  std::thread thread_;
};

}  // namespace hearth::e2b
