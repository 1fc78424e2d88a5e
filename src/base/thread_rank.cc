#include "base/thread_rank.h"

#include <sched.h>

namespace hearth {

void step_back() {
  // A thread of this class that wakes up waits for the end of somebody's turn instead of taking it
  // away: who has just committed a write answers before those who watched for it begin.
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace hearth
