#include "linux/cgroup_layout.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "linux/mounts.h"

namespace hearth::linux {
namespace {

// What the kernel accepts least as a quota is 1 ms of CPU time per period (kernel/sched/core.c).
constexpr std::uint64_t kCpuPeriodUsec = 100'000;
constexpr std::uint64_t kCpuLeastQuotaUsec = 1'000;

constexpr std::string_view kLimiting[] = {"cpu", "memory", "pids"};
constexpr std::string_view kUsedOnV2[] = {"cpu", "io", "memory", "pids"};
constexpr std::string_view kFreezer = "freezer";
// The same controller, in v1 and in v2.
constexpr std::string_view kBlockIo = "blkio";
constexpr std::string_view kIo = "io";

// Everything a v1 hierarchy can be mounted with: its other super options are no controllers.
constexpr std::string_view kV1Controllers[] = {
    "blkio",  "cpu",     "cpuacct",  "cpuset", "debug", "devices", "freezer", "hugetlb",
    "memory", "net_cls", "net_prio", "pids",   "rdma",  "misc",    "io",      "perf_event"};

bool contains(const auto& list, std::string_view word) {
  return std::ranges::find(list, word) != std::ranges::end(list);
}

bool writable(const MountEntry& entry) {
  return !has_mount_option(entry.options, "ro") && !has_mount_option(entry.super_options, "ro");
}

std::vector<std::string> v1_controllers(const MountEntry& entry) {
  std::vector<std::string> controllers;
  for (std::string& option : split_words(entry.super_options, ',')) {
    if (contains(kV1Controllers, option)) controllers.push_back(std::move(option));
  }
  std::ranges::sort(controllers);
  return controllers;
}

// Where v2 has a controller, v1 is not used for it.
bool on_v2(const std::vector<std::string>& v2_controllers, std::string_view v1_name) {
  return contains(v2_controllers, v1_name == kBlockIo ? kIo : v1_name);
}

std::uint64_t cpu_quota_usec(std::uint32_t cpu_millis) {
  return std::max(kCpuLeastQuotaUsec, std::uint64_t{cpu_millis} * (kCpuPeriodUsec / 1000));
}

}  // namespace

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != separator && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::vector<CgroupHierarchy> find_cgroup_hierarchies(std::string_view mountinfo) {
  std::vector<CgroupHierarchy> found;
  std::vector<std::size_t> depth;  // of the root that found[i] shows
  for (const MountEntry& entry : parse_mountinfo(mountinfo)) {
    const bool v2 = entry.type == "cgroup2";
    if ((!v2 && entry.type != "cgroup") || !writable(entry)) continue;
    CgroupHierarchy hierarchy{.v2 = v2, .mount_point = entry.mount_point};
    if (!v2) hierarchy.controllers = v1_controllers(entry);
    if (!v2 && hierarchy.controllers.empty()) continue;

    // A container engine's bind mounts show a folder of the hierarchy where the whole may be
    // mounted as well: the shorter root shows more.
    const auto same = std::ranges::find_if(found, [&](const CgroupHierarchy& other) {
      return other.v2 == v2 && other.controllers == hierarchy.controllers;
    });
    if (same == found.end()) {
      found.push_back(std::move(hierarchy));
      depth.push_back(entry.root.size());
    } else if (entry.root.size() < depth[static_cast<std::size_t>(same - found.begin())]) {
      depth[static_cast<std::size_t>(same - found.begin())] = entry.root.size();
      *same = std::move(hierarchy);
    }
  }
  return found;
}

std::vector<CgroupHierarchy> choose_cgroup_hierarchies(
    const std::vector<CgroupHierarchy>& present, const std::vector<std::string>& v2_controllers) {
  std::vector<CgroupHierarchy> chosen;
  std::vector<std::string> wanted(std::begin(kLimiting), std::end(kLimiting));
  const bool has_v2 = std::ranges::any_of(present, &CgroupHierarchy::v2);
  wanted.emplace_back(kBlockIo);
  if (!has_v2) wanted.emplace_back(kFreezer);

  for (CgroupHierarchy hierarchy : present) {
    const auto& offered = hierarchy.v2 ? v2_controllers : hierarchy.controllers;
    std::vector<std::string> used;
    for (const std::string& controller : offered) {
      const bool use = hierarchy.v2 ? contains(kUsedOnV2, controller)
                                    : contains(wanted, controller) &&
                                          !(has_v2 && on_v2(v2_controllers, controller));
      if (use) used.push_back(controller);
    }
    std::ranges::sort(used);
    if (!hierarchy.v2 && used.empty()) continue;
    hierarchy.controllers = std::move(used);
    hierarchy.on_demand = !hierarchy.v2 && hierarchy.controllers.size() == 1 &&
                          hierarchy.controllers.front() == kBlockIo;
    // v2 first: its kill spares nobody who forks meanwhile.
    chosen.insert(hierarchy.v2 ? chosen.begin() : chosen.end(), std::move(hierarchy));
  }
  return chosen;
}

std::vector<CgroupSetting> v1_settings(const CgroupLimits& limits) {
  std::vector<CgroupSetting> settings;
  if (limits.memory_bytes != 0) {
    const std::string bytes = fmt::to_string(limits.memory_bytes);
    settings.push_back({.controller = "memory", .file = "memory.limit_in_bytes", .text = bytes});
    // Memory and swap together may not be less than memory alone, hence second.
    settings.push_back({.controller = "memory",
                        .file = "memory.memsw.limit_in_bytes",
                        .text = bytes,
                        .optional = true});
  }
  if (limits.cpu_millis != 0) {
    settings.push_back(
        {.controller = "cpu", .file = "cpu.cfs_period_us", .text = fmt::to_string(kCpuPeriodUsec)});
    settings.push_back({.controller = "cpu",
                        .file = "cpu.cfs_quota_us",
                        .text = fmt::to_string(cpu_quota_usec(limits.cpu_millis))});
  }
  if (limits.pids != 0) {
    settings.push_back(
        {.controller = "pids", .file = "pids.max", .text = fmt::to_string(limits.pids)});
  }
  if (limits.io.any()) std::ranges::move(v1_io_settings(limits.io), std::back_inserter(settings));
  return settings;
}

std::vector<CgroupSetting> v1_io_settings(const CgroupIoLimits& io) {
  std::vector<CgroupSetting> settings;
  const auto add = [&](const char* what, std::uint64_t limit) {
    settings.push_back({.controller = std::string(kBlockIo),
                        .file = fmt::format("blkio.throttle.{}_device", what),
                        .text = fmt::format("{} {}", io.device, limit)});
  };
  add("read_bps", io.read_bytes);
  add("write_bps", io.write_bytes);
  add("read_iops", io.read_ops);
  add("write_iops", io.write_ops);
  return settings;
}

std::vector<CgroupSetting> v2_io_settings(const CgroupIoLimits& io) {
  const auto text = [](std::uint64_t limit) {
    return limit == 0 ? std::string("max") : fmt::to_string(limit);
  };
  return {
      {.controller = std::string(kIo),
       .file = "io.max",
       .text = fmt::format("{} rbps={} wbps={} riops={} wiops={}", io.device, text(io.read_bytes),
                           text(io.write_bytes), text(io.read_ops), text(io.write_ops))}};
}

std::vector<CgroupSetting> v2_settings(const CgroupLimits& limits) {
  std::vector<CgroupSetting> settings;
  if (limits.memory_bytes != 0) {
    settings.push_back({.controller = "memory",
                        .file = "memory.max",
                        .text = fmt::to_string(limits.memory_bytes)});
    settings.push_back(
        {.controller = "memory", .file = "memory.swap.max", .text = "0", .optional = true});
  }
  if (limits.cpu_millis != 0) {
    settings.push_back(
        {.controller = "cpu",
         .file = "cpu.max",
         .text = fmt::format("{} {}", cpu_quota_usec(limits.cpu_millis), kCpuPeriodUsec)});
  }
  if (limits.pids != 0) {
    settings.push_back(
        {.controller = "pids", .file = "pids.max", .text = fmt::to_string(limits.pids)});
  }
  if (limits.io.any()) std::ranges::move(v2_io_settings(limits.io), std::back_inserter(settings));
  return settings;
}

std::uint64_t flat_keyed_value(std::string_view text, std::string_view key) {
  for (const std::string& line : split_words(text, '\n')) {
    if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != ' ') continue;
    std::uint64_t value = 0;
    const char* first = line.data() + key.size() + 1;
    std::from_chars(first, line.data() + line.size(), value);
    return value;
  }
  return 0;
}

}  // namespace hearth::linux
