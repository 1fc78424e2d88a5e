// Who waits for a pool, and whose turn it is: the highest priority first, within one the tenants in
// turn, and of a tenant whoever came first.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pool/allocator.h"

namespace hearth::pool {

using Moment = std::chrono::steady_clock::time_point;

struct Waiter {
  Wish wish;
  Served served;
  Moment since;
  Moment deadline;
  std::uint64_t number = 0;  // in which order they came
  bool is_in_line = false;
};
using WaiterPtr = std::shared_ptr<Waiter>;

// Whether it is what somebody wants. A question that throws is answered with no: it is others'
// code, and what it does to itself must not be done to the rest.
bool is_wanted(const Wish& wish, const Json& sandbox);

class Line {
 public:
  void join(const WaiterPtr& waiter);
  // Nothing happens to one who is not there.
  void leave(const Waiter& waiter);
  // The next who wants this one, taken out of the line; null: nobody does.
  WaiterPtr call(const Json& sandbox);
  std::vector<WaiterPtr> everyone() const;
  std::size_t size() const { return size_; }

 private:
  struct Tenant {
    std::uint64_t turn = 0;
    std::map<std::uint64_t, WaiterPtr> waiters;  // by number
  };
  struct Rank {
    std::map<std::string, Tenant, std::less<>> tenants;
    std::map<std::uint64_t, std::string> turns;  // the next one first
  };

  void pass_turn(Rank& rank, Tenant& tenant);
  WaiterPtr find(const Json& sandbox) const;

  std::map<int, Rank, std::greater<>> ranks_;  // by priority
  std::uint64_t last_turn_ = 0;
  std::size_t size_ = 0;
};

}  // namespace hearth::pool
