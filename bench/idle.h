// What sandboxes cost that do nothing.
#pragma once

#include "bench/entry.h"
#include "bench/page.h"
#include "bench/workshop.h"

namespace hearth::bench {

// The processes' share of memory, and the kernel's.
inline constexpr const char* kIdle = "idle";
// By how much less the machine says is available: noisier, but it forgets nothing.
inline constexpr const char* kIdleAvailable = "idle_available";
inline constexpr const char* kMany = "many";

// Throws Interrupted.
void measure_idle(const Entries& entries, const Effort& effort, Results& results);

// So many of ours alive at once: how fast they come, and what all of them take. Throws Error,
// Interrupted.
void measure_many(const Engine& engine, const Effort& effort, unsigned count, Results& results);

}  // namespace hearth::bench
