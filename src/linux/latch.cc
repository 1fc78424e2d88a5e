#include "linux/latch.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace hearth::linux {

void Latch::open() {
  is_open_.store(1, std::memory_order_release);
  ::syscall(SYS_futex, &is_open_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Latch::wait() const {
  // Waking early is no reason to go on, and neither is a signal.
  while (is_open_.load(std::memory_order_acquire) == 0)
    ::syscall(SYS_futex, &is_open_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

bool Latch::wait_until(std::chrono::steady_clock::time_point end) const {
  using namespace std::chrono;
  // The wait of a "bitset" is the one whose end is a moment, on the clock of steady_clock.
  const nanoseconds since_boot = end.time_since_epoch();
  const timespec moment{.tv_sec = duration_cast<seconds>(since_boot).count(),
                        .tv_nsec = (since_boot % seconds(1)).count()};
  while (is_open_.load(std::memory_order_acquire) == 0) {
    const long result = ::syscall(SYS_futex, &is_open_, FUTEX_WAIT_BITSET_PRIVATE, 0, &moment,
                                  nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result != 0 && errno == ETIMEDOUT) return is_open_.load(std::memory_order_acquire) != 0;
  }
  return true;
}

}  // namespace hearth::linux
