#include "runtime/end_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <utility>

#include "base/error.h"

namespace hearth::runtime {
namespace {

constexpr std::uint64_t kStop = 0;  // no sandbox's tag

}  // namespace

// All descriptors that it ever needs: there may be none left when it is to stop.
EndWatch::EndWatch() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kStop}};
  if (!epoll_ || !stop_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &event) != 0)
    throw_errno("make an epoll");
}

EndWatch::~EndWatch() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void EndWatch::start(std::function<void(const std::string& id)> on_end) {
  on_end_ = std::move(on_end);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

std::uint64_t EndWatch::add(const std::string& id, const linux::Pidfd& pidfd) {
  const std::uint64_t tag = watched_.with([&](Watched& watched) {
    watched.ids[watched.next] = id;
    return watched.next++;
  });
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = tag}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.fd(), &event) != 0)
    throw_errno("watch '{}'", id);
  return tag;
}

void EndWatch::forget(std::uint64_t tag) {
  watched_.with([&](Watched& watched) { watched.ids.erase(tag); });
}

std::string EndWatch::take(std::uint64_t tag) {
  return watched_.with([&](Watched& watched) {
    const auto taken = watched.ids.extract(tag);
    return taken ? taken.mapped() : std::string();
  });
}

void EndWatch::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::array<epoll_event, 16> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
      if (tag == kStop) continue;
      // Closing a pidfd takes it off the watch, but not what was read of it before.
      if (const std::string id = take(tag); !id.empty()) on_end_(id);
    }
  }
}

}  // namespace hearth::runtime
