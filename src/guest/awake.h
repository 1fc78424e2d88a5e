// Time as a sandbox lives through it. A pause freezes processes and not their clocks: what was to
// end in a minute would end at the thaw. A virtual machine's clock stands still meanwhile, and so
// does this one.
//
// Whoever keeps it beats at least every kBeat, as long as there is a deadline to watch. Where much
// more lies between two beats nobody was awake. A pause takes up to a beat of its time from a
// sandbox all the same, a machine that is too busy for a beat gives some; neither matters to a
// deadline of seconds. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>

#include "base/clock.h"

namespace hearth::guest {

class AwakeClock {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  static constexpr Duration kBeat = std::chrono::seconds(1);
  // How late a beat may be on a machine that has much to do.
  static constexpr Duration kPatience = std::chrono::seconds(1);

  // The guest's server keeps it while anything has a deadline, and for so long after the end of a
  // command: surfaces remember it.
  static constexpr Duration kKeptAfterEnd = std::chrono::seconds(30);

  // This process's.
  static AwakeClock& here();

  // Also who only looks finds out that there was a pause: there is no moment after it in which the
  // old time counts.
  Moment now(Moment steady = std::chrono::steady_clock::now());
  void beat(Moment steady = std::chrono::steady_clock::now());
  // Until the next beat nobody keeps it: all time counts.
  void rest(Moment steady = std::chrono::steady_clock::now());

 private:
  void notice_pause(Moment steady);

  std::mutex mutex_;  // guards what follows
  bool is_kept_ = false;
  Moment last_beat_;
  Duration stood_still_{};
};

// A Deadline of that time.
class AwakeDeadline {
 public:
  static AwakeDeadline after(Duration time) { return {AwakeClock::here().now() + time}; }
  static AwakeDeadline never() { return {AwakeClock::Moment::max()}; }

  bool is_never() const { return at_ == AwakeClock::Moment::max(); }
  bool passed() const { return !is_never() && AwakeClock::here().now() >= at_; }
  // As Deadline has it.
  int poll_milliseconds() const;

 private:
  AwakeDeadline(AwakeClock::Moment at) : at_(at) {}

  AwakeClock::Moment at_;
};

}  // namespace hearth::guest
