#include "guest/log_ring.h"

#include <algorithm>

namespace hearth::guest {

void LogRing::append(std::string_view bytes) {
  if (bytes.size() > capacity_) {
    end_ += bytes.size() - capacity_;
    bytes.remove_prefix(bytes.size() - capacity_);
    bytes_.clear();
    // Positions modulo capacity must go on fitting what follows.
    bytes_.resize(capacity_);
  }
  while (!bytes.empty()) {
    const std::size_t at = static_cast<std::size_t>(end_ % capacity_);
    const std::size_t count = std::min(bytes.size(), capacity_ - at);
    if (bytes_.size() < at + count) bytes_.resize(at + count);
    bytes_.replace(at, count, bytes.substr(0, count));
    end_ += count;
    bytes.remove_prefix(count);
  }
}

std::string LogRing::read(std::uint64_t& from, std::size_t most) const {
  const std::uint64_t oldest = end_ > capacity_ ? end_ - capacity_ : 0;
  from = std::max(from, oldest);
  std::string result;
  while (from < end_ && result.size() < most) {
    const std::size_t at = static_cast<std::size_t>(from % capacity_);
    const std::size_t left = static_cast<std::size_t>(end_ - from);
    const std::size_t count = std::min({left, capacity_ - at, most - result.size()});
    result.append(bytes_, at, count);
    from += count;
  }
  return result;
}

}  // namespace hearth::guest
