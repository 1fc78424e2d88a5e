// Threads for handlers that block: kernel, disk, waiting for another process.
//
// Handlers run on the thread of their connection, which serves hundreds of others; what blocks is
// done here, and the coroutine goes on, on its own thread, with the result.
//
// Work may be somebody's. Then they take turns, and nobody has more threads than he leaves to
// others: one has half of them, of two each has a third, and whoever comes next finds some.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace hearth::net {

class Workers {
 public:
  struct State;

  // `queue_limit`: how much work may wait for a thread. More would only wait longer than its
  // client does. `at_once`: how many of the threads work at the same time, besides those that have
  // stepped aside; 0: all. With more than a few to a processor they only get in each other's way,
  // and what came first ends last.
  explicit Workers(unsigned threads, std::size_t queue_limit = 256, unsigned at_once = 0);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Waits for what was begun and what was queued.
  ~Workers();

  // What `work()` returns or throws. Throws Error(unavailable) when the queue is full. Cannot be
  // called off: a coroutine that is cancelled meanwhile ends when the work has ended.
  template <typename F>
  boost::asio::awaitable<std::invoke_result_t<F&>> run(F work, std::string whose = {}) {
    using Result = std::invoke_result_t<F&>;
    std::exception_ptr failure;
    if constexpr (std::is_void_v<Result>) {
      std::function<void()> task = [&] { attempt(work, failure); };
      co_await perform(std::move(task), std::move(whose));
      if (failure) std::rethrow_exception(failure);
    } else {
      std::optional<Result> result;
      auto keep = [&] { result.emplace(work()); };
      std::function<void()> task = [&] { attempt(keep, failure); };
      co_await perform(std::move(task), std::move(whose));
      if (failure) std::rethrow_exception(failure);
      co_return std::move(*result);
    }
  }

  // For who waits for nothing. False: the queue is full. `task` must not throw. `whose` is anything
  // that tells them apart; empty: nobody's, who may have all.
  bool start(std::function<void()> task, std::string_view whose = {});

  // As long as it lives, this thread waits for something: another may work in its place. On threads
  // that are none of any Workers it does nothing.
  class Aside {
   public:
    Aside();
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;
    ~Aside();
  };

 private:
  template <typename F>
  static void attempt(F& work, std::exception_ptr& failure) {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  // `task` must not throw.
  boost::asio::awaitable<void> perform(std::function<void()> task, std::string whose);

  std::unique_ptr<State> state_;
};

}  // namespace hearth::net
