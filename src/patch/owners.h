// Who owns which fields of an object: metadata.managedFields, beside the object instead of in it.
//
// It is as long as the rest of most objects, nobody in this process reads it but those who write,
// and from one write to the next nearly all of it stays: so what stays is shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "patch/field_set.h"

namespace hearth::patch {

struct OwnedFields {
  explicit OwnedFields(FieldSet fields);

  FieldSet set;
  std::string text;  // as FieldsV1
};

// One entry of managedFields.
struct Owner {
  std::string manager;
  bool is_apply = false;  // operation "Apply", else "Update"
  std::string api_version;
  std::string subresource;
  std::string time;  // as it is written; may be empty
  std::int64_t seconds = 0;
  std::shared_ptr<const OwnedFields> fields;  // null: none

  const FieldSet& set() const;
  void own(FieldSet set);
  // Whose entry it is: appliers stay who they are when they move to another version.
  bool is_same_owner(const Owner& other) const;
  bool operator==(const Owner& other) const;
};

using Owners = std::vector<Owner>;

// The owners of a stored object; none if they cannot be read: better than an object that nobody can
// write any more. Null: there are none.
Owners read_owners(const Json* managed_fields);
// As JSON: a list.
void append_text(std::string& out, const Owners& owners);

}  // namespace hearth::patch
