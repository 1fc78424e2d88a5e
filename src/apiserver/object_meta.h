// The parts of metadata that the server itself reads and writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/json.h"

namespace hearth::apiserver {

using model::Json;

std::string new_uid();

inline std::string_view name_of(const Json& object) {
  return model::text_at(object, {"metadata", "name"});
}
inline std::string_view namespace_of(const Json& object) {
  return model::text_at(object, {"metadata", "namespace"});
}
inline std::string_view uid_of(const Json& object) {
  return model::text_at(object, {"metadata", "uid"});
}
inline std::string_view revision_of(const Json& object) {
  return model::text_at(object, {"metadata", "resourceVersion"});
}
inline bool is_deleting(const Json& object) {
  return !model::text_at(object, {"metadata", "deletionTimestamp"}).empty();
}

// Throws 400 for an object that names another namespace than the request; it may name none.
void check_namespace_of(const Json& object, std::string_view ns);

std::vector<std::string> finalizers_of(const Json& object);
// Finalizers of custom kinds should say whose they are; of an update, the new ones.
void warn_of_finalizers(const Json& object, const Json* old, std::vector<std::string>& warnings);
void add_finalizer(Json& object, std::string_view finalizer);
// True if it was there.
bool remove_finalizer(Json& object, std::string_view finalizer);

// An owner counts once; warns of those that were named again.
void drop_repeated_owners(Json& object, std::vector<std::string>& warnings);

// Marks the object as being deleted, in `grace_seconds`; generation grows if the kind has one.
void mark_deleting(Json& object, Time now, std::int64_t grace_seconds, bool has_generation);
void grow_generation(Json& object);

}  // namespace hearth::apiserver
