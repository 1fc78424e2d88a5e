#include "apiserver/tree.h"

#include <string>
#include <utility>

namespace hearth::apiserver {

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

void RecentTrees::keep(std::shared_ptr<const Tree> tree) {
  // What falls out is freed outside the lock.
  const std::lock_guard lock(mutex_);
  std::swap(trees_[next_], tree);
  next_ = (next_ + 1) % kMost;
}

}  // namespace hearth::apiserver
