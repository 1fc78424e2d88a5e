// A gate that opens once: all who wait are woken by one call, and none needs a lock to go on.
//
// std::latch does the same, but yields the processor a few times before it sleeps, which with many
// threads on few processors costs more than everything else.
#pragma once

#include <atomic>
#include <chrono>

namespace hearth::linux {

class Latch {
 public:
  // What was written before is seen by those who waited.
  void open();
  void wait() const;
  // Or until then; whether it is open.
  bool wait_until(std::chrono::steady_clock::time_point end) const;

 private:
  std::atomic<int> is_open_ = 0;  // an int, because that is what the kernel waits on
};

}  // namespace hearth::linux
