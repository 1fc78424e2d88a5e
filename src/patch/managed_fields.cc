#include "patch/managed_fields.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/time_text.h"
#include "patch/record_internal.h"
#include "patch/typed_internal.h"

namespace hearth::patch {
namespace {

using model::JsonArray;
using model::JsonObject;

// Older entries of updates are joined, so that an object that many programs touch stays small. The
// number is kube-apiserver's.
constexpr std::size_t kMostUpdaters = 10;
constexpr std::string_view kJoinedManager = "ancient-changes";

auto place_of(const Owner& entry) {
  return std::tie(entry.is_apply, entry.seconds, entry.manager, entry.api_version,
                  entry.subresource);
}

bool is_listed_before(const Owner& left, const Owner& right) {
  if (left.is_apply != right.is_apply) return left.is_apply;
  return place_of(left) < place_of(right);
}

// Joins the oldest updates of a version until few enough are left.
void join_old_updates(Owners& entries) {
  auto updaters = static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(), [](const Owner& e) { return !e.is_apply; }));
  if (updaters <= kMostUpdaters) return;
  sort(entries);
  std::map<std::string, Owner*> oldest;  // by version
  for (Owner& entry : entries) {
    if (entry.is_apply) continue;
    if (updaters <= kMostUpdaters) break;
    const auto [at, is_first] = oldest.emplace(entry.api_version, &entry);
    if (is_first) continue;
    Owner& joined = *at->second;
    joined.manager = kJoinedManager;
    joined.subresource.clear();
    joined.own(unite(joined.set(), entry.set()));
    joined.time = entry.time;
    joined.seconds = entry.seconds;
    entry.fields = nullptr;
    --updaters;
  }
  drop_empty(entries);
}

// What an owner has after its changes. Objects of one make are changed alike, one after the other:
// the members of a pool are handed out in the same words. So the last outcome of a thread often is
// the next one, and is shared.
std::shared_ptr<const OwnedFields> after_changes(const std::shared_ptr<const OwnedFields>& before,
                                                 Changes changes) {
  struct Step {
    std::shared_ptr<const OwnedFields> before;
    Changes changes;
    std::shared_ptr<const OwnedFields> after;
  };
  thread_local Step last;
  if (!before) return std::make_shared<const OwnedFields>(std::move(changes.set));
  if (last.before && last.before->text == before->text && last.changes == changes)
    return last.after;
  // Mostly it owns all of it already. A set is as large as its object: it is copied once.
  if (!overlaps(before->set, changes.removed) && contains(before->set, changes.set)) return before;
  FieldSet set = unite(subtract(before->set, changes.removed), changes.set);
  last = {before, std::move(changes), std::make_shared<const OwnedFields>(std::move(set))};
  return last.after;
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
Owners owners_to_start_from(const Update& update, const Manager& manager) {
  const auto live = [&] { return update.before ? update.before->owners : Owners(); };
  if (!update.sent) return live();
  check_is_list(*update.sent);
  if (!manager.subresource.empty() || update.sent->is_null()) return live();
  if (is_reset(*update.sent)) return {};
  try {
    return parse_owners(*update.sent);
  } catch (const Error&) {  // as if it had not been sent
    return live();
  }
}

}  // namespace

void take_away(Owner& owner, const Changes& changes) {
  if (!overlaps(owner.set(), changes.set) && !overlaps(owner.set(), changes.removed)) return;
  owner.own(subtract(subtract(owner.set(), changes.set), changes.removed));
}

void sort(Owners& owners) {
  std::sort(owners.begin(), owners.end(), is_listed_before);
}

Owner make_owner(const Manager& manager, bool is_apply) {
  Owner entry;
  entry.manager = manager.name.empty() ? "unknown" : manager.name;
  entry.is_apply = is_apply;
  entry.api_version = manager.api_version;
  entry.subresource = manager.subresource;
  entry.time = format_rfc3339(manager.time);
  entry.seconds =
      std::chrono::duration_cast<std::chrono::seconds>(manager.time.time_since_epoch()).count();
  return entry;
}

Owner* find_owner(Owners& owners, const Owner& like) {
  const auto found = std::find_if(owners.begin(), owners.end(),
                                  [&](const Owner& owner) { return owner.is_same_owner(like); });
  return found == owners.end() ? nullptr : &*found;
}

void drop_empty(Owners& owners) {
  std::erase_if(owners, [](const Owner& owner) { return !owner.fields; });
}

void record_changes(Owners& owners, Changes changes, const Manager& manager) {
  Owner own = make_owner(manager, /*is_apply=*/false);
  Owner* earlier = changes.set.empty() ? nullptr : find_owner(owners, own);
  for (Owner& owner : owners)
    if (&owner != earlier) take_away(owner, changes);
  if (earlier) {
    own.fields = after_changes(earlier->fields, std::move(changes));
    *earlier = std::move(own);
  } else if (!changes.set.empty()) {
    own.own(std::move(changes.set));
    owners.push_back(std::move(own));
  }
  drop_empty(owners);
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

Owners record_update(const Update& update, const schema::Schema& schema, const Manager& manager) {
  Changes changes;
  try {
    changes = update.before ? compare(update.before->object, update.after, schema, update.touched)
                            : compare(empty_object(schema), update.after, schema);
  } catch (const Error&) {
    // An object that does not fit its schema has owners as before: validation will have its say.
    return update.before ? update.before->owners : Owners();
  }
  Owners owners = owners_to_start_from(update, manager);
  // Without entries an object is not tracked, until it is applied for the first time.
  if (owners.empty() && update.before) return {};
  record_changes(owners, std::move(changes), manager);
  join_old_updates(owners);
  sort(owners);
  return owners;
}

}  // namespace hearth::patch
