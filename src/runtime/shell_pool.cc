#include "runtime/shell_pool.h"

#include <signal.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

// Requests that follow each other closer than this are a burst.
constexpr Duration kQuiet = 3ms;
// After a failure: what made it fail will not go away in a microsecond.
constexpr Duration kRest = 1s;

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace

ShellPool::ShellPool(const ShellMaker& maker, const PoolOptions& options)
    : maker_(maker),
      limits_(options.limits),
      with_network_(options.with_network),
      size_(options.size) {
  if (size_ > 0) refiller_ = std::jthread([this](const std::stop_token& stop) { refill(stop); });
}

ShellPool::~ShellPool() {
  drain();
}

std::optional<Shell> ShellPool::take() {
  const std::lock_guard lock(mutex_);
  if (shells_.empty()) {
    ++misses_;
    return std::nullopt;
  }
  ++hits_;
  Shell shell = std::move(shells_.front());
  shells_.pop_front();
  changed_.notify_one();
  return shell;
}

void ShellPool::note_request() {
  last_request_ = now();
}

bool ShellPool::quiet() const {
  return now() - last_request_ > kQuiet.count();
}

PoolCounts ShellPool::counts() const {
  const std::lock_guard lock(mutex_);
  return {.ready = shells_.size(), .wanted = size_, .hits = hits_, .misses = misses_};
}

void ShellPool::refill(const std::stop_token& stop) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return shells_.size() < size_; });
      if (stop.stop_requested()) return;
    }
    if (!quiet()) {
      if (!sleep_for(stop, kQuiet)) return;
      continue;
    }
    try {
      Shell shell = maker_.make(limits_, with_network_);
      try {
        ShellMaker::wait_until_ready(shell);
      } catch (const Error&) {
        maker_.unmake(ShellMaker::remains_of(shell), shell.pidfd);
        throw;
      }
      const std::lock_guard lock(mutex_);
      shells_.push_back(std::move(shell));
    } catch (const Error& error) {
      log::warning("no shell could be made ahead", {{"error", error.what()}});
      if (!sleep_for(stop, kRest)) return;
    }
  }
}

void ShellPool::drain() {
  if (refiller_.joinable()) {
    refiller_.request_stop();
    refiller_.join();
  }
  std::deque<Shell> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(shells_);
  }
  for (const Shell& shell : left) shell.pidfd.send_signal(SIGKILL);  // side by side
  for (Shell& shell : left) {
    try {
      maker_.unmake(ShellMaker::remains_of(shell), shell.pidfd);
    } catch (const Error& error) {
      log::error("a shell does not go", {{"error", error.what()}});
    }
  }
}

}  // namespace hearth::runtime
