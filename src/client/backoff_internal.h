// Pauses between tries: each twice as long as the last, none as long as anyone else's.
#pragma once

#include <algorithm>
#include <random>

#include "base/clock.h"

namespace hearth::client {

class Backoff {
 public:
  Backoff(Duration first, Duration most) : first_(first), most_(most), next_(first) {}

  // Between half and one and a half times what is due.
  Duration next() {
    const Duration due = next_;
    next_ = std::min(next_ * 2, most_);
    return jittered(due);
  }
  void reset() { next_ = first_; }
  bool is_fresh() const { return next_ == first_; }

  Duration jittered(Duration time) {
    std::uniform_real_distribution<double> factor(0.5, 1.5);
    return std::chrono::duration_cast<Duration>(time * factor(random_));
  }

 private:
  Duration first_;
  Duration most_;
  Duration next_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace hearth::client
