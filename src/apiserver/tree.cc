#include "apiserver/tree.h"

#include <string>
#include <utility>
#include <vector>

namespace hearth::apiserver {
namespace {

// As many as bursts write before watchers have caught up.
constexpr std::size_t kMost = 1024;
// Watchers come within milliseconds, and what is written twice is soon written again.
constexpr std::chrono::seconds kRest{1};

}  // namespace

Tree::Tree(Json object, patch::Owners owners, schema::SchemaPtr checked_by)
    : json_(std::move(object), boost::json::storage_ptr{}),
      owners_(std::move(owners)),
      checked_by_(std::move(checked_by)) {
  // There already, so that settling it allocates nothing.
  model::make_object_at(json_, {"metadata"})["resourceVersion"] = "";
}

void Tree::settle(store::Revision revision) noexcept {
  *model::find(json_, {"metadata", "resourceVersion"}) = std::to_string(revision);
}

std::shared_ptr<const Tree> tree_of(const store::Object& object) {
  return std::static_pointer_cast<const Tree>(object.companion.lock());
}

void RecentTrees::keep(std::shared_ptr<const Tree> tree, Moment now) {
  Kept oldest;  // freed without the lock
  const std::lock_guard lock(mutex_);
  kept_.push_back({.since = now, .tree = std::move(tree)});
  if (kept_.size() <= kMost) return;
  oldest = std::move(kept_.front());
  kept_.pop_front();
}

void RecentTrees::let_go_of_old(Moment now) {
  std::vector<Kept> old;  // freed without the lock
  const std::lock_guard lock(mutex_);
  while (!kept_.empty() && kept_.front().since + kRest <= now) {
    old.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
}

std::size_t RecentTrees::size() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

}  // namespace hearth::apiserver
