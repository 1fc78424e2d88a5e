// A unit of cgroups that is there: limits, freezing, counting. How one comes and goes: cgroup.cc.
#include <fcntl.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "linux/cgroup.h"
#include "linux/cgroup_folder_internal.h"

namespace hearth::linux {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFreezeTime = 2s;

constexpr const char* kTasks = "tasks";  // v1 only

}  // namespace

Cgroup::Cgroup(std::vector<Leaf> leaves) : leaves_(std::move(leaves)) {}

const Cgroup::Leaf* Cgroup::find_v2() const {
  const auto v2 = std::ranges::find_if(leaves_, [](const Leaf& leaf) { return leaf.hierarchy.v2; });
  return v2 == leaves_.end() ? nullptr : &*v2;
}

int Cgroup::v2_dir_fd() const {
  const Leaf* v2 = find_v2();
  return v2 == nullptr ? -1 : v2->limited_dir();
}

int Cgroup::serving_dir_fd() const {
  const Leaf* v2 = find_v2();
  if (v2 == nullptr) return -1;
  return v2->serving ? v2->serving.get() : v2->dir.get();
}

bool Cgroup::v2_limits() const {
  const Leaf* v2 = find_v2();
  return v2 != nullptr && v2->limited;
}

std::vector<Fd> Cgroup::open_join_files() const {
  std::vector<Fd> files;
  for (const Leaf& leaf : leaves_) {
    if (!leaf.hierarchy.v2) files.push_back(open_at(leaf.dir.get(), kTasks, O_WRONLY));
  }
  return files;
}

const Cgroup::Leaf* Cgroup::find_leaf(std::string_view controller) const {
  for (const Leaf& leaf : leaves_) {
    if (leaf.hierarchy.has(controller)) return &leaf;
  }
  return nullptr;
}

void Cgroup::set_limits(const CgroupLimits& limits) {
  for (const Leaf& leaf : leaves_)
    apply(leaf, leaf.hierarchy.v2 ? v2_settings(limits) : v1_settings(limits));
}

// Of leaves that had others. Each write has the kernel check all its cgroups: what is there already
// is not written again.
void Cgroup::replace_limits(const CgroupLimits& limits) {
  for (const Leaf& leaf : leaves_) {
    for (const CgroupSetting& setting : v1_settings(limits)) {
      if (!leaf.hierarchy.has(setting.controller)) continue;
      const std::string before = read_cgroup_file(leaf.dir.get(), setting.file);
      if (before == setting.text + "\n" || (setting.optional && before.empty())) continue;
      // Memory alone may not be more than memory and swap together, which may be less so far.
      const char* together = "memory.memsw.limit_in_bytes";
      if (setting.file == "memory.limit_in_bytes" && has_cgroup_file(leaf.dir.get(), together))
        write_file_at(leaf.dir.get(), together, "-1");
      write_file_at(leaf.dir.get(), setting.file, setting.text);
    }
  }
}

void Cgroup::lift_io_limits(const std::string& device) {
  const CgroupIoLimits none{.device = device};
  for (const Leaf& leaf : leaves_)
    apply(leaf, leaf.hierarchy.v2 ? v2_io_settings(none) : v1_io_settings(none));
}

void Cgroup::apply(const Leaf& leaf, const std::vector<CgroupSetting>& settings) {
  for (const CgroupSetting& setting : settings) {
    if (!leaf.hierarchy.has(setting.controller)) continue;
    if (setting.optional && !has_cgroup_file(leaf.limited_dir(), setting.file)) continue;
    write_file_at(leaf.limited_dir(), setting.file, setting.text);
  }
}

void Cgroup::freeze() {
  const Leaf* leaf = find_v2();
  const int v2 = leaf == nullptr ? -1 : leaf->dir.get();
  const Leaf* v1 = find_leaf("freezer");
  if (v2 < 0 && v1 == nullptr) fail(Code::unavailable, "this host has no cgroup freezer");
  if (v2 >= 0) {
    write_file_at(v2, "cgroup.freeze", "1");
  } else {
    write_file_at(v1->dir.get(), "freezer.state", "FROZEN");
  }

  Backoff backoff;
  const Deadline deadline = Deadline::after(kFreezeTime);
  while (!frozen()) {
    if (deadline.passed()) break;
    backoff.wait();
  }
  if (frozen()) return;
  thaw();
  fail(Code::timeout, "freeze a cgroup: not every process in it would stop");
}

bool Cgroup::frozen() const {
  if (const Leaf* v2 = find_v2())
    return flat_keyed_value(read_cgroup_file(v2->dir.get(), "cgroup.events"), "frozen") == 1;
  const Leaf* v1 = find_leaf("freezer");
  return v1 != nullptr && read_cgroup_file(v1->dir.get(), "freezer.state") == "FROZEN\n";
}

void Cgroup::thaw() {
  if (const Leaf* v2 = find_v2()) {
    write_file_at(v2->dir.get(), "cgroup.freeze", "0");
  } else if (const Leaf* v1 = find_leaf("freezer")) {
    write_file_at(v1->dir.get(), "freezer.state", "THAWED");
  } else {
    fail(Code::unavailable, "this host has no cgroup freezer");
  }
}

CgroupUsage Cgroup::usage() const {
  CgroupUsage usage;
  if (const Leaf* memory = find_leaf("memory")) {
    const int dir = memory->limited_dir();
    const bool v2 = memory->hierarchy.v2;
    usage.memory_bytes =
        number_in(dir, v2 ? "memory.current" : "memory.usage_in_bytes").value_or(0);
    // memory.peak: Linux 5.19.
    usage.memory_peak_bytes =
        number_in(dir, v2 ? "memory.peak" : "memory.max_usage_in_bytes").value_or(0);
    usage.oom_kills = flat_keyed_value(
        read_cgroup_file(dir, v2 ? "memory.events" : "memory.oom_control"), "oom_kill");
  }
  if (const Leaf* pids = find_leaf("pids")) {
    usage.pids = number_in(pids->limited_dir(), "pids.current").value_or(0);
  }
  // A v2 cgroup knows its CPU time even without the controller.
  if (const int v2 = v2_dir_fd(); v2 >= 0) {
    usage.cpu_usec = flat_keyed_value(read_cgroup_file(v2, "cpu.stat"), "usage_usec");
  } else if (const Leaf* cpu = find_leaf("cpu")) {
    usage.cpu_usec = number_in(cpu->dir.get(), "cpuacct.usage").value_or(0) / 1000;
  }
  return usage;
}

}  // namespace hearth::linux
