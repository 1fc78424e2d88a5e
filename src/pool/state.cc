#include <charconv>

#include "base/log.h"
#include "pool/state_internal.h"

namespace hearth::pool {
namespace {

bool has_address(const Json& sandbox) {
  const model::JsonArray* addresses = model::array_at(sandbox, {"status", "podIPs"});
  return addresses && !addresses->empty();
}

Place free_place_of(const Json& sandbox) {
  if (!has_address(sandbox)) return Place::starting;
  return model::is_condition_true(sandbox, "Ready") ? Place::ready : Place::unready;
}

// Of one that is adoptable.
model::Key pool_of(const Json& sandbox) {
  return {std::string(model::namespace_of(sandbox)), model::controller_of(sandbox)->name};
}

std::optional<std::uint64_t> number_of(std::string_view version) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(version.begin(), version.end(), number);
  if (error != std::errc() || end != version.end()) return std::nullopt;
  return number;
}

// Versions of one server are numbers that rise. Where they are not, what comes later is newer.
std::weak_ordering compare_versions(std::string_view left, std::string_view right) {
  if (left == right) return std::weak_ordering::equivalent;
  const auto left_number = number_of(left);
  const auto right_number = number_of(right);
  if (!left_number || !right_number) return std::weak_ordering::greater;
  return *left_number <=> *right_number;
}

}  // namespace

void AllocatorState::lift(Member& member) {
  const auto found = pools_.find(member.pool);
  switch (std::exchange(member.place, Place::nowhere)) {
    case Place::nowhere:
      return;
    case Place::starting:
      --found->second.starting;
      break;
    case Place::unready:
      found->second.unready.remove(member.node, member.age);
      break;
    case Place::ready:
      found->second.ready.remove(member.node, member.age);
      break;
    case Place::held:
      --found->second.held;
      break;
  }
  if (found->second.is_empty()) pools_.erase(found);
}

void AllocatorState::put_in(Member& member, Place place) {
  member.place = place;
  if (place == Place::nowhere) return;
  Pool& pool = pools_[member.pool];
  if (place == Place::starting) ++pool.starting;
  if (place == Place::unready) pool.unready.add(member.node, member.age, member);
  if (place == Place::ready) pool.ready.add(member.node, member.age, member);
  if (place == Place::held) ++pool.held;
}

// Where it belongs: whoever waits for it comes before the shelf.
void AllocatorState::put(Member& member, Deliveries& deliveries) {
  if (member.hold != 0) return put_in(member, Place::held);
  if (!member.is_idle || member.is_aside) return;
  const Place place = free_place_of(*member.sandbox);
  const auto pool = pools_.find(member.pool);
  if (place != Place::starting && pool != pools_.end()) {
    if (WaiterPtr waiter = pool->second.line.call(*member.sandbox)) {
      deadlines_.erase({waiter->deadline, waiter->number});
      figures_.wait.observe(std::chrono::steady_clock::now() - waiter->since);
      deliveries.push_back({.waiter = std::move(waiter), .hold = hold(member)});
      return;
    }
  }
  put_in(member, place);
}

Hold AllocatorState::hold(Member& member) {
  lift(member);
  member.hold = ++last_number_;
  put_in(member, Place::held);
  return {shared_from_this(), member.sandbox, member.hold};
}

