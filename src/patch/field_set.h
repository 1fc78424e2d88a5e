// A set of fields of an object, as managedFields keeps it (FieldsV1): a tree of path elements.
//
// An element is text in one canonical form, so that equal elements are equal strings: "f:name" a
// member, `k:{"name":"main"}` the element of a keyed list (keys sorted), `v:"x"` one of a set,
// "i:3" one of an atomic list (others write them; we never do).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"

namespace hearth::patch {

using model::Json;

struct FieldSet {
  struct Child;

  bool self = false;            // the thing itself is in the set: "."
  std::vector<Child> children;  // sorted by element; none of them is empty

  bool empty() const { return !self && children.empty(); }
  const FieldSet* find(std::string_view element) const;
  bool has(std::span<const std::string_view> path) const;

  // Building: children in any order, each element once, then sort().
  void append(std::string element, FieldSet set);
  void sort();
  bool operator==(const FieldSet&) const;
};

struct FieldSet::Child {
  std::string element;
  FieldSet set;

  bool operator==(const Child&) const = default;
};

// Canonical elements.
std::string member_element(std::string_view name);
std::string value_element(const Json& value);
// `keys` are sorted by name here.
std::string key_element(std::vector<std::pair<std::string_view, const Json*>> keys);

FieldSet unite(FieldSet left, FieldSet right);
FieldSet subtract(FieldSet left, const FieldSet& right);
FieldSet intersect(const FieldSet& left, const FieldSet& right);
// Whether both have a field in common; whether `set` has all of `part`.
bool overlaps(const FieldSet& left, const FieldSet& right);
bool contains(const FieldSet& set, const FieldSet& part);

// Throws Error(invalid) for what is no FieldsV1.
FieldSet parse_field_set(const Json& fields_v1);
// As FieldsV1, behind what is there.
void append_text(std::string& out, const FieldSet& set);

// Every path of the set as people read it: `.spec.containers[name="main"].image`. A node's own
// members come before what is below them.
void for_each_path(const FieldSet& set, const std::function<void(const std::string&)>& act);

}  // namespace hearth::patch
