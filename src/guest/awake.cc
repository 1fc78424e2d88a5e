#include "guest/awake.h"

namespace hearth::guest {

AwakeClock& AwakeClock::here() {
  static AwakeClock clock;
  return clock;
}

AwakeClock::Moment AwakeClock::now(Moment steady) {
  const std::lock_guard lock(mutex_);
  notice_pause(steady);
  return steady - stood_still_;
}

void AwakeClock::beat(Moment steady) {
  const std::lock_guard lock(mutex_);
  notice_pause(steady);
  last_beat_ = steady;
  is_kept_ = true;
}

void AwakeClock::rest(Moment steady) {
  const std::lock_guard lock(mutex_);
  notice_pause(steady);
  is_kept_ = false;
}

// With the lock held.
void AwakeClock::notice_pause(Moment steady) {
  if (!is_kept_ || steady - last_beat_ <= kBeat + kPatience) return;
  stood_still_ += steady - last_beat_ - kBeat;
  last_beat_ = steady;
}

int AwakeDeadline::poll_milliseconds() const {
  if (is_never()) return -1;
  return Deadline::after(at_ - AwakeClock::here().now()).poll_milliseconds();
}

}  // namespace hearth::guest
