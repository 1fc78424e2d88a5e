// Why a claim has no sandbox, in the words of its Ready condition.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace hearth::controllers {

enum class Retry {
  when_changed,  // only the user can help
  each_minute,   // something is missing that may come
  soon,          // the cache is behind
  with_pause,    // after the pause that failures in a row have earned
};

class ClaimProblem : public Error {
 public:
  ClaimProblem(std::string reason, const std::string& message, Retry retry)
      : Error(Code::invalid, message), reason_(std::move(reason)), retry_(retry) {}

  const std::string& reason() const { return reason_; }
  Retry retry() const { return retry_; }

 private:
  std::string reason_;
  Retry retry_;
};

}  // namespace hearth::controllers
