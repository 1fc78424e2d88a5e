#include <chrono>
#include <exception>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "remote/tasks_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;

Bell::Bell(const asio::any_io_executor& executor) : timer_(executor) {
  timer_.expires_at(std::chrono::steady_clock::time_point::max());
}

asio::awaitable<void> Bell::wait() {
  co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
}

Tasks::Tasks(const asio::any_io_executor& executor) : executor_(executor), changed_(executor) {}

Tasks::~Tasks() {
  HEARTH_ASSERT(running_.empty());
}

void Tasks::start(asio::awaitable<void> task) {
  const auto entry = running_.insert(running_.end(), std::make_shared<asio::cancellation_signal>());
  const asio::cancellation_slot slot = (*entry)->slot();
  auto done = [this, entry](const std::exception_ptr&) {
    // Not destroyed before the coroutine is, which still knows its slot.
    asio::post(executor_, [signal = std::move(*entry)] {});
    running_.erase(entry);
    changed_.ring();
  };
  asio::co_spawn(executor_, std::move(task), asio::bind_cancellation_slot(slot, std::move(done)));
}

void Tasks::cancel() {
  const std::list<Signal> all = running_;
  for (const Signal& signal : all) {
    if (signal) signal->emit(asio::cancellation_type::terminal);
  }
}

asio::awaitable<void> Tasks::wait() {
  while (!running_.empty()) co_await changed_.wait();
}

asio::awaitable<void> outlive_cancellation() {
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
}

}  // namespace hearth::remote
