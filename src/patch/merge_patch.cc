#include "patch/patch.h"

namespace hearth::patch {

void apply_merge_patch(Json& target, const Json& patch) {
  const model::JsonObject* changes = patch.if_object();
  if (!changes) {
    target = patch;
    return;
  }
  if (!target.is_object()) target.emplace_object();
  model::JsonObject& object = target.get_object();
  for (const auto& [key, value] : *changes) {
    if (value.is_null())
      object.erase(key);
    else
      apply_merge_patch(object[key], value);
  }
}

}  // namespace hearth::patch
