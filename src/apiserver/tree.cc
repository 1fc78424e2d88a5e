#include "apiserver/tree.h"

#include <string>
#include <utility>

namespace hearth::apiserver {

Tree::Tree(const Json& object) : json_(object, boost::json::storage_ptr{}) {
  // There already, so that settling it allocates nothing.
  model::make_object_at(json_, {"metadata"})["resourceVersion"] = "";
}

void Tree::settle(store::Revision revision) noexcept {
  *model::find(json_, {"metadata", "resourceVersion"}) = std::to_string(revision);
}

JsonPtr tree_of(const store::Object& object) {
  const auto companion = object.companion.lock();
  if (!companion) return nullptr;
  return {companion, &static_cast<const Tree&>(*companion).json()};
}

void RecentTrees::keep(std::shared_ptr<const Tree> tree) {
  // What falls out is freed outside the lock.
  const std::lock_guard lock(mutex_);
  std::swap(trees_[next_], tree);
  next_ = (next_ + 1) % kMost;
}

}  // namespace hearth::apiserver
