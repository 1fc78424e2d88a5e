// How objects are kept in the store, and how they look in each version that shows them.
//
// An object is kept as the JSON text that most answers consist of: kind, apiVersion and
// resourceVersion come first, so that a list or a watch hands out the text as it is, and the
// store can put the revision in without anyone reading the rest.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/resource.h"
#include "apiserver/tree.h"
#include "store/store.h"

namespace hearth::apiserver {

// The text of `object`, whose managedFields are `owners`, and where its revision goes.
struct KeptText {
  std::string text;
  std::size_t hole = 0;
};
KeptText render_kept(const Json& object, const patch::Owners& owners);
// The same of an object that is not kept.
std::string render(Json object, const patch::Owners& owners);
// Puts managedFields where clients see them.
void put_managed_fields(Json& object, const patch::Owners& owners);

// Labels by their names, and what field selectors and the housekeeper ask for by "\x01" and the
// name: "\x01spec.nodeName". No label begins like that.
inline constexpr std::string_view kUidTag = "\x01uid";
inline constexpr std::string_view kOwnersTag =
    "\x01owners";  // uids, by commas; only if there are any
inline constexpr std::string_view kEndingTag =
    "\x01ending";  // only of objects that are being deleted
store::Tags tags_of(const Json& object, const Resource& resource);
// The names of fields that a selector may use, beside metadata.name and metadata.namespace.
const std::vector<std::string>& selectable_fields(const Resource& resource);
// The field of an object as selectors see it; empty where there is none.
std::string field_text(const store::Object& object, const Resource& resource,
                       std::string_view field);

// Of writes to this resource: what must survive a power cut is synced before the answer.
store::Durability durability_of(const Resource& resource);

// The object as `resource`'s version shows it, in `storage` (model/scratch.h).
Json view(const store::Object& object, const Resource& resource,
          boost::json::storage_ptr storage = {});
// The same without managedFields, to look at: shared if the tree is still about (tree.h), otherwise
// made in `storage`.
JsonPtr look(const store::Object& object, const Resource& resource,
             const boost::json::storage_ptr& storage = {});
// And with what the next write has to know.
struct Seen {
  JsonPtr object;
  std::shared_ptr<const patch::Owners> owners;
  bool is_checked = false;  // with the schema that this resource has now
};
Seen see(const store::Object& object, const Resource& resource,
         const boost::json::storage_ptr& storage);
// The same as text; cheap where nothing must be converted.
std::string view_text(const store::Object& object, const Resource& resource);
// As items of a list, between commas: built-in kinds leave out kind and apiVersion there.
void append_items(std::string& text, const std::vector<store::ObjectPtr>& objects,
                  const Resource& resource);

}  // namespace hearth::apiserver
