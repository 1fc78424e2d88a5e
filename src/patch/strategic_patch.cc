// Strategic merge: maps merge member by member, lists that the schema marks merge item by item, and
// directives in the patch say what merging cannot (delete, replace, order).
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "model/status.h"
#include "patch/patch.h"
#include "patch/patch_internal.h"
#include "patch/strategic_internal.h"

namespace hearth::patch {
namespace {

using model::JsonArray;
using model::JsonObject;
using schema::Schema;

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kOrder = "$setElementOrder";
constexpr std::string_view kDelete = "$deleteFromPrimitiveList";

bool is_directive(std::string_view name) {
  return name == kDirective || name == kRetainKeys || name.starts_with(kOrder) ||
         name.starts_with(kDelete);
}

// The list that "$setElementOrder/containers" speaks of.
std::string_view list_named_by(std::string_view key, std::string_view directive,
                               const char* problem) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos || key.substr(0, slash) != directive)
    model::throw_bad_request(problem);
  return key.substr(slash + 1);
}

// A part of the patch that meets nothing to merge with: without nulls and directives. Nothing, if
// it is but a directive itself.
std::optional<Json> plain(const Json& value) {
  if (const JsonObject* object = value.if_object()) {
    if (object->if_contains(kDirective)) return std::nullopt;
    JsonObject out;
    out.reserve(object->size());
    for (const auto& [name, below] : *object) {
      if (below.is_null() || is_directive(name)) continue;
      if (auto kept = plain(below)) out.emplace(name, std::move(*kept));
    }
    return out;
  }
  if (const JsonArray* array = value.if_array()) {
    JsonArray out;
    out.reserve(array->size());
    for (const Json& below : *array)
      if (auto kept = plain(below)) out.push_back(std::move(*kept));
    return out;
  }
  return value;
}

bool merges(const Schema* list) {
  return list && (list->patch_strategy == "merge" || list->patch_strategy.starts_with("merge,") ||
                  list->patch_strategy.ends_with(",merge"));
}

class StrategicMerge {
 public:
  void object(Json& target, const JsonObject& patch, const Schema* schema) const {
    if (const Json* directive = patch.if_contains(kDirective))
      return replace_by_directive(target, *directive, patch);
    if (!target.is_object()) target.emplace_object();
    JsonObject& members = target.get_object();
    retain_keys(members, patch);
    const auto done = order_lists(members, patch, schema);
    std::vector<std::string> gone;
    for (const auto& [name, value] : patch) {
      if (name == kRetainKeys || std::string_view(name).starts_with(kOrder) || done.contains(name))
        continue;
      if (std::string_view(name).starts_with(kDelete))
        delete_from_list(members, name, value, schema, gone);
      else
        member(members, name, value, schema, gone);
    }
    erase_members(members, gone);
  }

 private:
  static void replace_by_directive(Json& target, const Json& directive, const JsonObject& patch) {
    if (directive == "replace") {
      JsonObject rest = patch;
      rest.erase(kDirective);
      target = *plain(rest);
    } else if (directive == "delete") {
      target.emplace_object();
    } else {
      throw_plain_error(fmt::format("unknown patch type: {} in map: {}", model::to_text(directive),
                                    model::to_text(patch)));
    }
  }

  static void retain_keys(JsonObject& members, const JsonObject& patch) {
    constexpr const char* kProblem = "invalid patch format of retainKeys";
    const Json* directive = patch.if_contains(kRetainKeys);
    if (!directive) return;
    if (!directive->is_array()) model::throw_bad_request(kProblem);
    std::unordered_set<std::string_view> retained;
    for (const Json& name : directive->get_array())
      if (name.is_string()) retained.insert(name.get_string());
    for (const auto& [name, value] : patch)
      if (!value.is_null() && !is_directive(name) && !retained.contains(name))
        model::throw_bad_request(kProblem);
    std::vector<std::string> gone;
    for (const auto& [name, value] : members)
      if (!retained.contains(name)) gone.emplace_back(name);
    erase_members(members, gone);
  }

