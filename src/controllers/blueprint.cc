#include "controllers/blueprint.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "model/quantity.h"

namespace hearth::controllers {
namespace {

using model::JsonArray;
using model::JsonObject;

// What a SandboxTemplate and a Sandbox have in common.
constexpr std::array<std::string_view, 3> kBlueprintFields = {"podTemplate", "volumeClaimTemplates",
                                                              "service"};

constexpr std::array<std::string_view, 4> kAccessRules = {
    model::kAccessAnnotation, model::kTrafficAnnotation, model::kMaskHostAnnotation,
    model::kHttpsPortsAnnotation};

// Members in the order of their names, so that equal values have equal texts.
void append_canonical(std::string& text, const Json& value) {
  if (const JsonArray* items = value.if_array()) {
    text += '[';
    for (const Json& item : *items) {
      append_canonical(text, item);
      text += ',';
    }
    text += ']';
  } else if (const JsonObject* members = value.if_object()) {
    std::vector<std::string_view> names;
    for (const auto& member : *members) names.emplace_back(member.key());
    std::ranges::sort(names);
    text += '{';
    for (const std::string_view name : names) {
      text += model::to_text(Json(name)) + ':';
      append_canonical(text, members->at(name));
      text += ',';
    }
    text += '}';
  } else {
    text += model::to_text(value);
  }
}

std::string hash_of(const Json& value) {
  std::string text;
  append_canonical(text, value);
  return model::name_hash(text);
}

bool uses_default_network_policy(const Json& sandbox_template) {
  return !is_network_unmanaged(sandbox_template) &&
         model::object_at(sandbox_template, {"spec", "networkPolicy"}) == nullptr;
}

void apply_secure_defaults(const Json& sandbox_template, JsonObject& pod_spec) {
  if (!pod_spec.contains("automountServiceAccountToken"))
    pod_spec["automountServiceAccountToken"] = false;
  if (!uses_default_network_policy(sandbox_template)) return;
  const Json* policy = pod_spec.if_contains("dnsPolicy");
  if (policy != nullptr && policy->is_string() && !policy->get_string().empty()) return;
  pod_spec["dnsPolicy"] = "None";
  pod_spec["dnsConfig"] = {{"nameservers", {"8.8.8.8", "1.1.1.1"}}};
}

bool is_nothing(const Json* value) {
  return value == nullptr || value->is_null() || (value->is_array() && value->get_array().empty());
}

bool is_same_amount(const Json& left, const Json& right) {
  if (model::is_same(left, right)) return true;
  const auto amount = [](const Json& value) {
    const std::string text =
        value.is_string() ? std::string(value.get_string()) : model::to_text(value);
    return model::Quantity::parse(text);
  };
  const auto one = amount(left);
  return one && one == amount(right);
}

// What a member means decides how it is compared: {requests: {cpu: 1}} is {requests: {cpu: 1000m}}.
enum class Meaning { plain, amounts };

bool is_equivalent(const Json* left, const Json* right, Meaning meaning = Meaning::plain);

bool are_members_equivalent(const JsonObject& left, const JsonObject& right, Meaning meaning) {
  const auto is_matched = [&](const JsonObject& one, const JsonObject& other) {
    return std::ranges::all_of(one, [&](const auto& member) {
      const Json* counterpart = other.if_contains(member.key());
      if (meaning == Meaning::amounts)
        return counterpart != nullptr && is_same_amount(member.value(), *counterpart);
      const bool are_amounts = member.key() == "requests" || member.key() == "limits";
      return is_equivalent(&member.value(), counterpart,
                           are_amounts ? Meaning::amounts : Meaning::plain);
    });
  };
  return is_matched(left, right) && std::ranges::all_of(right, [&](const auto& member) {
           return left.contains(member.key()) || is_nothing(&member.value());
         });
}

// As the original's typed comparison sees it: null, an empty list and no member are the same.
bool is_equivalent(const Json* left, const Json* right, Meaning meaning) {
  if (is_nothing(left) || is_nothing(right)) return is_nothing(left) && is_nothing(right);
  if (left->is_object() && right->is_object())
    return are_members_equivalent(left->get_object(), right->get_object(), meaning);
  if (left->is_array() && right->is_array())
    return std::ranges::equal(
        left->get_array(), right->get_array(),
        [](const Json& one, const Json& other) { return is_equivalent(&one, &other); });
  return model::is_same(*left, *right);
}

// By position: the list is one value. Labels and annotations of volumes do not count.
bool are_volumes_equivalent(const Json* left, const Json* right) {
  static const JsonArray kNone;
  const auto items = [](const Json* list) -> const JsonArray& {
    return list != nullptr && list->is_array() ? list->get_array() : kNone;
  };
  return std::ranges::equal(items(left), items(right), [](const Json& one, const Json& other) {
    return model::name_of(one) == model::name_of(other) &&
           is_equivalent(model::find(one, {"spec"}), model::find(other, {"spec"}));
  });
}

bool is_blueprint_equivalent(const Json& left, const Json& right) {
  return is_equivalent(model::find(left, {"podTemplate", "spec"}),
                       model::find(right, {"podTemplate", "spec"})) &&
         are_volumes_equivalent(model::find(left, {"volumeClaimTemplates"}),
                                model::find(right, {"volumeClaimTemplates"})) &&
         is_equivalent(model::find(left, {"service"}), model::find(right, {"service"}));
}

}  // namespace

bool is_network_unmanaged(const Json& sandbox_template) {
  return model::text_at(sandbox_template, {"spec", "networkPolicyManagement"}) == "Unmanaged";
}

Blueprint blueprint_of(const Json& sandbox_template) {
  Json spec = JsonObject{};
  for (const std::string_view field : kBlueprintFields) {
    const Json* value = model::find(sandbox_template, {"spec", field});
    if (value != nullptr && !value->is_null()) spec.get_object()[field] = *value;
  }
  apply_secure_defaults(sandbox_template, model::make_object_at(spec, {"podTemplate", "spec"}));
  std::string hash = hash_of(spec);
  std::string pod_hash = hash_of(spec.at("podTemplate"));
  return {.spec = std::move(spec),
          .hash = std::move(hash),
          .pod_hash = std::move(pod_hash),
          .access = access_rules_of(sandbox_template)};
}

JsonObject access_rules_of(const Json& sandbox_template) {
  JsonObject rules;
  for (const std::string_view key : kAccessRules)
    if (const auto value = model::annotation_of(sandbox_template, key); !value.empty())
      rules[key] = value;
  return rules;
}

JsonObject access_changes(const Json& sandbox, const Json& sandbox_template) {
  JsonObject changes;
  for (const auto& [key, value] : access_rules_of(sandbox_template))
    if (value.get_string() != model::annotation_of(sandbox, key)) changes[key] = value;
  return changes;
}

bool is_stale(const Json& sandbox, const Json& sandbox_template, const Blueprint& blueprint) {
  if (model::label_of(sandbox, model::kTemplateRefHashLabel) !=
      model::name_hash(model::name_of(sandbox_template)))
    return true;
  // The hash is believed of our own members only: anybody may label what is nobody's.
  const bool is_owned = model::controller_of(sandbox).has_value();
  if (is_owned && model::label_of(sandbox, model::kTemplateHashLabel) == blueprint.hash)
    return false;
  const Json* spec = model::find(sandbox, {"spec"});
  return spec == nullptr || !is_blueprint_equivalent(*spec, blueprint.spec);
}

}  // namespace hearth::controllers
