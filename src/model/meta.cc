#include "model/meta.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/time_text.h"
#include "model/member.h"

namespace hearth::model {
namespace {

std::string_view map_value(const Json& object, std::string_view map, std::string_view key) {
  const JsonObject* members = object_at(object, {"metadata", map});
  if (members == nullptr) return {};
  const Json* value = find_member(*members, key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                : std::string_view();
}

std::string text(std::string_view view) {
  return std::string(view);
}

// The reference to it; null for none.
const Json* find_controller(const Json& object) {
  const JsonArray* owners = array_at(object, {"metadata", "ownerReferences"});
  if (owners == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      *owners, [](const Json& owner) { return is_true_at(owner, {"controller"}); });
  return found == owners->end() ? nullptr : &*found;
}

auto find_type(JsonArray& conditions, std::string_view type) {
  return std::ranges::find_if(conditions,
                              [&](const Json& each) { return text_at(each, {"type"}) == type; });
}

}  // namespace

Key key_of(const Json& object) {
  return {text(namespace_of(object)), text(name_of(object))};
}

std::string_view name_of(const Json& object) {
  return text_at(object, {"metadata", "name"});
}

std::string_view namespace_of(const Json& object) {
  return text_at(object, {"metadata", "namespace"});
}

std::string_view uid_of(const Json& object) {
  return text_at(object, {"metadata", "uid"});
}

std::string_view resource_version_of(const Json& object) {
  return text_at(object, {"metadata", "resourceVersion"});
}

std::int64_t generation_of(const Json& object) {
  return number_at(object, {"metadata", "generation"}).value_or(0);
}

bool is_deleting(const Json& object) {
  return !text_at(object, {"metadata", "deletionTimestamp"}).empty();
}

std::optional<Time> created_at(const Json& object) {
  return parse_rfc3339(text_at(object, {"metadata", "creationTimestamp"}));
}

std::string_view label_of(const Json& object, std::string_view key) {
  return map_value(object, "labels", key);
}

std::string_view annotation_of(const Json& object, std::string_view key) {
  return map_value(object, "annotations", key);
}

std::string Owner::group() const {
  const std::size_t slash = api_version.find('/');
  return slash == std::string::npos ? std::string() : api_version.substr(0, slash);
}

std::optional<Owner> controller_of(const Json& object) {
  const Json* owner = find_controller(object);
  if (owner == nullptr) return std::nullopt;
  return Owner{.api_version = text(text_at(*owner, {"apiVersion"})),
               .kind = text(text_at(*owner, {"kind"})),
               .name = text(text_at(*owner, {"name"})),
               .uid = text(text_at(*owner, {"uid"}))};
}

bool is_controlled_by(const Json& object, std::string_view uid) {
  const Json* owner = find_controller(object);
  return owner != nullptr && !uid.empty() && text_at(*owner, {"uid"}) == uid;
}

Json controller_reference(const Json& owner) {
  return JsonObject{{"apiVersion", text_at(owner, {"apiVersion"})},
                    {"kind", text_at(owner, {"kind"})},
                    {"name", name_of(owner)},
                    {"uid", uid_of(owner)},
                    {"controller", true},
                    {"blockOwnerDeletion", true}};
}

std::string name_hash(std::string_view name) {
  std::uint32_t hash = 0x811c9dc5;
  for (const char byte : name) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x01000193;
  }
  return fmt::format("{:08x}", hash);
}

bool set_condition(JsonArray& conditions, const Condition& condition, Time now) {
  const auto found = find_type(conditions, condition.type);
  const bool is_new = found == conditions.end();
  JsonObject next{{"type", condition.type},
                  {"status", condition.status},
                  {"observedGeneration", condition.observed_generation},
                  {"lastTransitionTime", format_rfc3339(now)},
                  {"reason", condition.reason},
                  {"message", condition.message}};
  if (is_new) {
    conditions.emplace_back(std::move(next));
    return true;
  }
  const std::string_view since = text_at(*found, {"lastTransitionTime"});
  if (text_at(*found, {"status"}) == condition.status && !since.empty())
    next["lastTransitionTime"] = since;
  Json changed(std::move(next));
  if (is_same(changed, *found)) return false;
  *found = std::move(changed);
  return true;
}

bool remove_condition(JsonArray& conditions, std::string_view type) {
  const auto found = find_type(conditions, type);
  if (found == conditions.end()) return false;
  conditions.erase(found);
  return true;
}

const Json* find_condition(const Json& object, std::string_view type) {
  const JsonArray* conditions = array_at(object, {"status", "conditions"});
  if (conditions == nullptr) return nullptr;
  for (const Json& condition : *conditions)
    if (text_at(condition, {"type"}) == type) return &condition;
  return nullptr;
}

bool is_condition_true(const Json& object, std::string_view type) {
  const Json* condition = find_condition(object, type);
  return condition != nullptr && text_at(*condition, {"status"}) == "True";
}

}  // namespace hearth::model
