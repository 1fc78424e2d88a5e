// A subject that is here, ready to be measured; and how thoroughly.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "bench/subject.h"

namespace hearth::bench {

struct Entry {
  const Kind* kind = nullptr;
  std::unique_ptr<Subject> subject;
};
using Entries = std::vector<Entry>;

// How long the parts take that have no rounds.
struct Effort {
  unsigned slices = 3;  // of each subject and number of workers
  Duration slice = std::chrono::milliseconds(400);
  unsigned batches = 5;  // of idle sandboxes
  unsigned batch = 24;   //
  Duration settling =    // at most, for the kernel to free what it frees behind
      std::chrono::seconds(2);
  unsigned file_rounds = 7;
  Duration long_step = std::chrono::minutes(1);
};

inline Effort effort_for(unsigned rounds) {
  constexpr unsigned kThorough = 40;
  if (rounds >= kThorough) return {};
  return {.slices = 1,
          .slice = std::chrono::milliseconds(100),
          .batches = 3,
          .batch = 2,
          .settling = std::chrono::milliseconds(50),
          .file_rounds = 2,
          .long_step = std::chrono::milliseconds(200)};
}

}  // namespace hearth::bench
