#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

#include "base/error.h"
#include "base/thread_name.h"
#include "base/thread_rank.h"
#include "store/late_news_internal.h"
#include "store/state_internal.h"

namespace hearth::store {
namespace {

constexpr long kNanosecond = 1;
// As long as a hundred writes take that come at once; nobody notices who looks at a list meanwhile.
constexpr long kLateness = 10'000'000;

void set_timer(int timer_fd, long nanoseconds) noexcept {
  const itimerspec wanted{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = nanoseconds}};
  ::timerfd_settime(timer_fd, 0, &wanted, nullptr);
}

}  // namespace

LateNews::LateNews(State& state)
    : state_(state), timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  if (!timer_) throw_errno("make a timer");
  thread_ = std::thread([this] { run(); });
}

LateNews::~LateNews() {
  is_ending_ = true;
  set_timer(timer_.get(), kNanosecond);
  thread_.join();
}

void LateNews::expect() noexcept {
  if (!is_expected_.exchange(true)) set_timer(timer_.get(), kLateness);
}

void LateNews::run() {
  name_thread("late news");
  step_back();
  while (true) {
    std::uint64_t times = 0;
    if (::read(timer_.get(), &times, sizeof times) < 0 && errno != EINTR) return;
    if (is_ending_) return;
    // First: what comes from here on sets the timer again.
    is_expected_ = false;
    state_.tell_late();
  }
}

}  // namespace hearth::store
