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

  std::size_t queue_limit = 0;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool closing = false;

  std::vector<std::jthread> threads;
};

void Workers::State::serve() {
  name_thread("worker");
  while (true) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return closing || !queue.empty(); });
      if (queue.empty()) return;
      job = std::move(queue.front());
      queue.pop_front();
    }
    job();
  }
}

bool Workers::State::push(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex);
    if (queue.size() >= queue_limit) return false;
    queue.push_back(std::move(job));
  }
  changed.notify_one();
  return true;
}

Workers::Workers(unsigned threads, std::size_t queue_limit) : state_(std::make_unique<State>()) {
  state_->queue_limit = queue_limit;
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
