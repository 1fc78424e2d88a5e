#include <unordered_set>

#include "model/status.h"
#include "patch/patch.h"
#include "patch/patch_internal.h"

namespace hearth::patch {
namespace {

using model::JsonObject;

// Erasing in place moves everything behind; this many are cheaper that way than a new object.
constexpr std::size_t kFewMembers = 4;

// Nesting is as deep as the patch's, which the parser bounds.
void merge_into(Json& target, const Json& patch) {
  const JsonObject* changes = patch.if_object();
  if (!changes) {
    target = patch;
    return;
  }
  if (!target.is_object()) target.emplace_object();
  JsonObject& object = target.get_object();
  std::vector<std::string> gone;
  for (const auto& [key, value] : *changes) {
    if (!value.is_null())
      merge_into(object[key], value);
    else if (object.if_contains(key))
      gone.emplace_back(key);
  }
  erase_members(object, gone);
}

std::string_view json_word(const Json& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  return value.is_bool() ? "bool" : "number";
}

}  // namespace

void erase_members(JsonObject& object, const std::vector<std::string>& names) {
  if (names.size() <= kFewMembers) {
    for (const std::string& name : names) object.stable_erase(name);
    return;
  }
  const std::unordered_set<std::string_view> gone(names.begin(), names.end());
  JsonObject left(object.storage());
  left.reserve(object.size());
  for (auto& [name, value] : object)
    if (!gone.contains(name)) left.emplace(name, std::move(value));
  object = std::move(left);
}

void throw_patch_rejected() {
  model::Status status;
  status.code = 422;
  status.reason = "Invalid";
  status.message = "the server rejected our request due to an error in our request";
  status.has_details = true;
  throw model::StatusError(std::move(status));
}

void throw_plain_error(std::string message) {
  model::Status status;
  status.code = 500;
  status.reason.clear();
  status.message = std::move(message);
  throw model::StatusError(std::move(status));
}

std::string unmarshal_error(const Json& value, std::string_view type) {
  return "json: cannot unmarshal " + std::string(json_word(value)) + " into Go value of type " +
         std::string(type);
}

void apply_merge_patch(Json& target, const Json& patch) {
  if (patch.is_null()) model::throw_bad_request("Invalid JSON Patch");
  if (!patch.is_object())
    model::throw_bad_request("error decoding patch: " +
                             unmarshal_error(patch, "map[string]interface {}"));
  merge_into(target, patch);
}

}  // namespace hearth::patch
