#include "bench/memory.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "bench/interrupt.h"

namespace hearth::bench {
namespace {

using namespace std::chrono_literals;

// The sum of the named lines of a file such as /proc/meminfo ("Name:  123 kB").
template <typename Names>
std::uint64_t sum_of_lines(const std::string& path, const Names& names) {
  std::ifstream file(path);
  std::uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    for (const std::string_view name : names) {
      if (std::string_view(line).substr(0, colon) != name) continue;
      std::uint64_t value = 0;
      std::istringstream(line.substr(colon + 1)) >> value;
      sum += value;
    }
  }
  return sum;
}

}  // namespace

std::vector<pid_t> process_tree(pid_t root) {
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", tree[i]));
    for (pid_t child = 0; children >> child;) tree.push_back(child);
  }
  return tree;
}

std::uint64_t process_kib(pid_t pid) {
  constexpr std::string_view kNames[] = {"Pss"};
  return sum_of_lines(fmt::format("/proc/{}/smaps_rollup", pid), kNames);
}

std::uint64_t resident_kib(pid_t pid) {
  constexpr std::string_view kNames[] = {"Rss"};
  return sum_of_lines(fmt::format("/proc/{}/smaps_rollup", pid), kNames);
}

std::uint64_t trees_kib(const std::vector<pid_t>& roots) {
  std::set<pid_t> all;
  for (const pid_t root : roots) {
    for (const pid_t pid : process_tree(root)) all.insert(pid);
  }
  std::uint64_t sum = 0;
  for (const pid_t pid : all) sum += process_kib(pid);
  return sum;
}

std::uint64_t meminfo_kib(std::string_view name) {
  const std::string_view names[] = {name};
  return sum_of_lines("/proc/meminfo", names);
}

std::uint64_t kernel_kib() {
  constexpr std::string_view kNames[] = {"Slab", "KernelStack", "PageTables", "Percpu", "Shmem"};
  return sum_of_lines("/proc/meminfo", kNames);
}

void settle(Duration patience) {
  constexpr Duration kStep = 100ms;
  constexpr std::uint64_t kStill = 256;  // KiB; a quiet machine breathes this much
  const Deadline deadline = Deadline::after(patience);
  std::uint64_t last = kernel_kib();
  for (unsigned still = 0; still < 2 && !deadline.passed();) {
    check_interrupts();
    std::this_thread::sleep_for(std::min(kStep, patience));
    const std::uint64_t current = kernel_kib();
    const std::uint64_t change = current > last ? current - last : last - current;
    still = change < kStill ? still + 1 : 0;
    last = current;
  }
}

std::size_t count_mounts(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/mountinfo", pid));
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

std::size_t count_cgroups() {
  std::ifstream file("/proc/cgroups");
  std::size_t most = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string controller;
    std::size_t hierarchy = 0;
    std::size_t count = 0;
    if (words >> controller >> hierarchy >> count) most = std::max(most, count);
  }
  return most;
}

}  // namespace hearth::bench
