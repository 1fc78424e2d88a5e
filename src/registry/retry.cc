#include "registry/retry.h"

#include <algorithm>
#include <random>

#include "base/cancel.h"

namespace hearth::registry {
namespace {

constexpr unsigned kAttempts = 5;
// However much progress there is in between: someone may be keeping us busy.
constexpr unsigned kAllAttempts = 100;
constexpr Duration kLongestPause = std::chrono::seconds(60);

// Between half and all of it, so that many clients that failed together do not return together.
Duration with_jitter(Duration pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<Duration::rep> part(pause.count() / 2, pause.count());
  return Duration(part(random));
}

}  // namespace

void Retry::wait_or_rethrow(const Error& error, bool progress) {
  const bool may_pass = error.code() == Code::unavailable || error.code() == Code::timeout;
  failures_ = progress ? 1 : failures_ + 1;
  if (!may_pass || failures_ >= kAttempts || ++all_ >= kAllAttempts || options_.deadline.passed() ||
      options_.stop.stop_requested()) {
    throw;
  }
  Duration pause = with_jitter(options_.pause * (1 << (failures_ - 1)));
  if (const auto* busy = dynamic_cast<const Busy*>(&error)) pause = std::max(pause, busy->wait());
  pause = std::min(pause, kLongestPause);
  if (options_.note) {
    const auto seconds = std::chrono::duration<double>(pause).count();
    options_.note(fmt::format("trying again in {:.1f} s: {}", seconds, error.what()));
  }
  if (!sleep_for(options_.stop, pause)) throw;
}

}  // namespace hearth::registry
