#include "bench/interrupt.h"

#include <signal.h>

#include <atomic>

namespace hearth::bench {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");

}  // namespace

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = true; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

bool was_interrupted() {
  return interrupted;
}

void check_interrupts() {
  if (interrupted) throw Interrupted();
}

}  // namespace hearth::bench
