// What every object says about itself: name, labels, owners, conditions.
//
// Readers of metadata that is not there give empty values: objects come from outside.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/json.h"

namespace hearth::model {

// Where an object is found, within its kind. A cluster-scoped kind has the namespace "".
struct Key {
  std::string ns;
  std::string name;

  // "NS/NAME"
  std::string text() const { return ns + "/" + name; }
  auto operator<=>(const Key&) const = default;
};

Key key_of(const Json& object);
std::string_view name_of(const Json& object);
std::string_view namespace_of(const Json& object);
std::string_view uid_of(const Json& object);
std::string_view resource_version_of(const Json& object);
std::int64_t generation_of(const Json& object);
// Whether it is on its way out: it has a deletionTimestamp.
bool is_deleting(const Json& object);
std::optional<Time> created_at(const Json& object);
std::string_view label_of(const Json& object, std::string_view key);
std::string_view annotation_of(const Json& object, std::string_view key);

struct Owner {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;

  // "agents.x-k8s.io" of "agents.x-k8s.io/v1beta1": owners are compared by group and kind, since
  // old objects name old versions.
  std::string group() const;
};

// The one owner with `controller: true`.
std::optional<Owner> controller_of(const Json& object);
bool is_controlled_by(const Json& object, std::string_view uid);
// For an object that `owner` is to control: controller and blockOwnerDeletion are true.
Json controller_reference(const Json& owner);

// FNV-1a, 32 bits, as eight lower case hexadecimal digits: names as label values.
std::string name_hash(std::string_view name);

// One of status.conditions. `status` is "True", "False" or "Unknown".
struct Condition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  std::int64_t observed_generation = 0;
};

// Puts it in the place of the one of its type, or last. lastTransitionTime changes only with
// `status`. Returns whether anything changed.
bool set_condition(JsonArray& conditions, const Condition& condition, Time now);
// False when there was none.
bool remove_condition(JsonArray& conditions, std::string_view type);
// In status.conditions of an object; null for none.
const Json* find_condition(const Json& object, std::string_view type);
// Whether that condition is there and "True".
bool is_condition_true(const Json& object, std::string_view type);

}  // namespace hearth::model
