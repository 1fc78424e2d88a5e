#include "bench/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "linux/cgroup_layout.h"
#include "linux/fd.h"
#include "linux/mounts.h"

namespace hearth::bench {
namespace {

// The value of the first line "name : value".
std::string find_line(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return "unknown";
}

// Of all processors, in hundredths of a second since the start.
struct Ticks {
  std::uint64_t idle = 0;
  std::uint64_t all = 0;
};

Ticks read_ticks() {
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  Ticks ticks;
  std::uint64_t number = 0;
  // user nice system idle iowait irq softirq steal
  for (int column = 0; column < 8 && file >> number; ++column) {
    ticks.all += number;
    if (column == 3 || column == 4) ticks.idle += number;
  }
  return ticks;
}

std::string describe_cgroups() {
  std::vector<std::string> v1;
  std::string v2;
  for (const auto& hierarchy :
       linux::find_cgroup_hierarchies(linux::read_file("/proc/self/mountinfo", 16 << 20))) {
    if (!hierarchy.v2) {
      v1.insert(v1.end(), hierarchy.controllers.begin(), hierarchy.controllers.end());
      continue;
    }
    const std::string controllers = find_line(hierarchy.mount_point + "/cgroup.controllers", "");
    v2 = "v2 (" + (controllers == "unknown" ? "no controllers" : controllers) + ")";
  }
  std::ranges::sort(v1);
  if (v1.empty()) return v2.empty() ? "none" : v2;
  return fmt::format("{}v1 ({}){}{}", v2.empty() ? "" : "hybrid: ", fmt::join(v1, " "),
                     v2.empty() ? "" : " + ", v2);
}

std::string describe_fast_attach() {
  for (const linux::MountEntry& mount : linux::mount_table()) {
    if (mount.type != "cgroup" && mount.type != "cgroup2") continue;
    if (linux::has_mount_option(mount.super_options, "favordynmods")) return "favordynmods on";
  }
  return "favordynmods off (or on and not shown by any mount)";
}

}  // namespace

std::string describe_load() {
  std::ifstream file("/proc/loadavg");
  std::string one, five, fifteen;
  file >> one >> five >> fifteen;
  return fmt::format("load {} {} {}", one, five, fifteen);
}

std::string describe_machine() {
  utsname names{};
  ::uname(&names);
  return fmt::format(
      "kernel      Linux {} {}\n"
      "processors  {} x {}\n"
      "memory      {}\n"
      "cgroups     {}; {}\n"
      "busy        {}\n",
      names.release, names.machine, std::thread::hardware_concurrency(),
      find_line("/proc/cpuinfo", "model name"), find_line("/proc/meminfo", "MemTotal"),
      describe_cgroups(), describe_fast_attach(), describe_load());
}

void wait_for_rest() {
  constexpr auto kGlance = std::chrono::milliseconds(50);
  constexpr auto kPatience = std::chrono::milliseconds(1000);
  constexpr std::uint64_t kPercentIdle = 90;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  Ticks before = read_ticks();
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kGlance);
    const Ticks now = read_ticks();
    if ((now.idle - before.idle) * 100 >= (now.all - before.all) * kPercentIdle) return;
    before = now;
  }
}

}  // namespace hearth::bench
