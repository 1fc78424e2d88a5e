#include "net/workers.h"

#include <condition_variable>
#include <deque>
#include <map>
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

  // Whose work it is.
  struct Owner {
    std::string name;
    std::deque<std::function<void()>> queue;
    std::size_t held = 0;  // threads
  };

  void serve(Seat& seat);
  void wait_for_call(std::unique_lock<std::mutex>& lock, Seat& seat);
  bool push(std::function<void()> job, std::string_view whose);
  void step_aside();
  void come_back();

  // With the lock held, all of these.
  bool may_begin() const {
    return (at_once == 0 || working < at_once || is_closing) && find_next() != in_line.size();
  }
  // Nobody has more of anything than is left of it.
  static bool has_enough(std::string_view who, std::size_t his, std::size_t all, std::size_t most) {
    return all >= most || (!who.empty() && his >= most - all);
  }
  std::size_t find_next() const;
  std::function<void()> take_next(Owner*& owner);
  void leave(Owner& owner);
  Seat* call_one();

  std::size_t most_held = 0;
  std::size_t queue_limit = 0;
  unsigned at_once = 0;
  std::mutex mutex;                                  // guards what follows
  std::map<std::string, Owner, std::less<>> owners;  // who has work, or a thread
  std::deque<Owner*> in_line;                        // who has work that waits; the first is next
  std::size_t waiting = 0;                           // all of it
  std::size_t held = 0;                              // threads, by all of them
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
    } else if (is_closing && waiting == 0) {
      return;
    } else {
      wait_for_call(lock, seat);
    }
    Owner* owner = nullptr;
    if (std::function<void()> job = take_next(owner)) {
      // Who ended before us may have left room for more than us.
      Seat* next = call_one();
      lock.unlock();
      if (next != nullptr) next->called.notify_one();
      job();
      job = nullptr;
      lock.lock();
      leave(*owner);
    }
    --working;
  }
}

// Where he stands in the line; its length for nobody.
std::size_t Workers::State::find_next() const {
  std::size_t at = 0;
  while (at < in_line.size() && !is_closing &&
         has_enough(in_line[at]->name, in_line[at]->held, held, most_held))
    ++at;
  return at;
}

// Empty: others have taken all.
std::function<void()> Workers::State::take_next(Owner*& owner) {
  const std::size_t at = find_next();
  if (at == in_line.size()) return {};
  owner = in_line[at];
  in_line.erase(in_line.begin() + static_cast<std::ptrdiff_t>(at));
  std::function<void()> job = std::move(owner->queue.front());
  owner->queue.pop_front();
  if (!owner->queue.empty()) in_line.push_back(owner);
  --waiting;
  ++owner->held;
  ++held;
  return job;
}

void Workers::State::leave(Owner& owner) {
  --held;
  if (--owner.held == 0 && owner.queue.empty()) owners.erase(owners.find(owner.name));
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

bool Workers::State::push(std::function<void()> job, std::string_view whose) {
  Seat* seat = nullptr;
  {
    const std::lock_guard lock(mutex);
    auto place = owners.find(whose);
    const std::size_t his = place == owners.end() ? 0 : place->second.queue.size();
    if (has_enough(whose, his, waiting, queue_limit)) return false;
    if (place == owners.end())
      place = owners.try_emplace(std::string(whose), Owner{.name = std::string(whose)}).first;
    Owner& owner = place->second;
    owner.queue.push_back(std::move(job));
    if (owner.queue.size() == 1) in_line.push_back(&owner);
    ++waiting;
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
  state_->most_held = threads;
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

bool Workers::start(std::function<void()> task, std::string_view whose) {
  return state_->push(std::move(task), whose);
}

asio::awaitable<void> Workers::perform(std::function<void()> task, std::string whose) {
  const asio::any_io_executor home = co_await asio::this_coro::executor;
  bool accepted = true;
  auto start = [this, home, &task, &accepted, &whose](auto handler) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    auto resume = [shared] { std::move (*shared)(); };
    // The guard keeps the coroutine's thread in its loop until it has been told.
    auto job = [&task, resume, home, guard = asio::make_work_guard(home)] {
      task();
      asio::post(home, resume);
    };
    accepted = state_->push(std::move(job), whose);
    if (!accepted) asio::post(home, resume);
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(start, asio::use_awaitable);
  if (!accepted) fail(Code::unavailable, "every worker is busy");
}

}  // namespace hearth::net
