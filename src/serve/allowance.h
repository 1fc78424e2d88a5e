// How much of what clients send requests may keep in memory at once, all together: nobody's limits
// hold for the guest, and there may be a thousand of them.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/error.h"

namespace hearth::serve {

class Allowance {
 public:
  explicit Allowance(std::size_t most) : most_(most) {}
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;
  ~Allowance() = default;

  std::size_t taken() const { return taken_; }

 private:
  friend class Share;

  const std::size_t most_;
  std::atomic<std::size_t> taken_ = 0;
};

// What one of them keeps. Belongs to a thread.
class Share {
 public:
  // Of an allowance that outlives the share; nullptr: there is no end to it.
  explicit Share(Allowance* of = nullptr) : of_(of) {}
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() { set(0); }

  // So many bytes from now on. Throws Error(exhausted), and nothing has changed. What is small is
  // kept whatever others keep: who would end a large one must be heard.
  void set(std::size_t bytes) {
    const std::size_t wanted = bytes <= kSmall ? 0 : bytes;
    if (of_ == nullptr || wanted == held_) return;
    if (wanted > held_) {
      const std::size_t more = wanted - held_;
      if (of_->taken_.fetch_add(more) + more > of_->most_) {
        of_->taken_ -= more;
        fail(Code::exhausted, "requests under way hold {} bytes, and there is no room for more",
             of_->taken_.load());
      }
    } else {
      of_->taken_ -= held_ - wanted;
    }
    held_ = wanted;
  }

 private:
  static constexpr std::size_t kSmall = std::size_t{64} << 10;

  Allowance* of_;
  std::size_t held_ = 0;
};

}  // namespace hearth::serve
