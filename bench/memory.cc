#include "bench/memory.h"

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hearth::bench {
namespace {

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

std::uint64_t kernel_kib() {
  constexpr std::string_view kNames[] = {"Slab", "KernelStack", "PageTables", "Percpu", "Shmem"};
  return sum_of_lines("/proc/meminfo", kNames);
}

}  // namespace hearth::bench
