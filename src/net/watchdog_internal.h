// Ends an operation that takes too long, and costs next to nothing when none does.
//
// Setting a kernel timer for every read would cost more than the read. So the timer is left
// running when an operation ends; when it fires it looks whether the operation of that moment is
// overdue, and otherwise sleeps until that one would be.
#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/system/error_code.hpp>

#include "base/clock.h"

namespace hearth::net {

class Watchdog {
 public:
  explicit Watchdog(const boost::asio::any_io_executor& executor);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // An operation begins: bind the returned slot to it, and it is cancelled after `patience`, or
  // when the coroutine that waits for it is (`outer` is that one's slot).
  boost::asio::cancellation_slot start(Duration patience, boost::asio::cancellation_slot outer);
  // It ended with `error`; returns timed_out in its place if that was our doing.
  boost::system::error_code end(const boost::system::error_code& error);

 private:
  struct State;
  static void arm(const std::shared_ptr<State>& state);

  boost::asio::cancellation_slot outer_;
  std::shared_ptr<State> state_;  // shared with the timer's wait, which may outlive us
};

}  // namespace hearth::net
