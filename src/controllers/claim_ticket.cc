#include "controllers/claim_ticket.h"

#include <mutex>
#include <utility>

namespace hearth::controllers {

struct ClaimTicket::Place {
  mutable std::mutex mutex;  // guards the rest
  bool is_called = false;
  std::optional<pool::Hold> hold;
};

ClaimTicket::ClaimTicket(pool::Allocator& allocator, pool::Wish wish, Duration patience,
                         std::function<void()> wake)
    : place_(std::make_shared<Place>()) {
  // Who is called may have left already: then the hold goes with the last who knows the place.
  ticket_ =
      allocator.wait(std::move(wish), patience,
                     [place = place_, wake = std::move(wake)](std::optional<pool::Hold> hold) {
                       {
                         const std::lock_guard lock(place->mutex);
                         place->is_called = true;
                         place->hold = std::move(hold);
                       }
                       wake();
                     });
}

ClaimTicket::~ClaimTicket() = default;

bool ClaimTicket::is_called() const {
  const std::lock_guard lock(place_->mutex);
  return place_->is_called;
}

std::optional<pool::Hold> ClaimTicket::take_hold() {
  const std::lock_guard lock(place_->mutex);
  return std::exchange(place_->hold, std::nullopt);
}

}  // namespace hearth::controllers
