#include "runtime/limits.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/id.h"
#include "linux/block_device.h"

namespace hearth::runtime {
namespace {

// What large servers are told to ask for; some programs walk through all that they may have, which
// takes its time with more.
constexpr std::uint64_t kOpenFiles = std::uint64_t{1} << 20;

std::string to_text(std::uint64_t limit) {
  return limit == linux::kUnlimited ? "unlimited" : fmt::to_string(limit);
}

// Of the memory, an eighth: no file in a writable layer takes it.
constexpr std::uint64_t kKeptForProcesses = 8;

// The guest forbids itself core dumps, which might end up with a program of the host, and what it
// has given up nobody inside gets back.
std::uint64_t most_of(std::uint32_t resource) {
  return resource == RLIMIT_CORE ? 0 : linux::own_limit(resource).hard;
}

// A single request to a disk may be of a megabyte, and nothing that waits for one can be
// interrupted.
void check_io(const IoLimits& io) {
  constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10;
  constexpr std::uint64_t kLeastOps = 10;
  for (const std::uint64_t bytes : {io.read_bytes, io.write_bytes}) {
    if (bytes != 0 && bytes < kLeastBytes)
      fail(Code::invalid, "{} bytes a second to or from a disk are too few; the least is 64 KiB",
           bytes);
  }
  for (const std::uint64_t ops : {io.read_ops, io.write_ops}) {
    if (ops != 0 && ops < kLeastOps)
      fail(Code::invalid, "{} disk operations a second are too few; the least is {}", ops,
           kLeastOps);
  }
}

}  // namespace

void check(const Limits& limits) {
  constexpr std::uint64_t kLeastMemory = std::uint64_t{4} << 20;
  if (limits.memory_bytes != 0 && limits.memory_bytes < kLeastMemory) {
    fail(Code::invalid,
         "a memory limit of {} bytes is too small for any program; the least is 4 MiB",
         limits.memory_bytes);
  }
  constexpr std::uint32_t kLeastPids = 4;
  if (limits.pids != 0 && limits.pids < kLeastPids) {
    fail(Code::invalid, "a limit of {} processes leaves none for commands; the least is {}",
         limits.pids, kLeastPids);
  }
  check_io(limits.io);
}

void check_hostname(const std::string& name) {
  constexpr std::size_t kMost = 64;
  const auto all_labels = [](std::string_view rest) {
    for (std::size_t dot = 0; dot != std::string_view::npos;) {
      dot = rest.find('.');
      if (!is_label(rest.substr(0, dot))) return false;
      if (dot != std::string_view::npos) rest.remove_prefix(dot + 1);
    }
    return true;
  };
  if (name.size() > kMost || !all_labels(name)) {
    fail(Code::invalid, "'{}' is no host name: 1 to {} of a-z, 0-9, '-' and '.'", name, kMost);
  }
}

void check(const LogLimits& log) {
  // A file holds a few of the largest lines; and all of them fit one answer.
  constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10;
  constexpr std::uint32_t kMostFiles = 100;
  if (log.files > kMostFiles)
    fail(Code::invalid, "a log of {} files; at most {}", log.files, kMostFiles);
  if (log.files != 0 && log.bytes < kLeastBytes)
    fail(Code::invalid, "log files of {} bytes are too small; the least is 64 KiB", log.bytes);
}

void check(const std::vector<linux::ResourceLimit>& ulimits) {
  std::set<std::uint32_t> seen;
  for (const linux::ResourceLimit& limit : ulimits) {
    const std::string_view name = linux::resource_name(limit.resource);
    if (!seen.insert(limit.resource).second) fail(Code::invalid, "two ulimits of {}", name);
    if (limit.soft > limit.hard)
      fail(Code::invalid, "ulimit {}: the soft limit {} is above the hard one, {}", name,
           to_text(limit.soft), to_text(limit.hard));
    const std::uint64_t most = most_of(limit.resource);
    if (limit.hard > most)
      fail(Code::unavailable, "ulimit {}: {} is more than this engine can give, which is {}", name,
           to_text(limit.hard), to_text(most));
  }
}

std::vector<linux::ResourceLimit> complete(std::vector<linux::ResourceLimit> ulimits) {
  if (std::ranges::find(ulimits, std::uint32_t{RLIMIT_NOFILE}, &linux::ResourceLimit::resource) !=
      ulimits.end()) {
    return ulimits;
  }
  const std::uint64_t most = std::min(kOpenFiles, most_of(RLIMIT_NOFILE));
  ulimits.push_back({.resource = RLIMIT_NOFILE, .soft = most, .hard = most});
  return ulimits;
}

std::uint64_t layer_in_memory(const Limits& limits) {
  if (limits.memory_bytes == 0) return limits.disk_bytes;
  const std::uint64_t kept = limits.memory_bytes / kKeptForProcesses;
  const std::uint64_t most = limits.memory_bytes - kept;
  return limits.disk_bytes == 0 ? most : std::min(limits.disk_bytes, most);
}

bool can_be_given(const Limits& limits) {
  return limits.memory_bytes != 0 && limits.cpu_millis != 0 && limits.pids != 0 && !limits.io.any();
}

bool same_cgroup_limits(const Limits& one, const Limits& other) {
  return one.memory_bytes == other.memory_bytes && one.cpu_millis == other.cpu_millis &&
         one.pids == other.pids && one.io == other.io;
}

linux::CgroupLimits cgroup_limits(const Limits& limits, int disk_fd) {
  linux::CgroupLimits enforced{
      .memory_bytes = limits.memory_bytes, .cpu_millis = limits.cpu_millis, .pids = limits.pids};
  if (!limits.io.any()) return enforced;
  try {
    enforced.io = {.device = linux::find_disk(disk_fd),
                   .read_bytes = limits.io.read_bytes,
                   .write_bytes = limits.io.write_bytes,
                   .read_ops = limits.io.read_ops,
                   .write_ops = limits.io.write_ops};
  } catch (const Error& error) {
    fail(error.code(), "reading and writing cannot be limited on the engine's state folder: {}",
         error.what());
  }
  return enforced;
}

}  // namespace hearth::runtime
