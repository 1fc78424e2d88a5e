#include "network/shelves.h"

namespace hearth::network {

Place Shelves::find(const Policy& policy, const std::function<bool()>& has_twin) const {
  if (policy.mode == Mode::none) return {};
  const auto on = [](unsigned shelf) { return Place{.kind = Place::Kind::shelf, .shelf = shelf}; };
  const Place own{.kind = Place::Kind::own_chain};
  for (unsigned shelf = 0; shelf < kShelves; ++shelf)
    if (!is_free(shelf) && shelves_[shelf].policy == policy) return on(shelf);
  if (!policy.open.empty() || !has_twin()) return own;
  for (unsigned shelf = 0; shelf < kShelves; ++shelf)
    if (is_free(shelf)) return on(shelf);
  return own;
}

void Shelves::enter(const Place& place, const Policy& policy) {
  if (place.kind != Place::Kind::shelf) return;
  Shelf& shelf = shelves_.at(place.shelf);
  shelf.policy = policy;
  ++shelf.users;
}

void Shelves::leave(const Place& place) {
  if (place.kind == Place::Kind::shelf) --shelves_.at(place.shelf).users;
}

}  // namespace hearth::network