void AllocatorState::learn(const Object& now, bool is_from_cache) {
  const bool is_idle = is_adoptable(*now);
  if (is_idle) figures_.meet(pool_of(*now));
  std::string key = model::key_of(*now).text();
  Deliveries deliveries;
  {
    const std::lock_guard lock(mutex_);
    auto found = members_.find(key);
    if (found == members_.end()) {
      // Of one that the cache does not have any more there is nothing to be learnt.
      if (!is_idle || !is_from_cache) return;
      found = members_.try_emplace(std::move(key)).first;
      found->second.age = {model::created_at(*now).value_or(Time::max()), ++last_number_};
    } else {
      const auto order = compare_versions(model::resource_version_of(*now),
                                          model::resource_version_of(*found->second.sandbox));
      if (order < 0) return;
      if (order == 0) {
        found->second.is_seen |= is_from_cache;
        const bool is_over = !found->second.is_idle && found->second.is_seen;
        if (is_over && found->second.hold == 0) members_.erase(found);
        return;
      }
    }
    Member& member = found->second;
    lift(member);
    member.sandbox = now;
    member.is_idle = is_idle;
    member.is_seen = is_from_cache;
    member.is_aside = false;
    member.node = model::text_at(*now, {"status", "nodeName"});
    if (is_idle) member.pool = pool_of(*now);
    put(member, deliveries);
    if (!is_idle && member.is_seen && member.hold == 0) members_.erase(found);
  }
  deliver(std::move(deliveries));
}

void AllocatorState::see_gone(const Object& last) {
  const std::string key = model::key_of(*last).text();
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(key);
  if (found == members_.end()) return;
  lift(found->second);
  members_.erase(found);
}

std::optional<Hold> AllocatorState::take(const Wish& wish) {
  const Moment began = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  std::optional<Hold> hold = take_locked(wish);
  figures_.take.observe(std::chrono::steady_clock::now() - began);
  PoolFigures& figures = figures_.of(wish.pool);
  (hold ? figures.hits : figures.misses).add();
  return hold;
}

std::optional<Hold> AllocatorState::take_locked(const Wish& wish) {
  const auto pool = pools_.find(wish.pool);
  if (pool == pools_.end()) return std::nullopt;
  const auto is_right = [&](const Member& member) { return is_wanted(wish, *member.sandbox); };
  Member* member = pool->second.ready.find(is_right);
  if (!member) member = pool->second.unready.find(is_right);
  if (!member) return std::nullopt;
  return hold(*member);
}

Member* AllocatorState::find_held(const Hold& hold) {
  const auto found = members_.find(model::key_of(*hold.sandbox()).text());
  const bool is_it = found != members_.end() && found->second.hold == hold.number_;
  return is_it ? &found->second : nullptr;
}

void AllocatorState::release(const Hold& hold, bool is_aside, Deliveries& deliveries) {
  Member* member = find_held(hold);
  if (!member) return;
  lift(*member);
  member->hold = 0;
  // What has changed meanwhile is another version, which nobody has found useless.
  member->is_aside = is_aside && compare_versions(model::resource_version_of(*member->sandbox),
                                                  model::resource_version_of(*hold.sandbox())) == 0;
  put(*member, deliveries);
  if (!member->is_idle && member->is_seen) members_.erase(model::key_of(*hold.sandbox()).text());
}

void AllocatorState::give_back(const Hold& hold) {
  Deliveries deliveries;
  {
    const std::lock_guard lock(mutex_);
    release(hold, /*is_aside=*/false, deliveries);
  }
  deliver(std::move(deliveries));
}

void AllocatorState::keep(const Hold& hold) {
  Deliveries deliveries;
  {
    const std::lock_guard lock(mutex_);
    release(hold, /*is_aside=*/true, deliveries);
  }
  deliver(std::move(deliveries));
}

Object AllocatorState::newest(const Hold& hold) const {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(model::key_of(*hold.sandbox()).text());
  if (found == members_.end() || found->second.hold != hold.number_) return nullptr;
  return found->second.is_idle ? found->second.sandbox : nullptr;
}

void AllocatorState::wait(const WaiterPtr& waiter) {
  Deliveries deliveries;
  {
    const std::lock_guard lock(mutex_);
    waiter->number = ++last_number_;
    figures_.of(waiter->wish.pool).waits.add();
    std::optional<Hold> hold = take_locked(waiter->wish);
    if (hold || waiter->deadline <= waiter->since) {
      deliveries.push_back({.waiter = waiter, .hold = std::move(hold)});
    } else {
      pools_[waiter->wish.pool].line.join(waiter);
      const auto at = deadlines_.emplace(std::pair(waiter->deadline, waiter->number), waiter).first;
      if (at == deadlines_.begin()) earlier_.notify_one();
    }
  }
  deliver(std::move(deliveries));
}

