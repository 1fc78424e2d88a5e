#include <algorithm>
#include <chrono>
#include <memory>

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/watchdog_internal.h"

namespace hearth::net {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

// Nobody waits longer; keeps sums of time points from overflowing.
constexpr Duration kForever = std::chrono::hours(24 * 365);

}  // namespace

struct Watchdog::State {
  explicit State(const boost::asio::any_io_executor& executor) : timer(executor) {}

  boost::asio::steady_timer timer;
  boost::asio::cancellation_signal signal;
  TimePoint deadline = TimePoint::max();     // of the operation
  TimePoint armed_until = TimePoint::max();  // when the timer fires
  bool pending = false;                      // an operation is under way
  bool bit = false;                          // and we cancelled it
};

Watchdog::Watchdog(const boost::asio::any_io_executor& executor)
    : state_(std::make_shared<State>(executor)) {}

Watchdog::~Watchdog() {
  state_->timer.cancel();
}

void Watchdog::arm(const std::shared_ptr<State>& state) {
  state->armed_until = state->deadline;
  state->timer.expires_at(state->deadline);
  state->timer.async_wait([weak = std::weak_ptr(state)](const boost::system::error_code& error) {
    const auto alive = weak.lock();
    if (error || !alive) return;
    alive->armed_until = TimePoint::max();
    if (!alive->pending) return;
    if (std::chrono::steady_clock::now() < alive->deadline) {
      arm(alive);
      return;
    }
    alive->bit = true;
    alive->signal.emit(boost::asio::cancellation_type::terminal);
  });
}

boost::asio::cancellation_slot Watchdog::start(Duration patience,
                                               boost::asio::cancellation_slot outer) {
  state_->pending = true;
  state_->bit = false;
  state_->deadline =
      std::chrono::steady_clock::now() + std::clamp(patience, Duration::zero(), kForever);
  if (state_->deadline < state_->armed_until) arm(state_);
  outer_ = outer;
  if (outer_.is_connected()) {
    outer_.assign(
        [state = state_.get()](boost::asio::cancellation_type type) { state->signal.emit(type); });
  }
  return state_->signal.slot();
}

boost::system::error_code Watchdog::end(const boost::system::error_code& error) {
  state_->pending = false;
  if (outer_.is_connected()) outer_.clear();
  if (error && state_->bit) return boost::asio::error::timed_out;
  return error;
}

}  // namespace hearth::net
