#include "model/conversion.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_text.h"

namespace hearth::model {
namespace {

constexpr std::string_view kSandboxGroup = "agents.x-k8s.io";
constexpr std::string_view kExtensionsGroup = "extensions.agents.x-k8s.io";
constexpr std::string_view kShadowPool = "shadow-pool-";
constexpr std::string_view kClaimPolicy =
    "api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy";

std::string_view group_of(const Json& object) {
  const std::string_view api_version = text_at(object, {"apiVersion"});
  return api_version.substr(0, api_version.find('/'));
}

// Whether the object is of one of the kinds and in the other version than this.
bool is_of_other_version(const Json& object, std::string_view version) {
  const std::string_view group = group_of(object);
  return has_conversion(group, text_at(object, {"kind"})) &&
         text_at(object, {"apiVersion"}) != fmt::format("{}/{}", group, version);
}

void set_version(Json& object, std::string_view version) {
  object.get_object()["apiVersion"] = fmt::format("{}/{}", group_of(object), version);
}

// Where the v1alpha1 object is kept beside the v1beta1 one.
std::string state_annotation(std::string_view kind) {
  std::string lower(kind);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return fmt::format("api.agents.x-k8s.io/v1alpha1-{}-state", lower);
}

void drop_annotation(Json& object, std::string_view name) {
  erase_at(object, {"metadata", "annotations", name});
  const JsonObject* left = object_at(object, {"metadata", "annotations"});
  if (left && left->empty()) erase_at(object, {"metadata", "annotations"});
}

void set_annotation(Json& object, std::string_view name, std::string_view value) {
  make_object_at(object, {"metadata", "annotations"})[name] = value;
}

// The v1alpha1 object as text. Left out are the annotation itself, so that states do not nest, and
// what the server rewrites at every write: with it a write that changes nothing would change that.
std::string state_of(Json object, const std::string& annotation) {
  drop_annotation(object, annotation);
  for (const std::string_view name : {"resourceVersion", "managedFields", "generation"})
    erase_at(object, {"metadata", name});
  return to_text(object);
}

// The v1alpha1 object that was kept, taken out of the annotations; null if there is none. One that
// cannot be read counts as none: whoever may write one object could otherwise keep everybody from
// listing all of them in v1alpha1.
Json take_state(Json& object, const std::string& annotation) {
  const std::string text(text_at(object, {"metadata", "annotations", annotation}));
  drop_annotation(object, annotation);
  if (text.empty()) return nullptr;
  try {
    return parse_json(text).value;
  } catch (const Error&) {
    return nullptr;
  }
}

// Of a kept object, which somebody may have written by hand: an int32 that is not below 0.
std::optional<std::int64_t> count_at(const Json& original, Path path) {
  const auto number = number_at(original, path);
  const bool fits = number && *number >= 0 && *number <= std::numeric_limits<std::int32_t>::max();
  return fits ? number : std::nullopt;
}

std::string without_suffix(std::string_view name) {
  return std::string(name.substr(0, name.rfind('-')));
}

bool is_specific_pool(std::string_view policy) {
  return !policy.empty() && policy != "none" && policy != "default";
}

void sandbox_to_beta(Json& sandbox) {
  JsonObject& spec = make_object_at(sandbox, {"spec"});
  const bool is_suspended = number_at(sandbox, {"spec", "replicas"}) == 0;
  spec.erase("replicas");
  spec["operatingMode"] = is_suspended ? "Suspended" : "Running";
  erase_at(sandbox, {"status", "replicas"});
  erase_at(sandbox, {"status", "nodeName"});
}

void sandbox_to_alpha(Json& sandbox, const Json& original) {
  JsonObject& spec = make_object_at(sandbox, {"spec"});
  const std::string mode(text_at(sandbox, {"spec", "operatingMode"}));
  const bool is_suspended = mode == "Suspended";
  spec.erase("operatingMode");
  spec["replicas"] = is_suspended ? 0 : 1;
  erase_at(sandbox, {"status", "nodeName"});
  std::int64_t running = is_suspended ? 0 : 1;
  if (!original.is_null()) {
    const auto replicas = count_at(original, {"spec", "replicas"});
    if (mode == "Running" && !replicas) spec.erase("replicas");
    if (mode == "Running" && replicas.value_or(0) != 0) spec["replicas"] = *replicas;
    running = count_at(original, {"status", "replicas"}).value_or(0);
  }
  // Zero is not written, and nothing is made for the sake of it.
  if (running != 0) make_object_at(sandbox, {"status"})["replicas"] = running;
}

void claim_to_beta(Json& claim) {
  const std::string policy(text_at(claim, {"spec", "warmpool"}));
  const std::string bound(text_at(claim, {"status", "sandbox", "name"}));
  std::string pool;
  if (is_specific_pool(policy))
    pool = policy;
  else if (!bound.empty() && bound != text_at(claim, {"metadata", "name"}))
    pool = without_suffix(bound);
  else
    pool = fmt::format("{}{}", kShadowPool, text_at(claim, {"spec", "sandboxTemplateRef", "name"}));
  JsonObject& spec = make_object_at(claim, {"spec"});
  spec.erase("warmpool");
  spec.erase("sandboxTemplateRef");
  spec["warmPoolRef"] = JsonObject{{"name", pool}};
}

// Whether the pool is still the one that the kept v1alpha1 claim stands for.
bool is_pool_of(std::string_view pool, const Json& original, std::string_view bound) {
  const std::string_view policy = text_at(original, {"spec", "warmpool"});
  const std::string expected(is_specific_pool(policy)
                                 ? policy
                                 : text_at(original, {"spec", "sandboxTemplateRef", "name"}));
  return pool == expected || pool == fmt::format("{}{}", kShadowPool, expected) ||
         (!bound.empty() && (pool == bound || pool == without_suffix(bound)));
}

void claim_to_alpha(Json& claim, const Json& original) {
  const std::string pool(text_at(claim, {"spec", "warmPoolRef", "name"}));
  const std::string bound(text_at(claim, {"status", "sandbox", "name"}));
  JsonObject& spec = make_object_at(claim, {"spec"});
  // A claim that names a template says what v1alpha1 calls "default".
  const std::string direct(text_at(claim, {"spec", "sandboxTemplateRef", "name"}));
  spec.erase("warmPoolRef");
  for (const std::string_view later : {"volumeClaimTemplates", "whenEmpty", "waitSeconds",
                                       "priority", "envFrom", "files", "workingDir"})
    spec.erase(later);
  const bool is_shadow = pool.empty() || pool.starts_with(kShadowPool);
  std::string name = pool;
  if (is_shadow) name = pool.empty() ? direct : pool.substr(kShadowPool.size());
  spec["sandboxTemplateRef"] = JsonObject{{"name", name}};
  spec["warmpool"] = is_shadow ? "default" : pool;
  if (original.is_null()) return;
  const bool is_unchanged = is_pool_of(pool, original, bound);
  if (const Json* reference = find(original, {"spec", "sandboxTemplateRef"});
      reference && find(*reference, {"name"}) && find(*reference, {"name"})->is_string())
    spec["sandboxTemplateRef"] = *reference;
  const Json* policy = find(original, {"spec", "warmpool"});
  if (policy && !policy->is_string()) policy = nullptr;
  if (!is_unchanged)
    spec["warmpool"] = pool.empty() ? "default" : pool;
  else if (policy)
    spec["warmpool"] = *policy;
  else
    spec.erase("warmpool");
}

void template_to_beta(Json& object) {
  const Json* annotation = find(object, {"metadata", "annotations", kClaimPolicy});
  if (!annotation) return;
  const std::string policy(text_at(object, {"metadata", "annotations", kClaimPolicy}));
  if (policy != "Disallowed" && policy != "Allowed" && policy != "Overrides")
    fail(Code::invalid, "invalid VolumeClaimTemplatesPolicy annotation value: {}",
         json_quote(policy));
  make_object_at(object, {"spec"})["volumeClaimTemplatesPolicy"] = policy;
  drop_annotation(object, kClaimPolicy);
}

void template_to_alpha(Json& object) {
  const std::string policy(text_at(object, {"spec", "volumeClaimTemplatesPolicy"}));
  erase_at(object, {"spec", "volumeClaimTemplatesPolicy"});
  if (policy.empty())
    drop_annotation(object, kClaimPolicy);
  else
    set_annotation(object, kClaimPolicy, policy);
}

}  // namespace

bool has_conversion(std::string_view group, std::string_view kind) {
  if (group == kSandboxGroup) return kind == "Sandbox";
  return group == kExtensionsGroup &&
         (kind == "SandboxClaim" || kind == "SandboxTemplate" || kind == "SandboxWarmPool");
}

void to_v1beta1(Json& object) {
  const std::string kind(text_at(object, {"kind"}));
  const std::string annotation = state_annotation(kind);
  if (!is_of_other_version(object, "v1beta1")) return;
  const std::string state = state_of(object, annotation);
  set_version(object, "v1beta1");
  if (kind == "Sandbox") sandbox_to_beta(object);
  if (kind == "SandboxClaim") claim_to_beta(object);
  if (kind == "SandboxTemplate") template_to_beta(object);
  // A pool that says no number is one of none, as v1alpha1 reads it.
  if (kind == "SandboxWarmPool" && !number_at(object, {"spec", "replicas"}))
    make_object_at(object, {"spec"})["replicas"] = 0;
  set_annotation(object, annotation, state);
}

void to_v1alpha1(Json& object) {
  const std::string kind(text_at(object, {"kind"}));
  if (!is_of_other_version(object, "v1alpha1")) return;
  set_version(object, "v1alpha1");
  const Json original = take_state(object, state_annotation(kind));
  if (kind == "Sandbox") sandbox_to_alpha(object, original);
  if (kind == "SandboxClaim") claim_to_alpha(object, original);
  if (kind == "SandboxTemplate") template_to_alpha(object);
  if (kind != "SandboxWarmPool") return;
  if (!number_at(object, {"spec", "replicas"})) make_object_at(object, {"spec"})["replicas"] = 1;
  erase_at(object, {"status", "observedGeneration"});
}

}  // namespace hearth::model
