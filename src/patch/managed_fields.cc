#include "patch/managed_fields.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/time_text.h"
#include "patch/entries_internal.h"
#include "patch/typed_internal.h"

namespace hearth::patch {
namespace {

using model::JsonArray;
using model::JsonObject;

// Older entries of updates are joined, so that an object that many programs touch stays small. The
// number is kube-apiserver's.
constexpr std::size_t kMostUpdaters = 10;
constexpr std::string_view kJoinedManager = "ancient-changes";

std::string member_text(const JsonObject& entry, std::string_view name) {
  const Json* value = entry.if_contains(name);
  if (!value || value->is_null()) return {};
  if (!value->is_string()) fail(Code::invalid, "{} of a managed fields entry is no text", name);
  return std::string(value->get_string());
}

// All but the fields.
Entry parse_head(const Json& json) {
  const JsonObject* object = json.if_object();
  if (!object) fail(Code::invalid, "a managed fields entry is no object");
  Entry entry(json.storage());
  const std::string operation = member_text(*object, "operation");
  if (operation != "Apply" && operation != "Update")
    fail(Code::invalid, "operation must be 'Apply' or 'Update'");
  entry.is_apply = operation == "Apply";
  entry.manager = member_text(*object, "manager");
  entry.api_version = member_text(*object, "apiVersion");
  if (entry.api_version.empty()) fail(Code::invalid, "apiVersion must not be empty");
  if (member_text(*object, "fieldsType") != "FieldsV1")
    fail(Code::invalid, "fieldsType must be 'FieldsV1'");
  entry.subresource = member_text(*object, "subresource");
  entry.time = member_text(*object, "time");
  if (!entry.time.empty()) {
    const auto time = parse_rfc3339(entry.time);
    if (!time) fail(Code::invalid, "'{}' is no time", entry.time);
    entry.seconds =
        std::chrono::duration_cast<std::chrono::seconds>(time->time_since_epoch()).count();
  }
  return entry;
}

Entry parse_entry(const Json& json) {
  Entry entry = parse_head(json);
  if (const Json* fields = json.get_object().if_contains("fieldsV1"); fields && !fields->is_null())
    entry.fields = parse_field_set(*fields);
  return entry;
}

Json entry_json(Entry entry, const boost::json::storage_ptr& storage) {
  JsonObject json(storage);
  json["manager"] = entry.manager;
  json["operation"] = entry.is_apply ? "Apply" : "Update";
  json["apiVersion"] = entry.api_version;
  if (!entry.time.empty()) json["time"] = entry.time;
  json["fieldsType"] = "FieldsV1";
  json["fieldsV1"] = entry.unread.is_null() ? to_json(entry.fields) : std::move(entry.unread);
  if (!entry.subresource.empty()) json["subresource"] = entry.subresource;
  return json;
}

auto place_of(const Entry& entry) {
  return std::tie(entry.is_apply, entry.seconds, entry.manager, entry.api_version,
                  entry.subresource);
}

bool is_listed_before(const Entry& left, const Entry& right) {
  if (left.is_apply != right.is_apply) return left.is_apply;
  return place_of(left) < place_of(right);
}

// Joins the oldest updates of a version until few enough are left.
void join_old_updates(Entries& entries) {
  auto updaters = static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(), [](const Entry& e) { return !e.is_apply; }));
  if (updaters <= kMostUpdaters) return;
  std::sort(entries.begin(), entries.end(), is_listed_before);
  std::map<std::string, Entry*> oldest;  // by version
  for (Entry& entry : entries) {
    if (entry.is_apply) continue;
    if (updaters <= kMostUpdaters) break;
    const auto [at, is_first] = oldest.emplace(entry.api_version, &entry);
    if (is_first) continue;
    Entry& joined = *at->second;
    joined.read();
    entry.read();
    joined.manager = kJoinedManager;
    joined.subresource.clear();
    joined.fields = unite(std::move(joined.fields), std::move(entry.fields));
    joined.time = entry.time;
    joined.seconds = entry.seconds;
    entry.fields = {};
    --updaters;
  }
  drop_empty(entries);
}

bool is_reset(const Json& sent) {
  const JsonArray* entries = sent.if_array();
  if (!entries) return false;
  if (entries->empty()) return true;
  const JsonObject* only = entries->size() == 1 ? entries->front().if_object() : nullptr;
  return only && only->empty();
}

void check_is_list(const Json& sent) {
  const JsonArray* entries = sent.if_array();
  const bool is_list = entries && std::all_of(entries->begin(), entries->end(),
                                              [](const Json& e) { return e.is_object(); });
  if (!sent.is_null() && !is_list)
    model::throw_bad_request("metadata.managedFields must be a list of objects");
}

// What the writer sent counts, unless it is nothing or cannot be read: a client that does not know
// managedFields must not lose them. Through a subresource it never counts.
Entries entries_to_start_from(const Json* before, Json& after, const Manager& manager) {
  const Json* stored = before ? model::find(*before, {"metadata", "managedFields"}) : nullptr;
  Json* sent = model::find(after, {"metadata", "managedFields"});
  if (sent && stored && model::is_same(*sent, *stored)) return unread_entries(std::move(*sent));
  const auto live = [&] { return stored ? unread_entries(*stored) : Entries(); };
  if (!sent) return live();
  check_is_list(*sent);
  if (!manager.subresource.empty() || sent->is_null()) return live();
  if (is_reset(*sent)) return {};
  try {
    return parse_entries(*sent);
  } catch (const Error&) {  // as if it had not been sent
    return live();
  }
}