  void member(JsonObject& members, std::string_view name, const Json& value, const Schema* schema,
              std::vector<std::string>& gone) const {
    Json* old = members.if_contains(name);
    if (value.is_null()) {
      if (old) gone.emplace_back(name);
      return;
    }
    const Schema* below = schema ? schema::member_schema(*schema, name) : nullptr;
    if (old && old->is_object() && value.is_object() &&
        !(below && below->patch_strategy == "replace"))
      return object(*old, value.get_object(), below);
    if (old && old->is_array() && value.is_array() && merges(below)) {
      *old = list(std::move(old->get_array()), value.get_array(), *below);
      return;
    }
    if (auto kept = plain(value))
      members[name] = std::move(*kept);
    else if (old)
      gone.emplace_back(name);
  }

  void delete_from_list(JsonObject& members, std::string_view key, const Json& value,
                        const Schema* schema, std::vector<std::string>& gone) const {
    const std::string_view name =
        list_named_by(key, kDelete, "invalid patch format of primitive list");
    Json* old = members.if_contains(name);
    if (!old) return;
    if (value.is_null()) return gone.emplace_back(name), void();
    if (!old->is_array() || !value.is_array()) return;
    JsonArray& list = old->get_array();
    const Schema* below = schema ? schema::member_schema(*schema, name) : nullptr;
    if (elements_of(list, value.get_array()) == Elements::maps) {
      *old = merge_maps(std::move(list), value.get_array(), below);
      return;
    }
    const Positions deleted = positions_of(value.get_array(), "");
    JsonArray left;
    for (Json& element : list)
      if (!deleted.contains(model::to_text(element))) left.push_back(std::move(element));
    *old = std::move(left);
  }

  // A list whose items merge.
  JsonArray list(JsonArray live, const JsonArray& patch, const Schema& schema) const {
    switch (elements_of(live, patch)) {
      case Elements::none:
        return live;
      case Elements::maps:
        return merge_maps(std::move(live), patch, &schema);
      case Elements::scalars:
        break;
    }
    const Positions places = positions_of(live, "");
    const Positions order = positions_of(patch, "");
    std::vector<Item> items;
    std::unordered_set<std::string> seen;
    for (const JsonArray* from : {static_cast<const JsonArray*>(&live), &patch})
      for (const Json& element : *from)
        if (std::string key = model::to_text(element); seen.insert(key).second)
          items.push_back({std::move(key), element});
    return arrange(std::move(items), order, places);
  }

  JsonArray merge_maps(JsonArray live, const JsonArray& patch, const Schema* schema) const {
    if (!schema || schema->patch_merge_key.empty())
      throw_plain_error("cannot merge lists without merge key for " + type_name(schema));
    const std::string& merge_key = schema->patch_merge_key;
    const SpecialItems special = special_items(patch, merge_key);
    if (special.replaces) {
      JsonArray out;
      for (const Json* item : special.ordinary) {
        key_of(*item, merge_key);  // must have one
        out.push_back(*plain(*item));
      }
      return out;
    }
    std::vector<Item> items;
    Positions places;
    for (Json& value : live) {
      std::string key = key_of(value, merge_key);
      if (special.deleted.contains(key)) continue;
      places.emplace(key, items.size());
      items.push_back({std::move(key), std::move(value)});
    }
    Positions index = places;
    Positions order;
    for (const Json* item : special.ordinary) {
      std::string key = key_of(*item, merge_key);
      order.emplace(key, order.size());
      const auto [at, is_new] = index.emplace(key, items.size());
      if (is_new)
        items.push_back({std::move(key), *plain(*item)});
      else
        object(items[at->second].value, item->get_object(), schema->items.get());
    }
    return arrange(std::move(items), order, places);
  }

  struct SpecialItems {
    bool replaces = false;
    std::unordered_set<std::string> deleted;
    std::vector<const Json*> ordinary;
  };

