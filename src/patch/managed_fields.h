// Who owns which field: metadata.managedFields, and server-side apply on top of it.
//
// Ownership is kept per (manager, operation, subresource) as FieldsV1 sets: "f:name" a member,
// `k:{"name":"main"}` an element of a keyed list, `v:"x"` one of a set, "." the thing itself.
#pragma once

#include <string>

#include "base/clock.h"
#include "model/json.h"
#include "schema/schema.h"

namespace hearth::patch {

using model::Json;

// One write, as its managedFields entry will name it.
struct Manager {
  std::string name;         // fieldManager
  std::string subresource;  // "status", "scale" or ""
  std::string api_version;
  Time time;
};

// After any write that is no apply: gives `manager` (operation Update) the fields that differ from
// `before` (null: the object is new) and takes them from everyone else; entries that own nothing
// any more are dropped. A managedFields that the writer emptied on purpose ([] or [{}]) is cleared.
// metadata.managedFields of `after` on entry is what the writer sent; that of `before` is as an
// earlier call left it. Throws StatusError 400 for managedFields that are no list of objects.
void record_update(const Json* before, Json& after, const schema::Schema& schema,
                   const Manager& manager);

// The object after `manager` applied `configuration` to `live` (null: there is none). Fields that
// the manager applied earlier and no longer names are removed unless someone else owns them. Throws
// StatusError 409 with a cause per field that another manager owns with another value, unless
// `force`; 500 for fields that the schema does not know and for elements with the same key; 400
// for a configuration that carries managedFields.
Json apply(const Json* live, const Json& configuration, const schema::Schema& schema,
           const Manager& manager, bool force);

}  // namespace hearth::patch
