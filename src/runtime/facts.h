// What a sandbox is told about the machine it runs on: its share, not the whole.
//
// /proc/meminfo and /proc/cpuinfo know nothing of limits. Where a sandbox has less than the
// machine, files with its own numbers are mounted over them. They say what it may use, as of its
// beginning; what it does use is in its usage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "guest/boot.h"
#include "linux/fd.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

// The texts; pure.
std::string meminfo_text(std::uint64_t bytes);
// The first `count` processors of what /proc/cpuinfo says.
std::string cpuinfo_text(const std::string& all, unsigned count);
std::string online_cpus_text(unsigned count);  // "0-3"

// Processors for a limit: as many as it takes to use it up, spread over the machine by `seed`.
// Nothing when that is all of them.
std::vector<std::uint32_t> choose_cpus(const std::vector<std::uint32_t>& available,
                                       std::uint32_t cpu_millis, std::uint32_t seed);

// Thread-safe.
class Facts {
 public:
  // Keeps its files in `folder_fd` (borrowed).
  explicit Facts(int folder_fd);

  struct Mounts {
    std::vector<guest::Attachment> attachments;
    std::vector<linux::Fd> fds;  // detached mounts, one for each
  };
  Mounts mounts_for(const Limits& limits);

  std::vector<std::uint32_t> cpus_for(const Limits& limits, std::uint32_t seed) const;

 private:
  void add(Mounts& mounts, const char* target, const std::string& file, const std::string& text);

  int folder_fd_;
  std::uint64_t memory_bytes_ = 0;          // of the machine
  std::vector<std::uint32_t> cpus_;         // that we may use
  std::string cpuinfo_;                     // of the machine
  Guarded<std::vector<std::string>> made_;  // files, by name
};

}  // namespace hearth::runtime
