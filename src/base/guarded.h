// A value and the mutex that guards it: the only way in is through the lock.
#pragma once

#include <mutex>
#include <utility>

namespace hearth {

template <typename T>
class Guarded {
 public:
  Guarded() = default;
  explicit Guarded(T value) : value_(std::move(value)) {}

  // Runs f(value) with the lock held and returns what it returns. f must not block and must not
  // let a reference escape.
  template <typename F>
  decltype(auto) with(F&& f) {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(f)(value_);
  }
  template <typename F>
  decltype(auto) with(F&& f) const {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(f)(value_);
  }

 private:
  mutable std::mutex mutex_;
  T value_{};
};

}  // namespace hearth
