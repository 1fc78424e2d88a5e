#include "runtime/partings.h"

#include <utility>

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kGathering = 1s;
// Much more would not make one cheaper, and each is memory that somebody else could use.
constexpr std::size_t kMost = 256;

}  // namespace

Partings::Partings() : thread_([this](const std::stop_token& stop) { gather(stop); }) {}

// Whoever goes at once does so with the argument, after the lock.
void Partings::add(linux::Fd net_namespace) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (waiting_.empty() && now >= next_) {
    next_ = now + kGathering;
    return;
  }
  waiting_.push_back(std::move(net_namespace));
  if (waiting_.size() == 1 || waiting_.size() == kMost) changed_.notify_one();
}

// Closing them takes a while: after the lock, too.
void Partings::let_go_of_all() {
  std::vector<linux::Fd> gone;
  const std::lock_guard lock(mutex_);
  gone.swap(waiting_);
  next_ = Clock::now() + kGathering;
}

void Partings::gather(const std::stop_token& stop) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
      changed_.wait_until(lock, stop, next_, [this] { return waiting_.size() >= kMost; });
    }
    let_go_of_all();
  }
}

}  // namespace hearth::runtime
