// Lets work that somebody waits for go before work that nobody waits for.
//
// A claim takes a millisecond; filling up the pool behind it takes both processors for several. So
// those who fill up wait for a lull. Nobody waits for ever: after its patience everyone has a turn,
// as long as the wait was, before it gives way again. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>

#include "base/clock.h"

namespace hearth::reconcile {

class RightOfWay {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  // How often who waits looks: a bell would cost those who are urgent.
  static constexpr Duration kGlance = std::chrono::milliseconds(4);

  // As long as it lives, somebody waits for what its holder does. Must not outlive the right.
  class Urgent {
   public:
    explicit Urgent(RightOfWay& right) : right_(right) { ++right_.urgent_; }
    Urgent(const Urgent&) = delete;
    Urgent& operator=(const Urgent&) = delete;
    ~Urgent() { right_.end_urgent(); }

   private:
    RightOfWay& right_;
  };

  // Of one thread that gives way.
  struct Turn {
    Moment until{};
  };

  // Whether somebody is urgent, or was a moment ago: who claims one sandbox often claims the next.
  bool is_busy() const;
  // Returns in a lull, after `patience`, when it cannot wait any more, or when stopped; at once
  // while it has its turn.
  void give_way(Turn& turn, Duration patience, const std::stop_token& stop,
                const std::function<bool()>& can_wait) const;
  // For those whom others wait for soon: returns as soon as nobody is urgent, without a lull.
  void give_way_briefly(Turn& turn, Duration patience, const std::stop_token& stop) const;

 private:
  void end_urgent();

  std::atomic<int> urgent_ = 0;
  std::atomic<Moment> last_ = Moment();
  mutable std::atomic<int> brief_ = 0;  // who waits for `over_`
  mutable std::mutex mutex_;            // of `over_`
  mutable std::condition_variable_any over_;
};

}  // namespace hearth::reconcile