void AllocatorState::leave(const Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  leave_locked(waiter);
}

void AllocatorState::leave_locked(const Waiter& waiter) {
  const auto pool = pools_.find(waiter.wish.pool);
  if (!waiter.is_in_line || pool == pools_.end()) return;
  pool->second.line.leave(waiter);
  deadlines_.erase({waiter.deadline, waiter.number});
  if (pool->second.is_empty()) pools_.erase(pool);
}

void AllocatorState::serve_with_nothing(const std::vector<WaiterPtr>& waiters,
                                        Deliveries& deliveries) {
  for (const WaiterPtr& waiter : waiters) {
    leave_locked(*waiter);
    figures_.of(waiter->wish.pool).refusals.add();
    deliveries.push_back({.waiter = waiter, .hold = std::nullopt});
  }
}

void AllocatorState::drop(const model::Key& pool) {
  Deliveries deliveries;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [key, member] : members_) {
      if (member.pool != pool || member.hold != 0) continue;
      lift(member);
      member.is_aside = true;
    }
    const auto found = pools_.find(pool);
    if (found != pools_.end()) serve_with_nothing(found->second.line.everyone(), deliveries);
  }
  deliver(std::move(deliveries));
}

void AllocatorState::close() {
  Deliveries deliveries;
  {
    const std::lock_guard lock(mutex_);
    std::vector<WaiterPtr> all;
    for (const auto& [key, pool] : pools_) {
      for (WaiterPtr& waiter : pool.line.everyone()) all.push_back(std::move(waiter));
    }
    serve_with_nothing(all, deliveries);
  }
  deliver(std::move(deliveries));
}

Stock AllocatorState::stock(const model::Key& pool) const {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(pool);
  return found == pools_.end() ? Stock{} : found->second.stock();
}

std::vector<std::pair<model::Key, Stock>> AllocatorState::stocks() const {
  std::vector<std::pair<model::Key, Stock>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, pool] : pools_) all.emplace_back(key, pool.stock());
  return all;
}

void AllocatorState::note_commit(const Hold& hold, Duration time, bool is_won) {
  figures_.commit.observe(time);
  if (is_won) return;
  const std::lock_guard lock(mutex_);
  figures_.of(pool_of(*hold.sandbox())).conflicts.add();
}

void AllocatorState::watch_deadlines(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (deadlines_.empty()) {
      earlier_.wait(lock, stop, [&] { return !deadlines_.empty(); });
      continue;
    }
    const auto [next, number] = deadlines_.begin()->first;
    if (std::chrono::steady_clock::now() < next) {
      earlier_.wait_until(lock, stop, next, [&] {
        return deadlines_.empty() || deadlines_.begin()->first.first < next;
      });
      continue;
    }
    Deliveries deliveries;
    serve_with_nothing({deadlines_.begin()->second}, deliveries);
    lock.unlock();
    deliver(std::move(deliveries));
    lock.lock();
  }
}

// A hold that is given back while somebody is being told goes to the next in line. That is done
// here too, one after the other: a long line must not become a deep stack.
void AllocatorState::deliver(Deliveries deliveries) {
  thread_local Deliveries* waiting = nullptr;
  if (waiting) {
    for (Delivery& delivery : deliveries) waiting->push_back(std::move(delivery));
    return;
  }
  waiting = &deliveries;
  while (!deliveries.empty()) {
    Deliveries now = std::exchange(deliveries, {});
    for (Delivery& delivery : now) {
      try {
        const Served served = std::move(delivery.waiter->served);
        served(std::move(delivery.hold));
      } catch (const std::exception& error) {
        log::error("one who waited for a sandbox failed", {{"reason", error.what()}});
      }
    }
  }
  waiting = nullptr;
}

}  // namespace hearth::pool
