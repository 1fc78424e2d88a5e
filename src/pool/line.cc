#include "base/log.h"
#include "pool/line_internal.h"

namespace hearth::pool {

bool is_wanted(const Wish& wish, const Json& sandbox) {
  if (!wish.fits) return true;
  try {
    return wish.fits(sandbox);
  } catch (const std::exception& error) {
    log::error("a wish for a sandbox failed", {{"reason", error.what()}});
    return false;
  }
}

void Line::join(const WaiterPtr& waiter) {
  Rank& rank = ranks_[waiter->wish.priority];
  Tenant& tenant = rank.tenants[waiter->wish.tenant];
  if (tenant.waiters.empty()) {
    tenant.turn = ++last_turn_;
    rank.turns.emplace(tenant.turn, waiter->wish.tenant);
  }
  tenant.waiters.emplace(waiter->number, waiter);
  waiter->is_in_line = true;
  ++size_;
}

void Line::leave(const Waiter& waiter) {
  if (!waiter.is_in_line) return;
  const auto rank = ranks_.find(waiter.wish.priority);
  const auto tenant = rank->second.tenants.find(waiter.wish.tenant);
  const auto place = tenant->second.waiters.find(waiter.number);
  place->second->is_in_line = false;
  --size_;
  tenant->second.waiters.erase(place);
  if (!tenant->second.waiters.empty()) return;
  rank->second.turns.erase(tenant->second.turn);
  rank->second.tenants.erase(tenant);
  if (rank->second.tenants.empty()) ranks_.erase(rank);
}

WaiterPtr Line::find(const Json& sandbox) const {
  for (const auto& [priority, rank] : ranks_) {
    for (const auto& [turn, name] : rank.turns) {
      for (const auto& [number, waiter] : rank.tenants.find(name)->second.waiters) {
        if (is_wanted(waiter->wish, sandbox)) return waiter;
      }
    }
  }
  return nullptr;
}

WaiterPtr Line::call(const Json& sandbox) {
  WaiterPtr waiter = find(sandbox);
  if (!waiter) return nullptr;
  Rank& rank = ranks_.find(waiter->wish.priority)->second;
  pass_turn(rank, rank.tenants.find(waiter->wish.tenant)->second);
  leave(*waiter);
  return waiter;
}

void Line::pass_turn(Rank& rank, Tenant& tenant) {
  auto turn = rank.turns.extract(tenant.turn);
  tenant.turn = ++last_turn_;
  turn.key() = tenant.turn;
  rank.turns.insert(std::move(turn));
}

std::vector<WaiterPtr> Line::everyone() const {
  std::vector<WaiterPtr> all;
  for (const auto& [priority, rank] : ranks_) {
    for (const auto& [name, tenant] : rank.tenants) {
      for (const auto& [number, waiter] : tenant.waiters) all.push_back(waiter);
    }
  }
  return all;
}

}  // namespace hearth::pool
