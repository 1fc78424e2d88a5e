// Writers that share one commit.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "linux/latch.h"
#include "store/store.h"

namespace hearth::store {

// One writer, on its own stack: there until its batch is done.
struct Store::Turn {
  std::span<Write> writes;  // all or none
  std::span<Outcome> outcomes;
  std::optional<Error> error = {};
};

struct Store::Batch {
  std::vector<Turn*> turns;
  std::size_t bytes = 0;
  std::size_t expected = 0;  // how many its leader waits for; 0: it does not
  linux::Latch complete;     // they are there
  linux::Latch done;         // committed, or failed
};

}  // namespace hearth::store
