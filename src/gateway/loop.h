// One thread's event loop over epoll, edge-triggered: descriptors, posted work, timers.
//
// Everything but post() and the mailbox belongs to the thread that runs it. Our own and not Asio's
// since a request should cost two reads and two writes: no read is tried before the kernel says
// that there is something.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "linux/fd.h"

namespace hearth::gateway {

// Whoever hears of a descriptor's events. Must live until the batch that it left in is over: see
// Loop::set_after_batch.
class Watched {
 public:
  Watched() = default;
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  virtual ~Watched() = default;
  virtual void on_event(std::uint32_t events) = 0;
};

// Where other threads leave work for a loop. Outlives it where somebody holds it: what is left then
// is dropped.
class Mailbox {
 public:
  Mailbox();

  // From any thread: runs on the loop's.
  void post(std::function<void()> work);

 private:
  friend class Loop;

  const linux::Fd wake_;  // an eventfd
  std::mutex mutex_;      // guards posted_
  std::vector<std::function<void()>> posted_;
};

class Loop {
 public:
  Loop();

  // Until stop().
  void run();
  void stop() { is_stopped_ = true; }

  // From any thread: runs on the loop's.
  void post(std::function<void()> work) { mailbox_->post(std::move(work)); }
  // For those who may be later than the loop's end.
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  // Closing the descriptor ends it, if nobody else has one of the same file.
  void watch(int fd, Watched& watched, std::uint32_t events);
  void unwatch(int fd);

  void after(Duration time, std::function<void()> work);
  // After every batch of events, and every quarter of a second.
  void set_after_batch(std::function<void()> work) { after_batch_ = std::move(work); }
  void set_tick(std::function<void()> work) { tick_ = std::move(work); }

  // The next batch is not waited for.
  void hurry() { is_hurried_ = true; }

  // Steady, in milliseconds; of the batch at hand.
  std::int64_t now() const { return now_; }

 private:
  int patience() const;
  void run_posted();
  void run_timers();

  const linux::Fd epoll_;
  const std::shared_ptr<Mailbox> mailbox_;
  bool is_stopped_ = false;
  bool is_hurried_ = false;
  std::int64_t now_ = 0;
  std::int64_t next_tick_ = 0;
  std::function<void()> after_batch_;
  std::function<void()> tick_;
  std::multimap<std::int64_t, std::function<void()>> timers_;
};

}  // namespace hearth::gateway
