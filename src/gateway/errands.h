// A few threads for what blocks, and a bounded queue before them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth::gateway {

class Errands {
 public:
  enum class Rank { usual, background };  // base/thread_rank.h

  Errands(unsigned threads, std::size_t queue_limit, Rank rank = Rank::usual);
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;
  ~Errands();  // stop()

  // False: too many wait already, or it was stopped. `errand` must not throw.
  bool run(std::function<void()> errand);
  // Waits for those that were begun; the others are dropped. Idempotent.
  void stop();

 private:
  void work(Rank rank);

  const std::size_t queue_limit_;
  std::mutex mutex_;  // guards queue_ and is_stopped_
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool is_stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace hearth::gateway
