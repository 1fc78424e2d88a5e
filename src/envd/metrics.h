// What a sandbox uses, as seen from inside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hearth::envd {

struct Metrics {
  unsigned cpu_count = 0;
  double cpu_used_percent = 0;  // of all CPUs, since the last time somebody asked
  std::uint64_t memory_total = 0;
  std::uint64_t memory_used = 0;
  std::uint64_t memory_cache = 0;
  std::uint64_t disk_total = 0;
  std::uint64_t disk_used = 0;
};

// From /proc and the root file system. What cannot be read is zero. Thread-safe.
Metrics read_metrics();

std::string render_metrics(const Metrics& metrics, Time now);

// The parts of it that read texts of the kernel.
struct CpuTimes {
  unsigned count = 0;
  std::uint64_t total = 0;  // ticks
  std::uint64_t idle = 0;
};
CpuTimes parse_cpu_times(std::string_view proc_stat);
// In bytes; 0 for what is not there.
std::uint64_t parse_memory_line(std::string_view meminfo, std::string_view name);

}  // namespace hearth::envd
