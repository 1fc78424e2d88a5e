// Where in the table the policies of sandboxes are kept: those that several share on a shelf,
// others in chains of their own (table.h). Pure.
#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "network/policy.h"
#include "network/table.h"

namespace hearth::network {

class Shelves {
 public:
  // The first one is for the plain policy, always.
  Shelves() { shelves_[0] = {.policy = {.mode = Mode::world}, .users = 1}; }

  // For a sandbox with this policy. A shelf is taken for the second one: `has_twin`, if somebody
  // else has it; asked only where that counts. Policies that open neighbours are not shared, since
  // neighbours come and go.
  Place find(const Policy& policy, const std::function<bool()>& has_twin) const;

  bool is_free(unsigned shelf) const { return shelves_.at(shelf).users == 0; }
  const Policy& policy(unsigned shelf) const { return shelves_.at(shelf).policy; }

  void enter(const Place& place, const Policy& policy);
  void leave(const Place& place);

 private:
  struct Shelf {
    Policy policy;
    std::size_t users = 0;
  };
  std::array<Shelf, kShelves> shelves_;
};

}  // namespace hearth::network
