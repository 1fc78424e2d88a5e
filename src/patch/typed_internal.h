// Objects as their schema types them: who can own what, what two objects differ in, how one is
// merged into another.
//
// Where the schema knows nothing, types are deduced from values: objects member by member, lists
// and scalars as a whole. All of this follows structured-merge-diff, whose sets others compare
// with ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/touched.h"
#include "patch/field_set.h"
#include "schema/schema.h"

namespace hearth::patch {

using schema::Schema;

// The type at one place of an object.
struct Typing {
  const Schema* schema = nullptr;  // null: deduced
};

enum class Shape { scalar, map, atomic_map, atomic_list, set, keyed };

Shape shape_of(Typing type, const Json* value);
// Nothing for members that the schema does not know.
std::optional<Typing> member_type(Typing type, std::string_view name);
// Whether the schema names the member, as opposed to an entry of a map.
bool is_declared(Typing type, std::string_view name);
Typing item_type(Typing list);

// The path element of one item of a set or keyed list, or why it has none.
struct ItemElement {
  std::string element;
  std::string problem;
};
ItemElement item_element(Typing list, Shape shape, const Json& item);

// Where in an object a walk is: what nobody owns (apiVersion, kind, metadata's name and so on) is
// at its top only.
enum class Level { root, metadata, below };
Level next_level(Level level, std::string_view name);
bool is_untracked(Level level, std::string_view name);

// The fields that an object names: its leaves, and the entries of its maps and lists.
FieldSet fields_of(const Json& object, const Schema& schema);

struct Changes {
  FieldSet set;  // added or modified
  FieldSet removed;

  bool empty() const { return set.empty() && removed.empty(); }
  bool operator==(const Changes&) const = default;
};
// Linear in what may have changed; builds nothing for what is equal. Throws Error(invalid) for
// items without a key.
Changes compare(const Json& before, const Json& after, const Schema& schema,
                model::Touched touched = {});

// What keeps an object from being applied, each with its path.
std::vector<std::string> find_type_errors(const Json& object, const Schema& schema);

// `live` with all that `configuration` names; nothing is removed. Lists keep the configuration's
// order as far as the live one allows. Throws Error(invalid) for items without a key.
Json merge(const Json& live, const Json& configuration, const Schema& schema);

// `object` without what is in the set; containers that become empty go too.
Json remove_fields(const Json& object, const FieldSet& set, const Schema& schema);

// The set with all declared members on the way to its members: removing "spec.a.b", where nothing
// else is left, removes "spec.a".
FieldSet with_declared_parents(FieldSet set, const Schema& schema);

}  // namespace hearth::patch
