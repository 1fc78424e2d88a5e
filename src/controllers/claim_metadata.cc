#include "controllers/claim_metadata.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "controllers/claim_files.h"
#include "controllers/claim_problem.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "model/names.h"

namespace hearth::controllers {
namespace {

using model::object_at;
using model::text_at;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool is_in_domain(std::string_view domain, std::string_view of) {
  return domain == of || (domain.ends_with(of) && domain.size() > of.size() &&
                          domain[domain.size() - of.size() - 1] == '.');
}

std::string domain_of(std::string_view key) {
  const std::size_t slash = key.find('/');
  return slash == std::string_view::npos ? std::string() : lower(key.substr(0, slash));
}

// What is wrong with a label; empty for nothing.
std::string label_problem(std::string_view key, std::string_view value,
                          const std::vector<std::string>& domains) {
  if (const auto problems = model::check_qualified_name(key); !problems.empty())
    return fmt::format("invalid label key: {}: {}", json_quote(key), fmt::join(problems, "; "));
  // Otherwise a pod could take the router's place behind its Service.
  if (lower(key) == "app" && lower(value) == "sandbox-router")
    return fmt::format(
        "restricted system label value: {}={} is not allowed in AdditionalPodMetadata",
        json_quote(key), json_quote(value));
  const std::string domain = domain_of(key);
  if (domain.empty())
    return fmt::format(
        "label {} must have a domain prefix (e.g. 'sandbox.users.io/my-label') to prevent opting "
        "into unintended policy domains",
        json_quote(key));
  if (std::ranges::none_of(domains, [&](const auto& each) { return is_in_domain(domain, each); }))
    return fmt::format("label domain {} is not in the allowlist", json_quote(domain));
  if (const auto problems = model::check_label_value(value); !problems.empty())
    return fmt::format("invalid label value: {} does not match allowed pattern: {}",
                       json_quote(value), fmt::join(problems, "; "));
  return {};
}

std::string annotation_problem(std::string_view key) {
  if (const auto problems = model::check_qualified_name(key); !problems.empty())
    return fmt::format("invalid annotation key: {}: {}", json_quote(key),
                       fmt::join(problems, "; "));
  if (key == model::kSafeToEvictAnnotation) return {};
  const std::string domain = domain_of(key);
  for (const std::string_view restricted : {"kubernetes.io", "k8s.io", "agents.x-k8s.io"})
    if (is_in_domain(domain, restricted))
      return fmt::format("restricted system domain: {} is not allowed in AdditionalPodMetadata",
                         json_quote(key));
  return {};
}

void refuse(std::string_view word, std::string_view key, std::string_view problem) {
  if (problem.empty()) return;
  throw ClaimProblem("InvalidMetadata",
                     fmt::format("invalid additionalPodMetadata: failed to validate {} {}: {}",
                                 word, json_quote(key), problem),
                     Retry::when_changed);
}

std::string_view text_of(const Json& value) {
  return value.is_string() ? std::string_view(value.get_string()) : std::string_view();
}

JsonObject map_at(const Json& object, model::Path path) {
  const JsonObject* map = object_at(object, path);
  return map ? *map : JsonObject();
}

// `to` gets what the claim asks for; nothing of the template is overridden.
void add_wishes(JsonObject& to, const JsonObject* wishes, std::string_view word) {
  if (!wishes) return;
  for (const auto& [key, value] : *wishes) {
    const Json* there = to.if_contains(key);
    if (there && text_of(*there) != text_of(value))
      fail(Code::conflict,
           "metadata override conflict: {} {} is defined in template with value {}, but claim "
           "requests {}",
           word, json_quote(key), json_quote(text_of(*there)), json_quote(text_of(value)));
    to[key] = value;
  }
}

// What a sandbox's pod template says without what only pool members say.
void drop_pool_words(JsonObject& labels, JsonObject& annotations) {
  for (const std::string_view key :
       {model::kPoolLabel, model::kTemplateHashLabel, model::kPodTemplateHashLabel})
    labels.erase(key);
  annotations.erase(model::kDressAnnotation);
  const Json* evictable = annotations.if_contains(model::kSafeToEvictAnnotation);
  if (evictable && text_of(*evictable) == "true") annotations.erase(model::kSafeToEvictAnnotation);
}

// Texts of files that a cold sandbox was made with: no template says them, and they have to stay.
void keep_files(JsonObject& annotations, const Json& sandbox) {
  const JsonObject* there = object_at(sandbox, {"spec", "podTemplate", "metadata", "annotations"});
  if (!there) return;
  for (const auto& [key, value] : *there)
    if (std::string_view(key).starts_with(kFileAnnotationPrefix)) annotations[key] = value;
}

}  // namespace

void check_additional_metadata(const Json& claim, const std::vector<std::string>& label_domains) {
  if (const auto* labels = object_at(claim, {"spec", "additionalPodMetadata", "labels"}))
    for (const auto& [key, value] : *labels)
      refuse("label", key, label_problem(key, text_of(value), label_domains));
  if (const auto* annotations = object_at(claim, {"spec", "additionalPodMetadata", "annotations"}))
    for (const auto& [key, value] : *annotations)
      refuse("annotation", key, annotation_problem(key));
}

std::string_view creator_of(const Json& claim) {
  return model::label_of(claim, model::kCreatedByLabel);
}

Json claimed_pod_metadata(const Json& claim, const Json& sandbox, const Json* sandbox_template) {
  const Json& base = sandbox_template ? *sandbox_template : sandbox;
  JsonObject labels = map_at(base, {"spec", "podTemplate", "metadata", "labels"});
  JsonObject annotations = map_at(base, {"spec", "podTemplate", "metadata", "annotations"});
  if (!sandbox_template) drop_pool_words(labels, annotations);
  labels[model::kClaimUidLabel] = model::uid_of(claim);
  if (sandbox_template)
    labels[model::kTemplateRefHashLabel] = model::name_hash(model::name_of(*sandbox_template));
  if (creator_of(claim).empty())
    labels.erase(model::kCreatedByLabel);
  else
    labels[model::kCreatedByLabel] = creator_of(claim);
  add_wishes(labels, object_at(claim, {"spec", "additionalPodMetadata", "labels"}), "label");
  add_wishes(annotations, object_at(claim, {"spec", "additionalPodMetadata", "annotations"}),
             "annotation");
  keep_files(annotations, sandbox);
  // Empty maps are not written: what the server gives back would differ from what was asked for.
  JsonObject metadata{{"labels", std::move(labels)}};
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return metadata;
}

JsonObject map_changes(const JsonObject* from, const JsonObject& to) {
  JsonObject changes;
  for (const auto& [key, value] : to) {
    const Json* there = from ? from->if_contains(key) : nullptr;
    if (!there || !model::is_same(*there, value)) changes[key] = value;
  }
  if (!from) return changes;
  for (const auto& [key, value] : *from)
    if (!to.contains(key)) changes[key] = nullptr;
  return changes;
}

JsonObject metadata_changes(const Json* from, const Json& to) {
  JsonObject changes;
  for (const std::string_view map : {"labels", "annotations"}) {
    const JsonObject* before = from ? object_at(*from, {map}) : nullptr;
    JsonObject different = map_changes(before, map_at(to, {map}));
    if (!different.empty()) changes[map] = std::move(different);
  }
  return changes;
}

}  // namespace hearth::controllers