  static SpecialItems special_items(const JsonArray& patch, const std::string& merge_key) {
    SpecialItems items;
    for (const Json& item : patch) {
      const Json* directive = item.get_object().if_contains(kDirective);
      if (!directive)
        items.ordinary.push_back(&item);
      else if (*directive == "delete")
        items.deleted.insert(key_of(item, merge_key));
      else if (*directive == "replace")
        items.replaces = true;
      else if (*directive == "merge")
        throw_plain_error("merging lists cannot yet be specified in the patch");
      else
        throw_plain_error(fmt::format("unknown patch type: {} in map: {}",
                                      model::to_text(*directive), model::to_text(item)));
    }
    return items;
  }

  static std::string type_name(const Schema* schema) {
    const std::string name = schema ? schema->name : "";
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? name : name.substr(dot + 1);
  }

  // Puts the lists that the patch orders in order; returns the names of those it merged doing so.
  std::unordered_set<std::string> order_lists(JsonObject& members, const JsonObject& patch,
                                              const Schema* schema) const {
    std::unordered_set<std::string> done;
    for (const auto& [key, value] : patch) {
      if (!std::string_view(key).starts_with(kOrder)) continue;
      const JsonArray& order = get_list(value);
      const std::string name(
          list_named_by(key, kOrder, "invalid patch format of setElementOrder list"));
      const Schema* below = schema ? schema::member_schema(*schema, name) : nullptr;
      if (!below)
        throw_plain_error(
            fmt::format("unable to find api field in struct {} for the json field \"{}\"",
                        type_name(schema), name));
      order_list(members, name, order, patch.if_contains(name), *below);
      done.insert(name);
    }
    return done;
  }

  void order_list(JsonObject& members, const std::string& name, const JsonArray& order,
                  const Json* patch_value, const Schema& schema) const {
    static const JsonArray kNothing;
    const std::string& merge_key = schema.patch_merge_key;
    Json* old = members.if_contains(name);
    const JsonArray& live = old ? get_list(*old) : kNothing;
    const JsonArray& patch = patch_value ? get_list(*patch_value) : kNothing;
    check_order(patch, order, merge_key);
    if (!old && !patch_value) return;
    if (elements_of(live, patch) == Elements::maps && merge_key.empty())
      throw_plain_error("cannot merge lists without merge key for " + type_name(&schema));
    const Positions places = positions_of(live, merge_key);
    JsonArray merged;
    if (!patch_value)
      merged = live;
    else if (old && merges(&schema))
      merged = list(live, patch, schema);
    else
      merged = plain(patch)->get_array();
    std::vector<Item> items;
    for (Json& value : merged) {
      std::string key = key_of(value, merge_key);
      items.push_back({std::move(key), std::move(value)});
    }
    members[name] = arrange(std::move(items), positions_of(order, merge_key), places);
  }

  // What a patch changes must be in the order it asks for, in that order.
  static void check_order(const JsonArray& patch, const JsonArray& order,
                          const std::string& merge_key) {
    if (patch.empty() || order.empty()) return;
    std::size_t at = 0;
    for (const Json& item : patch) {
      if (item.is_object() && item.get_object().if_contains(kDirective)) continue;
      const std::string key = key_of(item, merge_key);
      while (at < order.size() && key_of(order[at], merge_key) != key) ++at;
      if (at++ < order.size()) continue;
      throw_plain_error(fmt::format("The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
                                    model::to_text(patch), kOrder, model::to_text(order)));
    }
  }
};

}  // namespace

void apply_strategic_patch(Json& target, const Json& patch, const schema::Schema& schema) {
  if (patch.is_null()) return;
  if (!patch.is_object())
    model::throw_bad_request(unmarshal_error(patch, "map[string]interface {}"));
  StrategicMerge().object(target, patch.get_object(), &schema);
}

}  // namespace hearth::patch
