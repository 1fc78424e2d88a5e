#include "net/workers.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "base/thread_name.h"

namespace hearth::net {

namespace asio = boost::asio;

struct Workers::State {
  void serve();
  bool push(std::function<void()> job);
  void step_aside();
  void come_back();

  // With the lock held.
  bool may_begin() const { return !queue.empty() && (at_once == 0 || working < at_once); }

  std::size_t queue_limit = 0;
  unsigned at_once = 0;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  unsigned working = 0;
  bool closing = false;

  std::vector<std::jthread> threads;
};

namespace {

thread_local Workers::State* employer = nullptr;  // of this thread; null: none
thread_local unsigned asides = 0;                 // one within the other; the first one counts

}  // namespace

void Workers::State::serve() {
  name_thread("worker");
  employer = this;
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return may_begin() || (closing && queue.empty()); });
    if (queue.empty()) return;
    std::function<void()> job = std::move(queue.front());
    queue.pop_front();
    ++working;
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    --working;
    if (closing && queue.empty()) changed.notify_all();
  }
}

bool Workers::State::push(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex);
    if (queue.size() >= queue_limit) return false;
    queue.push_back(std::move(job));
    // Who works looks for more when he is done.
    if (!may_begin()) return true;
  }
  changed.notify_one();
  return true;
}

void Workers::State::step_aside() {
  {
    const std::lock_guard lock(mutex);
    --working;
    if (!may_begin()) return;
  }
  changed.notify_one();
}

void Workers::State::come_back() {
  const std::lock_guard lock(mutex);
  ++working;
}

Workers::Aside::Aside() {
  if (employer && asides++ == 0) employer->step_aside();
}

Workers::Aside::~Aside() {
  if (employer && --asides == 0) employer->come_back();
}

Workers::Workers(unsigned threads, std::size_t queue_limit, unsigned at_once)
    : state_(std::make_unique<State>()) {
  state_->queue_limit = queue_limit;
  state_->at_once = at_once;
  for (unsigned i = 0; i < threads; ++i) {
    state_->threads.emplace_back([state = state_.get()] { state->serve(); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->closing = true;
  }
  state_->changed.notify_all();
}

asio::awaitable<void> Workers::perform(std::function<void()> task) {
  const asio::any_io_executor home = co_await asio::this_coro::executor;
  bool accepted = true;
  auto start = [this, home, &task, &accepted](auto handler) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    auto resume = [shared] { std::move (*shared)(); };
    // The guard keeps the coroutine's thread in its loop until it has been told.
    auto job = [&task, resume, home, guard = asio::make_work_guard(home)] {
      task();
      asio::post(home, resume);
    };
    accepted = state_->push(std::move(job));
    if (!accepted) asio::post(home, resume);
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(start, asio::use_awaitable);
  if (!accepted) fail(Code::unavailable, "every worker is busy");
}

}  // namespace hearth::net
