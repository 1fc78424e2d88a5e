// metadata.managedFields as entries, between its JSON and those who change it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "patch/field_set.h"
#include "patch/managed_fields.h"
#include "patch/typed_internal.h"

namespace hearth::patch {

struct Entry {
  Entry() = default;
  // What is unread will come from there, and go back.
  explicit Entry(boost::json::storage_ptr storage) : unread(nullptr, std::move(storage)) {}

  std::string manager;
  bool is_apply = false;  // operation "Apply", else "Update"
  std::string api_version;
  std::string subresource;
  std::string time;  // as it is written; may be empty
  std::int64_t seconds = 0;
  FieldSet fields;
  // What we stored ourselves is read only when it matters; until then `fields` is empty.
  Json unread;

  void read();
  void take_away(const Changes& changes);
  bool is_empty() const { return unread.is_null() && fields.empty(); }
  // Whose entry it is: appliers stay who they are when they move to another version.
  bool is_same_owner(const Entry& other) const;
};

using Entries = std::vector<Entry>;

// Throws Error(invalid) for what nobody could have been given by a server.
Entries parse_entries(const Json& managed_fields);
// The entries of a stored object; none if they cannot be read.
Entries entries_of(const Json& object);
// Entries that we stored, with their fields unread.
Entries unread_entries(Json managed_fields);
// Writes them into the object, in the order of kube-apiserver; removes the member if there are
// none.
void store_entries(Json& object, Entries entries);

Entry make_entry(const Manager& manager, bool is_apply);
Entry* find_owner(Entries& entries, const Entry& owner);
void drop_empty(Entries& entries);

// Gives what changed to `manager`, and takes it from all others.
void record_changes(Entries& entries, Changes changes, const Manager& manager);

// What an object of a kind looks like before anything is in it.
Json empty_object(const schema::Schema& schema);

}  // namespace hearth::patch
