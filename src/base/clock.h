// Time that a test can hold in its hand.
#pragma once

#include <chrono>
#include <mutex>

namespace hearth {

using Duration = std::chrono::nanoseconds;
// Wall time: what a calendar and another machine understand.
using Time = std::chrono::sys_time<Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time now() const override { return std::chrono::system_clock::now(); }
};

// Stands still until told otherwise. Thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Time start = Time(std::chrono::seconds(1'700'000'000))) : now_(start) {}

  Time now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void advance(Duration by) {
    const std::lock_guard lock(mutex_);
    now_ += by;
  }

 private:
  mutable std::mutex mutex_;  // guards now_
  Time now_;
};

// A moment that a wait may not outlast. Steady: changes of the wall clock do not move it.
class Deadline {
 public:
  static Deadline after(Duration time) { return Deadline(std::chrono::steady_clock::now() + time); }
  static Deadline never() { return Deadline(std::chrono::steady_clock::time_point::max()); }

  bool is_never() const { return at_ == std::chrono::steady_clock::time_point::max(); }
  bool passed() const { return !is_never() && std::chrono::steady_clock::now() >= at_; }

  // What is left, not below zero; as poll(2) takes it (-1 for never, rounded up so that a wait
  // never returns just before its deadline).
  int poll_milliseconds() const {
    if (is_never()) return -1;
    const auto left = at_ - std::chrono::steady_clock::now();
    if (left.count() <= 0) return 0;
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    constexpr long long kMost = 1'000'000'000;
    return static_cast<int>(rounded < kMost ? rounded : kMost);
  }

 private:
  explicit Deadline(std::chrono::steady_clock::time_point at) : at_(at) {}
  std::chrono::steady_clock::time_point at_;
};

}  // namespace hearth
