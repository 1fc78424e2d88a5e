#include "gateway/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace hearth::gateway {
namespace {

// Taken from the kernel at once. More would make the first of them wait for the last.
constexpr int kBatch = 256;

// How often deadlines are looked at; none is shorter than seconds.
constexpr std::int64_t kTickMilliseconds = 250;

linux::Fd make_epoll() {
  linux::Fd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd) throw_errno("make an epoll");
  return fd;
}

linux::Fd make_eventfd() {
  linux::Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) throw_errno("make an eventfd");
  return fd;
}

std::int64_t steady_milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

Mailbox::Mailbox() : wake_(make_eventfd()) {}

void Mailbox::post(std::function<void()> work) {
  bool was_empty = false;
  {
    const std::lock_guard lock(mutex_);
    was_empty = posted_.empty();
    posted_.push_back(std::move(work));
  }
  if (!was_empty) return;
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
}

Loop::Loop()
    : epoll_(make_epoll()), mailbox_(std::make_shared<Mailbox>()), now_(steady_milliseconds()) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;  // the only one without an owner
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, mailbox_->wake_.get(), &event) != 0) {
    throw_errno("watch an eventfd");
  }
}

void Loop::watch(int fd, Watched& watched, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watched;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw_errno("watch a socket");
}

void Loop::unwatch(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Loop::after(Duration time, std::function<void()> work) {
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  timers_.emplace(steady_milliseconds() + wait, std::move(work));
}

int Loop::patience() const {
  std::int64_t until = next_tick_;
  if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
  return static_cast<int>(std::max<std::int64_t>(until - now_, 0));
}

void Loop::run_posted() {
  std::uint64_t count = 0;
  static_cast<void>(::read(mailbox_->wake_.get(), &count, sizeof count));
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard lock(mailbox_->mutex_);
    work.swap(mailbox_->posted_);
  }
  for (const auto& one : work) one();
}

void Loop::run_timers() {
  while (!timers_.empty() && timers_.begin()->first <= now_) {
    const auto work = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    work();
  }
}

void Loop::run() {
  std::array<epoll_event, kBatch> events{};
  while (!is_stopped_) {
    const int wait = is_hurried_ ? 0 : patience();
    is_hurried_ = false;
    const int count = ::epoll_wait(epoll_.get(), events.data(), kBatch, wait);
    if (count < 0 && errno != EINTR) throw_errno("wait for events");
    now_ = steady_milliseconds();
    bool has_posted = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == nullptr) {
        has_posted = true;
      } else {
        static_cast<Watched*>(event.data.ptr)->on_event(event.events);
      }
    }
    if (has_posted) run_posted();
    run_timers();
    if (now_ >= next_tick_) {
      next_tick_ = now_ + kTickMilliseconds;
      if (tick_) tick_();
    }
    if (after_batch_) after_batch_();
  }
}

}  // namespace hearth::gateway
