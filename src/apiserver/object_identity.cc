// What stays the same about an object, whatever a write does to it.
#include <fmt/format.h>

#include "apiserver/object_meta.h"
#include "apiserver/objects_internal.h"
#include "base/json_text.h"

namespace hearth::apiserver {
namespace {

// What a patch leaves out, or takes away, is as it was; it does not make another kind of the
// object.
void check_type(const Resource& resource, Json& next) {
  for (const auto& [member, own] :
       {std::pair("apiVersion", resource.api_version()), std::pair("kind", resource.kind)}) {
    const std::string_view said = model::text_at(next, {member});
    if (said.empty()) {
      next.as_object()[member] = own;
    } else if (said != own) {
      model::throw_invalid(resource.group_kind(), name_of(next),
                           {model::invalid(member, json_quote(said), "must be " + own)});
    }
  }
}

void refuse_change(const Place& place, std::string_view field, std::string_view value) {
  model::throw_invalid(
      place.resource.group_kind(), place.name,
      {model::invalid(std::string(field), json_quote(value), "field is immutable")});
}

}  // namespace

void check_place(const Place& place, const Json& next) {
  const std::string_view name = name_of(next);
  if (name.empty())
    model::throw_bad_request(fmt::format(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        place.name));
  if (name != place.name)
    model::throw_bad_request(fmt::format(
        "the name of the object ({}) does not match the name on the URL ({})", name, place.name));
  if (place.resource.namespaced) check_namespace_of(next, place.ns);
}

void check_identity(const Place& place, std::string_view subresource, bool is_put, const Json& old,
                    Json& next) {
  check_place(place, next);
  const std::string_view uid = uid_of(next);
  const bool is_another = !uid.empty() && uid != uid_of(old);
  if (is_another && is_put)
    model::throw_conflict(
        place.resource.group_resource(), place.name,
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", uid,
                    uid_of(old)));
  // Who writes a part of it writes nothing of the rest.
  if (!subresource.empty()) return;
  check_type(place.resource, next);
  if (is_another) refuse_change(place, "metadata.uid", uid);
  const std::string_view ends = model::text_at(next, {"metadata", "deletionTimestamp"});
  if (!ends.empty() && ends != model::text_at(old, {"metadata", "deletionTimestamp"}))
    refuse_change(place, "metadata.deletionTimestamp", ends);
}

}  // namespace hearth::apiserver
