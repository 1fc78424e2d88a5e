#include "e2b/dressed_pods.h"

#include <utility>

#include "e2b/outfitting.h"
#include "model/front_door.h"
#include "pool/reach.h"

namespace hearth::e2b {

DressedPods::DressedPods(client::WatchCache& pods, pool::Reach* reach) : reach_(reach) {
  if (reach_ == nullptr) return;
  pods.add_handlers({
      .on_add = [this](const client::Object& now) { see(*now); },
      .on_update = [this](const client::Object&, const client::Object& now) { see(*now); },
      .on_delete = [this](const client::Object& last) { forget(*last); },
  });
}

void DressedPods::see(const model::Json& pod) {
  const std::string_view dress = model::annotation_of(pod, model::kDressAnnotation);
  if (dress.empty() || model::is_deleting(pod)) return forget(pod);
  const auto owner = model::controller_of(pod);
  if (!owner || !reach_->can_outfit(pod)) return forget(pod);
  Pod seen{.sandbox_uid = owner->uid,
           .template_id = std::string(dress),
           .container = std::string(container_of(pod))};
  const std::lock_guard lock(mutex_);
  pods_.insert_or_assign(model::key_of(pod), std::move(seen));
}

void DressedPods::forget(const model::Json& pod) {
  const std::lock_guard lock(mutex_);
  pods_.erase(model::key_of(pod));
}

std::optional<DressedPods::Pod> DressedPods::find(const model::Key& pod) const {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(pod);
  return found == pods_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace hearth::e2b
