// What updates and applies share when they settle who owns what.
#pragma once

#include "patch/managed_fields.h"
#include "patch/typed_internal.h"

namespace hearth::patch {

// Throws Error(invalid) for what nobody could have been given by a server.
Owners parse_owners(const Json& managed_fields);

Owner make_owner(const Manager& manager, bool is_apply);
Owner* find_owner(Owners& owners, const Owner& like);
void take_away(Owner& owner, const Changes& changes);
void drop_empty(Owners& owners);
// In the order of kube-apiserver.
void sort(Owners& owners);

// Gives what changed to `manager`, and takes it from all others.
void record_changes(Owners& owners, Changes changes, const Manager& manager);

// What an object of a kind looks like before anything is in it.
Json empty_object(const schema::Schema& schema);

}  // namespace hearth::patch
