// Whole lives of sandboxes, one after the other, by several workers at once: how many a second, and
// whether it stays like that.
#pragma once

#include "bench/entry.h"
#include "bench/page.h"
#include "bench/workshop.h"

namespace hearth::bench {

inline constexpr const char* kSustained = "sustained";

// The best of 1, 2 and 4 workers, for each subject. Throws Interrupted.
void measure_sustained(const Entries& entries, const Effort& effort, Results& results);

// Ten steps of our own lives, by as many workers as were best in `results`. After each a line on
// stdout: the rate, and what would grow if something were left behind. Throws Error, Interrupted.
void run_long(const Entries& entries, const Effort& effort, const Engine& engine,
              const Results& results);

}  // namespace hearth::bench
