// Who owns which field after a write, and server-side apply on top of it.
//
// Ownership is kept per (manager, operation, subresource) as FieldsV1 sets: "f:name" a member,
// `k:{"name":"main"}` an element of a keyed list, `v:"x"` one of a set, "." the thing itself.
#pragma once

#include <string>

#include "base/clock.h"
#include "model/json.h"
#include "model/touched.h"
#include "patch/owners.h"
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

// An object that is there.
struct Owned {
  const Json& object;
  const Owners& owners;
};

struct Update {
  const Owned* before = nullptr;  // null: the object is new
  const Json& after;
  const Json* sent = nullptr;  // the managedFields that the writer sent; null: none
  model::Touched touched;
};

// After any write that is no apply: gives `manager` (operation Update) the fields that differ from
// what was there and takes them from everyone else; entries that own nothing any more are dropped.
// A managedFields that the writer emptied on purpose ([] or [{}]) is cleared. Throws StatusError
// 400 for one that is no list of objects.
Owners record_update(const Update& update, const schema::Schema& schema, const Manager& manager);

struct Applied {
  Json object;
  Owners owners;
};
// The object after `manager` applied `configuration` to `live` (null: there is none). Fields that
// the manager applied earlier and no longer names are removed unless someone else owns them. Throws
// StatusError 409 with a cause per field that another manager owns with another value, unless
// `force`; 500 for fields that the schema does not know and for elements with the same key; 400
// for a configuration that carries managedFields.
Applied apply(const Owned* live, const Json& configuration, const schema::Schema& schema,
              const Manager& manager, bool force);

}  // namespace hearth::patch
