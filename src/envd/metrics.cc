#include "envd/metrics.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/guarded.h"
#include "linux/fd.h"

namespace hearth::envd {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;

std::string read_or_nothing(const char* path) {
  try {
    return linux::read_file(path);
  } catch (const Error&) {
    return {};
  }
}

// The next number; moves behind it.
std::uint64_t next_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() ? value : 0;
}

double used_percent(const CpuTimes& before, const CpuTimes& now) {
  const std::uint64_t total = now.total - std::min(before.total, now.total);
  const std::uint64_t idle = std::min(now.idle - std::min(before.idle, now.idle), total);
  if (total == 0) return 0;
  return 100.0 * static_cast<double>(total - idle) / static_cast<double>(total);
}

}  // namespace

CpuTimes parse_cpu_times(std::string_view proc_stat) {
  CpuTimes times;
  while (proc_stat.starts_with("cpu")) {
    const std::size_t end = std::min(proc_stat.find('\n'), proc_stat.size());
    std::string_view line = proc_stat.substr(0, end);
    proc_stat.remove_prefix(std::min(end + 1, proc_stat.size()));
    if (!line.starts_with("cpu ")) {
      ++times.count;
      continue;
    }
    // user nice system idle iowait irq softirq steal; guests are in user already.
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t ticks = next_number(line);
      times.total += ticks;
      if (i == 3 || i == 4) times.idle += ticks;
    }
  }
  return times;
}

std::uint64_t parse_memory_line(std::string_view meminfo, std::string_view name) {
  const std::string start = fmt::format("{}:", name);
  while (!meminfo.empty()) {
    const std::size_t end = std::min(meminfo.find('\n'), meminfo.size());
    std::string_view line = meminfo.substr(0, end);
    if (line.starts_with(start)) return next_number(line) << 10;
    meminfo.remove_prefix(std::min(end + 1, meminfo.size()));
  }
  return 0;
}

Metrics read_metrics() {
  static Guarded<CpuTimes> last;
  Metrics metrics;
  const CpuTimes now = parse_cpu_times(read_or_nothing("/proc/stat"));
  const CpuTimes before = last.with([&](CpuTimes& kept) { return std::exchange(kept, now); });
  metrics.cpu_count = now.count;
  metrics.cpu_used_percent = used_percent(before, now);
  const std::string memory = read_or_nothing("/proc/meminfo");
  metrics.memory_total = parse_memory_line(memory, "MemTotal");
  metrics.memory_cache = parse_memory_line(memory, "Cached");
  const std::uint64_t available = parse_memory_line(memory, "MemAvailable");
  metrics.memory_used = metrics.memory_total - std::min(available, metrics.memory_total);
  struct statvfs disk{};
  if (::statvfs("/", &disk) == 0) {
    metrics.disk_total = static_cast<std::uint64_t>(disk.f_blocks) * disk.f_frsize;
    metrics.disk_used = static_cast<std::uint64_t>(disk.f_blocks - disk.f_bfree) * disk.f_frsize;
  }
  return metrics;
}

std::string render_metrics(const Metrics& metrics, Time now) {
  return fmt::format(
      R"({{"ts":{},"cpu_count":{},"cpu_used_pct":{:.2f},"mem_total":{},"mem_used":{},)"
      R"("mem_cache":{},"mem_total_mib":{},"mem_used_mib":{},"disk_used":{},"disk_total":{}}})",
      std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count(), metrics.cpu_count,
      metrics.cpu_used_percent, metrics.memory_total, metrics.memory_used, metrics.memory_cache,
      metrics.memory_total / kMebibyte, metrics.memory_used / kMebibyte, metrics.disk_used,
      metrics.disk_total);
}

}  // namespace hearth::envd
