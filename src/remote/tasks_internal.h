// Coroutines of one conversation, on the thread of its connection: whoever starts them outlives
// them.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>

namespace hearth::remote {

// Something that others may wait for, again and again.
class Bell {
 public:
  explicit Bell(const boost::asio::any_io_executor& executor);

  // Wakes everyone who waits now.
  void ring() { timer_.cancel(); }
  // May also return without having rung: look again at what was waited for.
  boost::asio::awaitable<void> wait();

 private:
  boost::asio::steady_timer timer_;
};

class Tasks {
 public:
  explicit Tasks(const boost::asio::any_io_executor& executor);
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;
  ~Tasks();

  // What it throws is forgotten: a task that matters tells of its failure itself.
  void start(boost::asio::awaitable<void> task);
  // Ends what waits, by an exception.
  void cancel();
  // Until all have ended. Not to be cancelled.
  boost::asio::awaitable<void> wait();

 private:
  using Signal = std::shared_ptr<boost::asio::cancellation_signal>;

  boost::asio::any_io_executor executor_;
  std::list<Signal> running_;
  Bell changed_;
};

// The coroutine that awaits this is not cancelled any more: it has tasks to wait for. They end
// because a server that stops cuts the connection, too.
boost::asio::awaitable<void> outlive_cancellation();

}  // namespace hearth::remote
