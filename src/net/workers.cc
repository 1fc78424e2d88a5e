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
  // Where a thread waits for work.
  struct Seat {
    std::condition_variable called;
    bool is_called = false;
  };

  void serve(Seat& seat);
  void wait_for_call(std::unique_lock<std::mutex>& lock, Seat& seat);
  bool push(std::function<void()> job);
  void step_aside();
  void come_back();

  // With the lock held.
  bool may_begin() const {
    return !queue.empty() && (at_once == 0 || working < at_once || is_closing);
  }
  Seat* call_one();

  std::size_t queue_limit = 0;
  unsigned at_once = 0;
  std::mutex mutex;  // guards what follows
  std::deque<std::function<void()>> queue;
  // Whoever sat down last is called first: its stack and its part of the heap are still warm, and
  // where there is little to do the others are never touched.
  std::vector<Seat*> idle;
  unsigned working = 0;  // with those who were called and have not come yet
  bool is_closing = false;

  std::deque<Seat> seats;  // one for each thread
  std::vector<std::jthread> threads;
};

namespace {

thread_local Workers::State* employer = nullptr;  // of this thread; null: none
thread_local unsigned asides = 0;                 // one within the other; the first one counts

}  // namespace

void Workers::State::serve(Seat& seat) {
  name_thread("worker");
  employer = this;
  std::unique_lock lock(mutex);
  while (true) {
    if (may_begin()) {
      ++working;
    } else if (is_closing && queue.empty()) {
      return;
    } else {
      wait_for_call(lock, seat);
    }
    if (!queue.empty()) {
      std::function<void()> job = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
    }
    --working;
  }
}

// Returns as one who works; others may have done the work by then.
void Workers::State::wait_for_call(std::unique_lock<std::mutex>& lock, Seat& seat) {
  seat.is_called = false;
  idle.push_back(&seat);
  seat.called.wait(lock, [&] { return seat.is_called; });
}

// Null: nobody sits there, or nobody may begin. Whoever works looks for more when he is done.
Workers::State::Seat* Workers::State::call_one() {
  if (!may_begin() || idle.empty()) return nullptr;
  Seat* seat = idle.back();
  idle.pop_back();
  seat->is_called = true;
  ++working;
  return seat;
}

bool Workers::State::push(std::function<void()> job) {
  Seat* seat = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (queue.size() >= queue_limit) return false;
    queue.push_back(std::move(job));
    seat = call_one();
  }
  if (seat != nullptr) seat->called.notify_one();
  return true;
}

void Workers::State::step_aside() {
  Seat* seat = nullptr;
  {
    const std::lock_guard lock(mutex);
    --working;
    seat = call_one();
  }
  if (seat != nullptr) seat->called.notify_one();
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
    State::Seat& seat = state_->seats.emplace_back();
    state_->threads.emplace_back([state = state_.get(), &seat] { state->serve(seat); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_closing = true;
    for (State::Seat* seat : state_->idle) {
      seat->is_called = true;
      ++state_->working;
      seat->called.notify_one();
    }
    state_->idle.clear();
  }
  state_->threads.clear();  // waits
}

bool Workers::start(std::function<void()> task) {
  return state_->push(std::move(task));
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
