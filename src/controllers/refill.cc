#include "controllers/refill.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth::controllers {
namespace {

// The longest that a wait for a token is given as; a rate may be tiny.
constexpr double kMostWaitSeconds = 3600;

void run_at_once(std::uint32_t first, std::uint32_t count, unsigned most_threads,
                 const std::function<void(std::uint32_t)>& act, SlowStart& result) {
  std::atomic<std::uint32_t> next = 0;
  std::mutex mutex;  // guards result
  const auto work = [&] {
    for (std::uint32_t i = next++; i < count; i = next++) {
      std::exception_ptr failure;
      try {
        act(first + i);
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      if (failure == nullptr)
        ++result.succeeded;
      else if (result.first_failure == nullptr)
        result.first_failure = failure;
    }
  };
  std::vector<std::jthread> threads;
  const auto helpers = std::min(count, most_threads) - 1;
  threads.reserve(helpers);
  for (unsigned i = 0; i < helpers; ++i) threads.emplace_back(work);
  work();
}

}  // namespace

Duration ReplenishHold::observe(std::uint32_t active, std::uint32_t desired, Time now) {
  if (delay_ <= Duration::zero()) return {};
  const bool has_dropped = last_ && active < *last_;
  last_ = active;
  if (active >= desired) {
    until_ = {};
    return {};
  }
  if (has_dropped) until_ = now + delay_;
  return std::max(until_ - now, Duration::zero());
}

void ReplenishHold::created(std::uint32_t count) {
  if (last_) *last_ += count;
}

RefillBucket::Grant RefillBucket::take(std::uint32_t wanted, Time now) {
  if (rate_ <= 0) return {.count = wanted};
  const double elapsed =
      last_ ? std::chrono::duration<double>(std::max(now - *last_, Duration::zero())).count() : 0;
  tokens_ = last_ ? std::min(capacity(), tokens_ + rate_ * elapsed) : capacity();
  last_ = last_ ? std::max(*last_, now) : now;
  // Compared before it is made an integer: a rate may be larger than any.
  const std::uint32_t granted =
      tokens_ >= wanted ? wanted : static_cast<std::uint32_t>(std::floor(tokens_));
  tokens_ -= granted;
  if (granted == wanted) return {.count = granted};
  const double wait = std::min((1 - tokens_) / rate_, kMostWaitSeconds);
  return {.count = granted, .wait = Duration(static_cast<std::int64_t>(std::ceil(wait * 1e9)))};
}

void RefillBucket::give_back(std::uint32_t count) {
  tokens_ = std::min(capacity(), tokens_ + count);
}

SlowStart run_slow_start(std::uint32_t count, unsigned most_threads,
                         const std::function<void(std::uint32_t index)>& act) {
  SlowStart result;
  std::uint32_t batch = 1;
  for (std::uint32_t done = 0; done < count && result.first_failure == nullptr;) {
    batch = std::min(batch, count - done);
    run_at_once(done, batch, std::max(most_threads, 1U), act, result);
    done += batch;
    batch *= 2;
  }
  return result;
}

}  // namespace hearth::controllers
