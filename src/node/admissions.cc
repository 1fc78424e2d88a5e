#include "node/admissions.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace hearth::node {
namespace {

constexpr std::size_t kMostWaiting = 256;
// One that asks for many names must not make the others wait for long.
constexpr std::ptrdiff_t kMostOfOne = 8;

}  // namespace

Admissions::Admissions(Admit admit)
    : admit_(std::move(admit)), ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!ready_) throw_errno("make an eventfd for names");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

bool Admissions::submit(Answer answer) {
  const std::lock_guard lock(mutex_);
  const auto of_one = std::ranges::count(waiting_, answer.client, &Answer::client);
  if (waiting_.size() >= kMostWaiting || of_one >= kMostOfOne) return false;
  waiting_.push_back(std::move(answer));
  news_.notify_one();
  return true;
}

std::vector<Admissions::Answer> Admissions::take_ready() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(ready_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

std::string Admissions::admitted(const Answer& answer) const {
  try {
    admit_(answer.client, answer.name, answer.addresses);
    return answer.message;
  } catch (const std::exception& error) {
    log::warning("a sandbox could not be let through to a host",
                 {{"host", answer.name}, {"error", error.what()}});
    return answer.refusal;
  }
}

void Admissions::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (news_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
    Answer answer = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    answer.message = admitted(answer);
    lock.lock();
    done_.push_back(std::move(answer));
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(ready_.get(), &one, sizeof one);
  }
}

}  // namespace hearth::node
