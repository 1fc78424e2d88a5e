#include "node/errands.h"

#include <utility>

namespace hearth::node {

void Errands::run(std::function<void()> errand) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  waiting_.push_back(std::move(errand));
  if (idle_ < waiting_.size() && threads_.size() < most_threads_)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  changed_.notify_one();
}

void Errands::stop() {
  std::vector<std::jthread> ending;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting_.clear();
    ending = std::exchange(threads_, {});
  }
  for (std::jthread& thread : ending) thread.request_stop();
}

void Errands::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, stop, [this] { return !waiting_.empty(); });
    --idle_;
    if (stop.stop_requested()) return;
    const std::function<void()> errand = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    errand();
    lock.lock();
  }
}

}  // namespace hearth::node
