#include "runtime/facts.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "linux/files.h"
#include "linux/mounts.h"

namespace hearth::runtime {
namespace {

constexpr unsigned kMillisPerCpu = 1000;

std::vector<std::uint32_t> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<std::uint32_t> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::uint64_t machine_memory() {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) throw_errno("ask how much memory there is");
  return std::uint64_t{info.totalram} * info.mem_unit;
}

unsigned cpus_of(std::uint32_t cpu_millis) {
  return std::max(1U, (cpu_millis + kMillisPerCpu - 1) / kMillisPerCpu);
}

}  // namespace

std::string meminfo_text(std::uint64_t bytes) {
  const std::uint64_t kib = bytes >> 10;
  std::string text;
  const auto line = [&text](std::string_view name, std::uint64_t value) {
    text += fmt::format("{:<15}{:>9} kB\n", fmt::format("{}:", name), value);
  };
  line("MemTotal", kib);
  line("MemFree", kib);
  line("MemAvailable", kib);
  for (const char* name : {"Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal",
                           "SwapFree", "Dirty", "Writeback", "AnonPages", "Mapped", "Shmem", "Slab",
                           "SReclaimable", "SUnreclaim", "PageTables"}) {
    line(name, 0);
  }
  line("CommitLimit", kib);
  line("Committed_AS", 0);
  return text;
}

std::string cpuinfo_text(const std::string& all, unsigned count) {
  std::size_t end = 0;
  // Processors are separated by empty lines; some architectures end with words about the machine.
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t next = all.find("\n\n", end);
    if (next == std::string::npos) return all;
    end = next + 2;
  }
  return all.substr(0, end);
}

std::string online_cpus_text(unsigned count) {
  return count <= 1 ? "0\n" : fmt::format("0-{}\n", count - 1);
}

std::vector<std::uint32_t> choose_cpus(const std::vector<std::uint32_t>& available,
                                       std::uint32_t cpu_millis, std::uint32_t seed) {
  const unsigned count = cpus_of(cpu_millis);
  if (cpu_millis == 0 || count >= available.size()) return {};
  std::vector<std::uint32_t> chosen;
  for (unsigned i = 0; i < count; ++i)
    chosen.push_back(available[(std::size_t{seed} + i) % available.size()]);
  std::ranges::sort(chosen);
  return chosen;
}

Facts::Facts(int folder_fd)
    : folder_fd_(folder_fd),
      memory_bytes_(machine_memory()),
      cpus_(usable_cpus()),
      cpuinfo_(linux::read_file("/proc/cpuinfo", 64 << 20)) {}

void Facts::add(Mounts& mounts, const char* target, const std::string& file,
                const std::string& text) {
  made_.with([&](std::vector<std::string>& made) {
    if (std::ranges::find(made, file) != made.end()) return;
    linux::replace_file_at(folder_fd_, file, text);
    if (::fchmodat(folder_fd_, file.c_str(), 0444, 0) != 0) throw_errno("open '{}' to all", file);
    made.push_back(file);
  });
  linux::Fd mount = linux::clone_mount(fmt::format("/proc/self/fd/{}/{}", folder_fd_, file));
  linux::set_mount_flags(
      mount.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  mounts.attachments.push_back({.target = target, .folder = false});
  mounts.fds.push_back(std::move(mount));
}

Facts::Mounts Facts::mounts_for(const Limits& limits) {
  Mounts mounts;
  if (limits.memory_bytes != 0 && limits.memory_bytes < memory_bytes_) {
    add(mounts, "/proc/meminfo", fmt::format("meminfo-{}", limits.memory_bytes),
        meminfo_text(limits.memory_bytes));
  }
  const unsigned cpus = cpus_of(limits.cpu_millis);
  if (limits.cpu_millis != 0 && cpus < cpus_.size()) {
    add(mounts, "/proc/cpuinfo", fmt::format("cpuinfo-{}", cpus), cpuinfo_text(cpuinfo_, cpus));
    add(mounts, "/sys/devices/system/cpu/online", fmt::format("online-{}", cpus),
        online_cpus_text(cpus));
  }
  return mounts;
}

std::vector<std::uint32_t> Facts::cpus_for(const Limits& limits, std::uint32_t seed) const {
  return choose_cpus(cpus_, limits.cpu_millis, seed);
}

}  // namespace hearth::runtime
