#include "node/ends.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>

#include "base/error.h"

namespace hearth::node {
namespace {

// What tells the thread to end; no sandbox has this number.
constexpr std::uint64_t kWake = 0;

SandboxEnd read_end(guest::Connection& connection) {
  try {
    const auto exited = connection.wait(Deadline::after(Duration(0)));
    if (exited) return {.how = SandboxEnd::How::exited, .exited = *exited};
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return {.how = SandboxEnd::How::never_began};
  }
  return {.how = SandboxEnd::How::vanished};
}

}  // namespace

Ends::Ends() {
  epoll_ = linux::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) throw_errno("make an epoll");
  wake_ = linux::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) throw_errno("make an eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
    throw_errno("watch an eventfd");
  thread_ = std::jthread([this] { run(); });
}

void Ends::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void Ends::watch(const std::string& sandbox, guest::Connection connection, bool has_main,
                 Told told) {
  auto watched = std::make_shared<Watched>(
      Watched{.sandbox = sandbox, .connection = std::move(connection), .told = std::move(told)});
  if (has_main) watched->connection.ask_for_end();
  forget(sandbox);
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = next_++;
  watched_.emplace(number, watched);
  numbers_[sandbox] = number;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watched->connection.fd(), &event) != 0)
    throw_errno("watch the guest of '{}'", sandbox);
}

bool Ends::signal(std::string_view sandbox, int signal) {
  const std::lock_guard lock(mutex_);
  const auto number = numbers_.find(sandbox);
  if (number == numbers_.end()) return false;
  try {
    watched_.at(number->second)->connection.send_signal(signal, /*to_group=*/false);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Ends::forget(std::string_view sandbox) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = numbers_.find(sandbox);
    if (found == numbers_.end()) return;
    number = found->second;
  }
  take(number);
}

std::shared_ptr<Ends::Watched> Ends::take(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = watched_.find(number);
  if (found == watched_.end()) return nullptr;
  std::shared_ptr<Watched> watched = std::move(found->second);
  watched_.erase(found);
  numbers_.erase(watched->sandbox);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched->connection.fd(), nullptr);
  return watched;
}

void Ends::run() {
  while (true) {
    std::array<epoll_event, 64> events{};
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
      if (number == kWake) return;
      hear(number);
    }
  }
}

void Ends::hear(std::uint64_t number) {
  const std::shared_ptr<Watched> watched = take(number);
  if (watched) watched->told(read_end(watched->connection));
}

}  // namespace hearth::node
