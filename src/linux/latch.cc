#include "linux/latch.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

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

}  // namespace hearth::linux
