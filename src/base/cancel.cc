#include "base/cancel.h"

#include <condition_variable>
#include <mutex>

namespace hearth {

bool sleep_for(const std::stop_token& stop, Duration time) {
  std::mutex mutex;
  std::condition_variable_any called_off;
  std::unique_lock lock(mutex);
  called_off.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace hearth
