// What sandboxes cost in memory: their processes' and the kernel's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace hearth::bench {

// A process and all below it, each before its children. Without those that ended meanwhile.
std::vector<pid_t> process_tree(pid_t root);

// The process's share of the memory it has mapped (Pss). 0 for one that is gone.
std::uint64_t process_kib(pid_t pid);

// Kernel memory that sandboxes are made of: slabs, stacks, page tables, per-CPU areas, and files in
// memory. Of the whole machine: only differences mean something, and only while it is quiet.
std::uint64_t kernel_kib();

}  // namespace hearth::bench
