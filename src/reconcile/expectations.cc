#include "reconcile/expectations.h"

namespace hearth::reconcile {

bool Expectations::is_met(const Open& open) const {
  if (open.creations == 0 && open.deletions.empty()) return true;
  return clock_.now() - open.raised > patience_;
}

bool Expectations::expect_creations(const model::Key& key, unsigned count) {
  const std::lock_guard lock(mutex_);
  Open& open = open_[key];
  if (!is_met(open)) return false;
  open = Open{.creations = count, .deletions = {}, .raised = clock_.now()};
  return true;
}

void Expectations::expect_deletion(const model::Key& key, std::string_view uid) {
  const std::lock_guard lock(mutex_);
  Open& open = open_[key];
  open.deletions.emplace(uid);
  open.raised = clock_.now();
}

void Expectations::creation_seen(const model::Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(key);
  if (found != open_.end() && found->second.creations > 0) --found->second.creations;
}

void Expectations::deletion_seen(const model::Key& key, std::string_view uid) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(key);
  if (found == open_.end()) return;
  auto& deletions = found->second.deletions;
  if (const auto deletion = deletions.find(uid); deletion != deletions.end())
    deletions.erase(deletion);
}

bool Expectations::are_met(const model::Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(key);
  return found == open_.end() || is_met(found->second);
}

bool Expectations::expects_deletion_of(const model::Key& key, std::string_view uid) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(key);
  return found != open_.end() && found->second.deletions.contains(uid) && !is_met(found->second);
}

void Expectations::forget(const model::Key& key) {
  const std::lock_guard lock(mutex_);
  open_.erase(key);
}

}  // namespace hearth::reconcile
