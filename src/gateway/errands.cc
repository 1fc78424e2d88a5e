#include "gateway/errands.h"

#include <utility>

#include "base/thread_name.h"
#include "base/thread_rank.h"

namespace hearth::gateway {

Errands::Errands(unsigned threads, std::size_t queue_limit, Rank rank) : queue_limit_(queue_limit) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this, rank] { work(rank); });
}

Errands::~Errands() {
  stop();
}

bool Errands::run(std::function<void()> errand) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_ || queue_.size() >= queue_limit_) return false;
    queue_.push_back(std::move(errand));
  }
  changed_.notify_one();
  return true;
}

void Errands::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  threads_.clear();
}

void Errands::work(Rank rank) {
  name_thread("errand");
  if (rank == Rank::background) step_back();
  while (true) {
    std::function<void()> errand;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_stopped_ || !queue_.empty(); });
      if (is_stopped_) return;
      errand = std::move(queue_.front());
      queue_.pop_front();
    }
    errand();
  }
}

}  // namespace hearth::gateway
