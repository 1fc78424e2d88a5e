// How fast a pool is filled again: when it may begin, how many at a time, how many at once.
//
// Two knobs, both off by default: a delay after members were taken, so that a burst of claims has
// the API to itself, and a rate. Besides, what is made in one go begins with one and doubles, so
// that a template that the server refuses costs one refused call and not hundreds.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>

#include "base/clock.h"

namespace hearth::controllers {

// Holds refill back after each drop of the number of members. One for each pool.
class ReplenishHold {
 public:
  // `delay` zero: never.
  explicit ReplenishHold(Duration delay) : delay_(delay) {}

  // Once in each pass. Returns how long nothing may be made yet, zero for now. The first pass
  // never holds: nobody knows of a drop.
  Duration observe(std::uint32_t active, std::uint32_t desired, Time now);
  // These will appear in the cache: until then a lower number is a drop, as it is.
  void created(std::uint32_t count);

 private:
  const Duration delay_;
  std::optional<std::uint32_t> last_;
  Time until_{};
};

// Tokens that come at a rate and are kept for a second. One for each pool.
class RefillBucket {
 public:
  // A second; zero: any number.
  explicit RefillBucket(double rate) : rate_(rate) {}

  struct Grant {
    std::uint32_t count = 0;
    Duration wait{};  // until the next token, where fewer were granted than wanted
  };
  Grant take(std::uint32_t wanted, Time now);
  // They were not used, and the server was not asked.
  void give_back(std::uint32_t count);

 private:
  double capacity() const { return rate_ > 1 ? rate_ : 1; }

  const double rate_;
  double tokens_ = 0;
  std::optional<Time> last_;
};

struct SlowStart {
  std::uint32_t succeeded = 0;
  std::exception_ptr first_failure;
};

// act(0) ... act(count - 1) in batches of 1, 2, 4, ..., each batch at once on up to `most_threads`
// threads. Ends after a batch in which something was thrown.
SlowStart run_slow_start(std::uint32_t count, unsigned most_threads,
                         const std::function<void(std::uint32_t index)>& act);

}  // namespace hearth::controllers
