#include "controllers/claim_memory.h"

namespace hearth::controllers {
namespace {

// By which a cache is behind with a new claim.
constexpr Duration kMostLag = std::chrono::seconds(5);

}  // namespace

void ClaimMemory::take_over_birth(Time now) {
  auto told = birth.with([](auto& there) { return std::exchange(there, std::nullopt); });
  if (!told) return;
  bound = std::move(told->sandbox);
  bound_at = now;
  settled = std::move(told->situation);
}

std::shared_ptr<ClaimMemory> ClaimMemories::look_up(const Json& claim, Time now,
                                                    std::optional<Time> expected_until) {
  std::shared_ptr<ClaimMemory> before;  // goes without the lock: it may give back a sandbox
  const std::lock_guard lock(mutex_);
  Entry& entry = memories_[model::key_of(claim)];
  if (!entry.memory || entry.memory->uid != model::uid_of(claim)) {
    before = std::exchange(entry.memory, std::make_shared<ClaimMemory>());
    entry.memory->uid = model::uid_of(claim);
    entry.memory->first_seen = now;
  }
  entry.expected_until = expected_until;
  return entry.memory;
}

std::shared_ptr<ClaimMemory> ClaimMemories::of(const Json& claim, Time now) {
  return look_up(claim, now, std::nullopt);
}

std::shared_ptr<ClaimMemory> ClaimMemories::of_newborn(const Json& claim, Time now) {
  return look_up(claim, now, now + kMostLag);
}

std::optional<Time> ClaimMemories::forget_missing(const model::Key& key, Time now) {
  decltype(memories_)::node_type forgotten;
  const std::lock_guard lock(mutex_);
  const auto found = memories_.find(key);
  if (found == memories_.end()) return std::nullopt;
  const std::optional<Time> expected_until = found->second.expected_until;
  if (expected_until && now < *expected_until) return expected_until;
  forgotten = memories_.extract(found);
  return std::nullopt;
}

void ClaimMemories::forget(const model::Key& key) {
  decltype(memories_)::node_type forgotten;
  const std::lock_guard lock(mutex_);
  forgotten = memories_.extract(key);
}

void ClaimMemories::forget(const model::Key& key, std::string_view uid) {
  decltype(memories_)::node_type forgotten;
  const std::lock_guard lock(mutex_);
  const auto found = memories_.find(key);
  if (found != memories_.end() && found->second.memory->uid == uid)
    forgotten = memories_.extract(found);
}

void ClaimMemories::forget_all() {
  decltype(memories_) forgotten;
  const std::lock_guard lock(mutex_);
  forgotten.swap(memories_);
}

std::size_t ClaimMemories::size() const {
  const std::lock_guard lock(mutex_);
  return memories_.size();
}

}  // namespace hearth::controllers
