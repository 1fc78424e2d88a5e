#include "controllers/claim_memory.h"

namespace hearth::controllers {

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
