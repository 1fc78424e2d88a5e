#include "apiserver/object_meta.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/id.h"
#include "base/time_text.h"
#include "model/names.h"
#include "model/status.h"

namespace hearth::apiserver {

std::string new_uid() {
  std::string hex = random_hex(16);
  hex[12] = '4';  // version 4: random
  // The variant of RFC 9562: the two top bits are 10.
  hex[16] = "89ab"[static_cast<unsigned char>(hex[16]) & 3U];
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

void check_namespace_of(const Json& object, std::string_view ns) {
  const std::string_view named = namespace_of(object);
  if (!named.empty() && named != ns)
    model::throw_bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
}

std::vector<std::string> finalizers_of(const Json& object) {
  std::vector<std::string> names;
  if (const model::JsonArray* list = model::array_at(object, {"metadata", "finalizers"}))
    for (const Json& one : *list)
      if (one.is_string()) names.emplace_back(one.get_string());
  return names;
}

void add_finalizer(Json& object, std::string_view finalizer) {
  for (const std::string& name : finalizers_of(object))
    if (name == finalizer) return;
  model::JsonObject& metadata = model::make_object_at(object, {"metadata"});
  Json& list = metadata["finalizers"];
  if (!list.is_array()) list.emplace_array();
  list.get_array().emplace_back(finalizer);
}

bool remove_finalizer(Json& object, std::string_view finalizer) {
  Json* found = model::find(object, {"metadata", "finalizers"});
  model::JsonArray* list = found ? found->if_array() : nullptr;
  if (!list) return false;
  const std::size_t before = list->size();
  for (auto at = list->begin(); at != list->end();)
    at = at->is_string() && std::string_view(at->get_string()) == finalizer ? list->erase(at)
                                                                            : at + 1;
  const bool removed = list->size() != before;
  if (list->empty()) model::erase_at(object, {"metadata", "finalizers"});
  return removed;
}

void drop_repeated_owners(Json& object, std::vector<std::string>& warnings) {
  Json* found = model::find(object, {"metadata", "ownerReferences"});
  model::JsonArray* owners = found ? found->if_array() : nullptr;
  if (!owners || owners->size() < 2) return;
  std::set<std::string, std::less<>> seen, repeated;
  model::JsonArray kept(owners->storage());
  for (Json& owner : *owners) {
    std::string uid(model::text_at(owner, {"uid"}));
    if (seen.contains(uid)) {
      repeated.insert(std::move(uid));
      continue;
    }
    // Those without one are mistakes of their own.
    if (!uid.empty()) seen.insert(std::move(uid));
    kept.push_back(std::move(owner));
  }
  *owners = std::move(kept);
  if (repeated.empty()) return;
  warnings.push_back(
      fmt::format(".metadata.ownerReferences contains duplicate entries; API server dedups owner "
                  "references in 1.20+, and may reject such requests as early as 1.24; please fix "
                  "your requests; duplicate UID(s) observed: {}",
                  fmt::join(repeated, ", ")));
}

void mark_deleting(Json& object, Time now, std::int64_t grace_seconds, bool has_generation) {
  model::JsonObject& metadata = model::make_object_at(object, {"metadata"});
  metadata["deletionTimestamp"] = format_rfc3339(now + std::chrono::seconds(grace_seconds));
  metadata["deletionGracePeriodSeconds"] = grace_seconds;
  if (has_generation) grow_generation(object);
}

void grow_generation(Json& object) {
  const auto generation = model::number_at(object, {"metadata", "generation"}).value_or(0);
  model::make_object_at(object, {"metadata"})["generation"] = generation + 1;
}

void warn_of_finalizers(const Json& object, const Json* old, std::vector<std::string>& warnings) {
  const std::vector<std::string> before =
      old ? model::finalizer_warnings(*old) : std::vector<std::string>();
  for (std::string& warning : model::finalizer_warnings(object))
    if (std::ranges::find(before, warning) == before.end()) warnings.push_back(std::move(warning));
}

}  // namespace hearth::apiserver
