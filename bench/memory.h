// What sandboxes cost in memory: their processes' and the kernel's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hearth::bench {

// A process and all below it, each before its children. Without those that ended meanwhile.
std::vector<pid_t> process_tree(pid_t root);

// The process's share of the memory it has mapped (Pss). 0 for one that is gone.
std::uint64_t process_kib(pid_t pid);

// The same of all processes at or below the roots, each once.
std::uint64_t trees_kib(const std::vector<pid_t>& roots);

// All that a process has in memory, what it shares with others included (Rss).
std::uint64_t resident_kib(pid_t pid);

// A line of /proc/meminfo: "Slab", "MemAvailable".
std::uint64_t meminfo_kib(std::string_view name);

// Kernel memory that sandboxes are made of: slabs, stacks, page tables, per-CPU areas, and files in
// memory. Of the whole machine: only differences mean something, and only while it is quiet.
std::uint64_t kernel_kib();

// The kernel frees namespaces and cgroups behind the back of whoever removed them: waits until its
// memory hardly changes any more, or for `patience`. Throws Interrupted.
void settle(Duration patience);

// What a process sees mounted.
std::size_t count_mounts(pid_t pid);
// Of the controller that has most, those that are on their way out included.
std::size_t count_cgroups();

}  // namespace hearth::bench
