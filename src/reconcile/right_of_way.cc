#include "reconcile/right_of_way.h"

#include "base/cancel.h"

namespace hearth::reconcile {
namespace {

using std::chrono::steady_clock;

// Longer than the way of a request over the loopback, with which the next claim comes.
constexpr Duration kLull = std::chrono::milliseconds(5);

}  // namespace

bool RightOfWay::is_busy() const {
  return urgent_ > 0 || steady_clock::now() - last_.load() < kLull;
}

void RightOfWay::give_way(Turn& turn, Duration patience, const std::stop_token& stop,
                          const std::function<bool()>& can_wait) const {
  const Moment began = steady_clock::now();
  if (began < turn.until) return;
  while (is_busy() && can_wait()) {
    const Duration waited = steady_clock::now() - began;
    if (waited >= patience) {
      turn.until = steady_clock::now() + waited;
      return;
    }
    if (!sleep_for(stop, kGlance)) return;
  }
}

// Either who waits has been counted when this looks, or it sees that nobody is urgent any more.
void RightOfWay::end_urgent() {
  last_ = steady_clock::now();
  if (--urgent_ > 0 || brief_ == 0) return;
  const std::lock_guard lock(mutex_);
  over_.notify_all();
}

void RightOfWay::give_way_briefly(Turn& turn, Duration patience,
                                  const std::stop_token& stop) const {
  if (urgent_ == 0) return;
  const Moment began = steady_clock::now();
  if (began < turn.until) return;
  std::unique_lock lock(mutex_);
  ++brief_;
  const bool is_over = over_.wait_for(lock, stop, patience, [this] { return urgent_ == 0; });
  --brief_;
  if (!is_over) turn.until = steady_clock::now() + patience;
}

}  // namespace hearth::reconcile
