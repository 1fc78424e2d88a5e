// A claim's place in the line for a warm sandbox: no worker waits with it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "pool/allocator.h"

namespace hearth::controllers {

class ClaimTicket {
 public:
  // `wake` is called once, on any thread, when there is something to hear. It must not block.
  ClaimTicket(pool::Allocator& allocator, pool::Wish wish, Duration patience,
              std::function<void()> wake);
  ClaimTicket(const ClaimTicket&) = delete;
  ClaimTicket& operator=(const ClaimTicket&) = delete;
  // Leaves the line; a sandbox that was held for it is given back.
  ~ClaimTicket();

  bool is_called() const;
  // What it was called with, once; nothing: it waited in vain.
  std::optional<pool::Hold> take_hold();

 private:
  struct Place;
  std::shared_ptr<Place> place_;
  std::shared_ptr<pool::Allocator::Ticket> ticket_;
};

}  // namespace hearth::controllers
