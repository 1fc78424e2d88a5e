#include "linux/background.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hearth::linux {
namespace {

// A third of the share of the others: what such a thread holds, a lock or the lead of a batch of
// writes, others may wait for.
constexpr int kNice = 5;

}  // namespace

void step_back() {
  // A thread of this class that wakes up waits for the end of somebody's turn instead of taking it
  // away: who has just committed a write answers before those who watched for it begin.
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH, &none);
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

}  // namespace hearth::linux
