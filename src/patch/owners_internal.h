// Who owns what, in the object and as text, as tests compare it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/json.h"
#include "patch/managed_fields.h"

namespace hearth::patch {

// "manager operation[/subresource] fields" by line.
inline std::string owners(const model::Json& object) {
  std::string text;
  const auto* entries = model::array_at(object, {"metadata", "managedFields"});
  if (!entries) return "none";
  for (const model::Json& entry : *entries) {
    text += text.empty() ? "" : "\n";
    text += model::text_at(entry, {"manager"});
    text += ' ';
    text += model::text_at(entry, {"operation"});
    const std::string_view subresource = model::text_at(entry, {"subresource"});
    if (!subresource.empty()) text += '/' + std::string(subresource);
    text += ' ' + model::to_text(*model::find(entry, {"fieldsV1"}));
  }
  return text;
}

inline Owners owners_in(const Json* object) {
  return read_owners(object ? model::find(*object, {"metadata", "managedFields"}) : nullptr);
}

inline void put_owners(Json& object, const Owners& owners) {
  if (owners.empty()) return model::erase_at(object, {"metadata", "managedFields"});
  std::string text;
  append_text(text, owners);
  model::make_object_at(object, {"metadata"})["managedFields"] = model::parse_json(text).value;
}

// As those of managed_fields.h, of objects with their managedFields in them.
inline void record_update(const Json* before, Json& after, const schema::Schema& schema,
                          const Manager& manager, model::Touched touched = {}) {
  const Owners earlier = owners_in(before);
  std::optional<Owned> owned;
  if (before) owned.emplace(*before, earlier);
  std::optional<Json> sent;
  if (const Json* found = model::find(after, {"metadata", "managedFields"})) sent = *found;
  put_owners(after, record_update({.before = owned ? &*owned : nullptr,
                                   .after = after,
                                   .sent = sent ? &*sent : nullptr,
                                   .touched = touched},
                                  schema, manager));
}

inline Json apply(const Json* live, const Json& configuration, const schema::Schema& schema,
                  const Manager& manager, bool force) {
  const Owners earlier = owners_in(live);
  std::optional<Owned> owned;
  if (live) owned.emplace(*live, earlier);
  Applied applied = apply(owned ? &*owned : nullptr, configuration, schema, manager, force);
  put_owners(applied.object, applied.owners);
  return std::move(applied.object);
}

}  // namespace hearth::patch