bool leaves_managed_fields_alone(const Json* before, const Json& after) {
  const Json* old = before ? model::find(*before, {"metadata", "managedFields"}) : nullptr;
  const Json* sent = model::find(after, {"metadata", "managedFields"});
  return old && sent && model::is_same(*old, *sent);
}

}  // namespace

bool Entry::is_same_owner(const Entry& other) const {
  return manager == other.manager && is_apply == other.is_apply &&
         subresource == other.subresource && (is_apply || api_version == other.api_version);
}

void Entry::read() {
  if (unread.is_null()) return;
  try {
    fields = parse_field_set(unread);
  } catch (const Error&) {  // as in entries_of()
    fields = {};
  }
  unread = nullptr;
}

void Entry::take_away(const Changes& changes) {
  if (!unread.is_null() && !overlaps(unread, changes.set) && !overlaps(unread, changes.removed))
    return;
  read();
  fields = subtract(std::move(fields), changes.set);
  fields = subtract(std::move(fields), changes.removed);
}

Entries parse_entries(const Json& managed_fields) {
  const JsonArray* list = managed_fields.if_array();
  if (!list) fail(Code::invalid, "managed fields are no list");
  Entries entries;
  entries.reserve(list->size());
  for (const Json& json : *list) {
    Entry entry = parse_entry(json);
    if (Entry* twin = find_owner(entries, entry))
      *twin = std::move(entry);
    else
      entries.push_back(std::move(entry));
  }
  return entries;
}

Entries entries_of(const Json& object) {
  const Json* stored = model::find(object, {"metadata", "managedFields"});
  if (!stored) return {};
  try {
    return parse_entries(*stored);
  } catch (const Error&) {  // better none than a stored object that nobody can write any more
    return {};
  }
}

Entries unread_entries(Json managed_fields) {
  JsonArray* list = managed_fields.if_array();
  if (!list) return {};
  Entries entries;
  entries.reserve(list->size());
  try {
    for (Json& json : *list) {
      entries.push_back(parse_head(json));
      if (Json* fields = json.get_object().if_contains("fieldsV1"))
        entries.back().unread = std::move(*fields);
    }
  } catch (const Error&) {  // as in entries_of()
    return {};
  }
  return entries;
}

void store_entries(Json& object, Entries entries) {
  drop_empty(entries);
  if (entries.empty()) return model::erase_at(object, {"metadata", "managedFields"});
  std::sort(entries.begin(), entries.end(), is_listed_before);
  JsonArray list(object.storage());
  list.reserve(entries.size());
  for (Entry& entry : entries) list.push_back(entry_json(std::move(entry), object.storage()));
  model::make_object_at(object, {"metadata"})["managedFields"] = std::move(list);
}

Entry make_entry(const Manager& manager, bool is_apply) {
  Entry entry;
  entry.manager = manager.name.empty() ? "unknown" : manager.name;
  entry.is_apply = is_apply;
  entry.api_version = manager.api_version;
  entry.subresource = manager.subresource;
  entry.time = format_rfc3339(manager.time);
  entry.seconds =
      std::chrono::duration_cast<std::chrono::seconds>(manager.time.time_since_epoch()).count();
  return entry;
}

Entry* find_owner(Entries& entries, const Entry& owner) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.is_same_owner(owner); });
  return found == entries.end() ? nullptr : &*found;
}

void drop_empty(Entries& entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.is_empty(); });
}

void record_changes(Entries& entries, Changes changes, const Manager& manager) {
  for (Entry& entry : entries) entry.take_away(changes);
  if (!changes.set.empty()) {
    Entry own = make_entry(manager, /*is_apply=*/false);
    own.fields = std::move(changes.set);
    if (Entry* earlier = find_owner(entries, own)) {
      earlier->read();
      own.fields = unite(std::move(earlier->fields), std::move(own.fields));
      *earlier = std::move(own);
    } else {
      entries.push_back(std::move(own));
    }
  }
  drop_empty(entries);
}

Json empty_object(const schema::Schema& schema) {
  JsonObject empty;
  // Built-in kinds are structs, whose struct members are there from the start; so nobody owns them.
  if (schema.name.empty()) return empty;
  for (const auto& [name, member] : schema.properties) {
    if (member->properties.empty() || name == "metadata") continue;
    JsonObject& part = empty[name].emplace_object();
    for (const std::string& required : member->required) {
      const auto found = member->properties.find(required);
      if (found != member->properties.end() && found->second->type == schema::Type::array)
        part[required] = nullptr;
    }
  }
  return empty;
}

void record_update(const Json* before, Json& after, const schema::Schema& schema,
                   const Manager& manager) {
  Changes changes;
  try {
    changes = compare(before ? *before : empty_object(schema), after, schema);
  } catch (const Error&) {
    // An object that does not fit its schema has owners as before: validation will have its say.
    store_entries(after, before ? entries_of(*before) : Entries());
    return;
  }
  if (changes.empty() && leaves_managed_fields_alone(before, after)) return;
  Entries entries = entries_to_start_from(before, after, manager);
  // Without entries an object is not tracked, until it is applied for the first time.
  if (entries.empty() && before) return model::erase_at(after, {"metadata", "managedFields"});
  record_changes(entries, std::move(changes), manager);
  join_old_updates(entries);
  store_entries(after, std::move(entries));
}

}  // namespace hearth::patch
