#include "bench/machine.h"

#include <sys/utsname.h>

#include <algorithm>
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

}  // namespace hearth::bench
