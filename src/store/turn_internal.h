// Who uses the file: the store's queue of writers, and of those who need the file left alone.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "store/store.h"

namespace hearth::store {

// One who waits for the turn, on its own stack.
struct Store::Turn {
  Write* write = nullptr;  // null: work of another kind, which nobody else can do for it
  std::condition_variable changed;
  bool done = false;  // somebody else committed the write
  Outcome outcome;
  std::optional<Error> error;
};

// The turn without a write.
class Store::HeldTurn {
 public:
  explicit HeldTurn(Store& store) : store_(store) {
    std::unique_lock lock(store_.turns_mutex_);
    store_.turns_.push_back(&turn_);
    turn_.changed.wait(lock, [&] { return !store_.taken_ && store_.turns_.front() == &turn_; });
    store_.turns_.pop_front();
    store_.taken_ = true;
  }
  HeldTurn(const HeldTurn&) = delete;
  HeldTurn& operator=(const HeldTurn&) = delete;
  ~HeldTurn() { store_.pass_turn(); }

 private:
  Store& store_;
  Turn turn_;
};

}  // namespace hearth::store
