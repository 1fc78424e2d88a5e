#include "controllers/claim_memory.h"

namespace hearth::controllers {

void ClaimMemory::take_over_birth(Time now) {
  auto told = birth.with([](auto& there) { return std::exchange(there, std::nullopt); });
  if (!told) return;
  bound = std::move(told->sandbox);
  bound_at = now;
  settled = std::move(told->situation);
}

std::shared_ptr<ClaimMemory> ClaimMemories::of(const Json& claim, Time now) {
  std::shared_ptr<ClaimMemory> before;  // goes without the lock: it may give back a sandbox
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ClaimMemory>& memory = memories_[model::key_of(claim)];
  if (!memory || memory->uid != model::uid_of(claim)) {
    before = std::exchange(memory, std::make_shared<ClaimMemory>());
    memory->uid = model::uid_of(claim);
    memory->first_seen = now;
  }
  return memory;
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
  if (found != memories_.end() && found->second->uid == uid) forgotten = memories_.extract(found);
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
