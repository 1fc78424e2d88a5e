// Threads for what a pod waits for and nobody else should: downloads, probes, hooks.
//
// Made when they are needed, up to a limit; what comes then waits its turn. The queue is bounded by
// who fills it: a container has one errand of a sort at a time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth::node {

class Errands {
 public:
  explicit Errands(unsigned most_threads) : most_threads_(most_threads) {}
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;
  // Waits for what was begun; what waits is dropped.
  ~Errands() { stop(); }

  // `errand` must not throw.
  void run(std::function<void()> errand);
  void stop();

 private:
  void work(const std::stop_token& stop);

  const unsigned most_threads_;
  std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> waiting_;
  unsigned idle_ = 0;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace hearth::node
