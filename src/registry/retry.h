// Failures that may be over soon, and how long to wait for that.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace hearth::registry {

// A server asked us to come back later (429, 503).
class Busy : public Error {
 public:
  Busy(const std::string& message, Duration wait)
      : Error(Code::unavailable, message), wait_(wait) {}
  Duration wait() const { return wait_; }  // zero: it did not say how long

 private:
  Duration wait_;
};

struct RetryOptions {
  Duration pause;  // before the second attempt; doubles each time
  Deadline deadline = Deadline::never();
  std::stop_token stop;
  std::function<void(const std::string&)> note;  // says that and why there is another attempt
};

// Counts the attempts at one thing.
class Retry {
 public:
  explicit Retry(RetryOptions options) : options_(std::move(options)) {}

  // Call it in the handler of `error`. Returns when it is time for the next attempt; throws the
  // error again if it is of a kind that stays, or if there were enough. With `progress` the
  // counting starts over: a line that breaks every few megabytes still gets there.
  void wait_or_rethrow(const Error& error, bool progress = false);

 private:
  RetryOptions options_;
  unsigned failures_ = 0;  // without progress
  unsigned all_ = 0;
};

}  // namespace hearth::registry
