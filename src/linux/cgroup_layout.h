// What cgroup hierarchies a host has, and which of their files takes which limit: everything about
// cgroups that can be decided without touching one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::linux {

// Of what passes between a disk and those in a cgroup, each second. 0 means no limit.
struct CgroupIoLimits {
  std::string device;  // "8:0", see block_device.h
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t read_ops = 0;
  std::uint64_t write_ops = 0;

  bool any() const {
    return read_bytes != 0 || write_bytes != 0 || read_ops != 0 || write_ops != 0;
  }
};

// 0 means no limit.
struct CgroupLimits {
  std::uint64_t memory_bytes = 0;  // without swap
  std::uint32_t cpu_millis = 0;    // 1000 = one CPU; below 10 counts as 10
  std::uint32_t pids = 0;
  CgroupIoLimits io;
};

// A mounted hierarchy that we may write to.
struct CgroupHierarchy {
  bool v2 = false;
  std::string mount_point;
  std::vector<std::string> controllers;  // v1 only: a v2 mount does not say
  // Only for those who ask for what it limits: each hierarchy makes every birth and end longer.
  bool on_demand = false;

  bool has(std::string_view controller) const {
    return std::ranges::find(controllers, controller) != controllers.end();
  }
};

// Reads the text of /proc/<pid>/mountinfo. A hierarchy that is mounted more than once appears once,
// with the mount that shows most of it; read-only mounts and named hierarchies without controllers
// ("name=systemd") do not appear. Throws Error(invalid) for text that is no mountinfo.
std::vector<CgroupHierarchy> find_cgroup_hierarchies(std::string_view mountinfo);

// The hierarchies worth having a folder in, each with the controllers we use it for, sorted: v2 if
// there is one, first, with those of `v2_controllers` that limit or measure (cpu, io, memory,
// pids); v1 for each of cpu, memory, pids that v2 has not, and blkio on demand where v2 has no io;
// the v1 freezer only where there is no v2 at all.
std::vector<CgroupHierarchy> choose_cgroup_hierarchies(
    const std::vector<CgroupHierarchy>& present, const std::vector<std::string>& v2_controllers);

// One file of a leaf and what to write into it, in this order.
struct CgroupSetting {
  std::string controller;
  std::string file;
  std::string text;
  bool optional = false;  // a kernel without swap does not have the file
};

std::vector<CgroupSetting> v1_settings(const CgroupLimits& limits);
std::vector<CgroupSetting> v2_settings(const CgroupLimits& limits);

// All four, with what means "no limit" where there is none.
std::vector<CgroupSetting> v1_io_settings(const CgroupIoLimits& io);
std::vector<CgroupSetting> v2_io_settings(const CgroupIoLimits& io);

// The number after `key ` in a flat keyed file such as memory.events; 0 where it is missing.
std::uint64_t flat_keyed_value(std::string_view text, std::string_view key);

// The words of a line such as "cpu memory pids\n".
std::vector<std::string> split_words(std::string_view text, char separator = ' ');

// 0 where the host does not say.
struct CgroupUsage {
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t cpu_usec = 0;
  std::uint64_t pids = 0;
  std::uint64_t oom_kills = 0;
  std::uint64_t read_bytes = 0;  // from disks; v2 only
  std::uint64_t written_bytes = 0;
};

}  // namespace hearth::linux
