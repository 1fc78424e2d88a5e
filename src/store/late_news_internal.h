// Tells watches of changes that can wait (store.h), all at once and a moment later.
#pragma once

#include <atomic>
#include <thread>

#include "linux/fd.h"

namespace hearth::store {

class State;

class LateNews {
 public:
  // Must not outlive `state`.
  explicit LateNews(State& state);
  LateNews(const LateNews&) = delete;
  LateNews& operator=(const LateNews&) = delete;
  // What is still to be told is not.
  ~LateNews();

  // There are some. Wakes nobody: that is what it is for.
  void expect() noexcept;

 private:
  void run();

  State& state_;
  const linux::Fd timer_;
  std::atomic<bool> is_expected_ = false;
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

}  // namespace hearth::store
