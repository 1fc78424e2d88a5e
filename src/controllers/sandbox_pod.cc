#include "controllers/sandbox_pod.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "controllers/sandbox_volumes.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "model/names.h"

namespace hearth::controllers {

using model::JsonObject;

namespace {

using Texts = std::map<std::string, std::string, std::less<>>;
// What to set, and what (nothing) to remove.
using Changes = std::map<std::string, std::optional<std::string>, std::less<>>;

// Annotations of a pod that its node acts on at once.
constexpr std::array kCommands = {model::kPauseAnnotation, model::kEgressAnnotation};

bool has_system_prefix(std::string_view key) {
  for (const std::string_view group : {model::kCoreGroup, model::kExtensionsGroup})
    if (key.starts_with(group) && key.substr(group.size()).starts_with('/')) return true;
  return false;
}

Texts texts_at(const Json& object, model::Path path) {
  Texts texts;
  if (const JsonObject* members = model::object_at(object, path))
    for (const auto& [key, value] : *members)
      if (value.is_string()) texts.emplace(key, value.get_string());
  return texts;
}

Texts template_labels(const Json& sandbox) {
  Texts labels = texts_at(sandbox, {"spec", "podTemplate", "metadata", "labels"});
  std::erase_if(labels, [](const auto& each) { return is_system_label(each.first); });
  return labels;
}

Texts template_annotations(const Json& sandbox) {
  Texts annotations = texts_at(sandbox, {"spec", "podTemplate", "metadata", "annotations"});
  std::erase_if(annotations, [](const auto& each) { return is_system_annotation(each.first); });
  return annotations;
}

// What the Sandbox says of them goes before what its template says. A member of a pool is never
// paused: whoever takes it finds it running.
Texts commands(const Json& sandbox) {
  Texts commands;
  const auto owner = model::controller_of(sandbox);
  const bool is_idle = owner && owner->kind == "SandboxWarmPool";
  for (const std::string_view key : kCommands) {
    if (is_idle && key == model::kPauseAnnotation) continue;
    if (const std::string_view value = model::annotation_of(sandbox, key); !value.empty())
      commands.emplace(key, value);
  }
  return commands;
}

// Sorted, as the map is.
std::string joined_keys(const Texts& texts) {
  std::string joined;
  for (const auto& [key, value] : texts) {
    if (!joined.empty()) joined += ',';
    joined += key;
  }
  return joined;
}

// Our own labels that a pod has or has not, as the Sandbox and its owner are; empty for none.
std::map<std::string_view, std::string_view> own_labels(const Json& sandbox) {
  const auto owner = model::controller_of(sandbox);
  const bool is_extension = owner && owner->group() == model::kExtensionsGroup;
  const auto label_if = [&](bool holds, std::string_view key) {
    return holds ? model::label_of(sandbox, key) : std::string_view();
  };
  const std::string_view creator = model::label_of(sandbox, model::kCreatedByLabel);
  return {{model::kTemplateRefHashLabel, label_if(is_extension, model::kTemplateRefHashLabel)},
          {model::kPoolLabel,
           label_if(is_extension && owner->kind == "SandboxWarmPool", model::kPoolLabel)},
          {model::kClaimUidLabel,
           label_if(is_extension && owner->kind == "SandboxClaim", model::kClaimUidLabel)},
          {model::kCreatedByLabel, creator.empty() ? creator : normalised_creator(creator)}};
}

// Calls `act` for each key of a comma-separated list.
template <typename F>
void for_each_key(std::string_view list, F act) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (const std::string_view key = list.substr(0, comma); !key.empty()) act(key);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

void want(Changes& changes, const Texts& there, std::string_view key, std::string_view value) {
  const auto found = there.find(key);
  if (found == there.end() || found->second != value)
    changes.insert_or_assign(std::string(key), std::string(value));
  else
    changes.erase(std::string(key));
}

void want_not(Changes& changes, const Texts& there, std::string_view key) {
  if (there.contains(key)) changes.insert_or_assign(std::string(key), std::nullopt);
}

Changes label_changes(const Json& pod, const Json& sandbox, const Texts& wanted) {
  const Texts there = texts_at(pod, {"metadata", "labels"});
  Changes changes;
  for_each_key(model::annotation_of(pod, model::kPropagatedLabelsAnnotation),
               [&](std::string_view key) {
                 if (!wanted.contains(key)) want_not(changes, there, key);
               });
  for (const auto& [key, value] : wanted) want(changes, there, key, value);
  for (const auto& [key, value] : own_labels(sandbox)) {
    if (value.empty())
      want_not(changes, there, key);
    else
      want(changes, there, key, value);
  }
  want(changes, there, model::kNameHashLabel, model::name_hash(model::name_of(sandbox)));
  return changes;
}

// A list that is empty is written only where there was one that is not.
void want_list(Changes& changes, const Texts& there, std::string_view key,
               const std::string& list) {
  if (list.empty() && !there.contains(key))
    changes.erase(std::string(key));
  else
    want(changes, there, key, list);
}

Changes annotation_changes(const Json& pod, const Json& sandbox, const Texts& labels,
                           const Texts& wanted) {
  const Texts there = texts_at(pod, {"metadata", "annotations"});
  Changes changes;
  for_each_key(model::annotation_of(pod, model::kPropagatedAnnotationsAnnotation),
               [&](std::string_view key) {
                 if (!wanted.contains(key)) want_not(changes, there, key);
               });
  for (const std::string_view key : kCommands) want_not(changes, there, key);
  for (const auto& [key, value] : wanted) want(changes, there, key, value);
  for (const auto& [key, value] : commands(sandbox)) want(changes, there, key, value);
  want_list(changes, there, model::kPropagatedLabelsAnnotation, joined_keys(labels));
  want_list(changes, there, model::kPropagatedAnnotationsAnnotation, joined_keys(wanted));
  return changes;
}

JsonObject to_patch(const Changes& changes) {
  JsonObject patch;
  for (const auto& [key, value] : changes) patch[key] = value ? Json(*value) : Json(nullptr);
  return patch;
}

JsonObject to_object(const Texts& texts) {
  JsonObject object;
  for (const auto& [key, value] : texts) object[key] = value;
  return object;
}

JsonObject new_metadata(const Json& sandbox) {
  Texts labels = template_labels(sandbox);
  Texts annotations = template_annotations(sandbox);
  const std::string label_keys = joined_keys(labels);
  const std::string annotation_keys = joined_keys(annotations);
  if (!label_keys.empty()) annotations.emplace(model::kPropagatedLabelsAnnotation, label_keys);
  if (!annotation_keys.empty())
    annotations.emplace(model::kPropagatedAnnotationsAnnotation, annotation_keys);
  for (auto& [key, value] : commands(sandbox)) annotations.insert_or_assign(key, value);
  for (const auto& [key, value] : own_labels(sandbox))
    if (!value.empty()) labels.insert_or_assign(std::string(key), std::string(value));
  labels.insert_or_assign(std::string(model::kNameHashLabel),
                          model::name_hash(model::name_of(sandbox)));

  JsonObject metadata{{"name", model::name_of(sandbox)},
                      {"namespace", model::namespace_of(sandbox)},
                      {"labels", to_object(labels)}};
  if (!annotations.empty()) metadata["annotations"] = to_object(annotations);
  metadata["ownerReferences"] = model::JsonArray{model::controller_reference(sandbox)};
  return metadata;
}

bool is_same_at(const Json& left, const Json& right, model::Path path) {
  const Json* one = model::find(left, path);
  const Json* other = model::find(right, path);
  if (one == nullptr || other == nullptr) return one == other;
  return model::is_same(*one, *other);
}

}  // namespace

std::string_view pod_name_of(const Json& sandbox) {
  const std::string_view said = model::annotation_of(sandbox, model::kPodNameAnnotation);
  // Whoever may write the Sandbox may write anything there, and it becomes part of a path.
  const bool is_name = !said.empty() && model::check_dns_subdomain(said).empty();
  return is_name ? said : model::name_of(sandbox);
}

bool is_suspended(const Json& sandbox) {
  return model::text_at(sandbox, {"spec", "operatingMode"}) == "Suspended";
}

bool is_system_label(std::string_view key) {
  return has_system_prefix(key);
}

bool is_system_annotation(std::string_view key) {
  return has_system_prefix(key) || key == model::kTraceContextAnnotation ||
         key == model::kPauseAnnotation;
}

std::string_view normalised_creator(std::string_view created_by) {
  static constexpr std::array<std::string_view, 3> kKnown = {"go-client", "python-client",
                                                             "controller"};
  const auto found = std::ranges::find(kKnown, created_by);
  return found == kKnown.end() ? "unknown" : *found;
}

Json new_pod(const Json& sandbox) {
  JsonObject spec;
  if (const JsonObject* given = model::object_at(sandbox, {"spec", "podTemplate", "spec"}))
    spec = *given;
  if (model::JsonArray volumes = volumes_of_pod(sandbox); !volumes.empty())
    spec["volumes"] = std::move(volumes);

  JsonObject pod{{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = new_metadata(sandbox);
  pod["spec"] = std::move(spec);
  return pod;
}

Json pod_metadata_repair(const Json& pod, const Json& sandbox) {
  const Texts labels = template_labels(sandbox);
  const Changes label_patch = label_changes(pod, sandbox, labels);
  const Changes annotation_patch =
      annotation_changes(pod, sandbox, labels, template_annotations(sandbox));
  if (label_patch.empty() && annotation_patch.empty()) return nullptr;
  JsonObject metadata;
  if (!label_patch.empty()) metadata["labels"] = to_patch(label_patch);
  if (!annotation_patch.empty()) metadata["annotations"] = to_patch(annotation_patch);
  return JsonObject{{"metadata", std::move(metadata)}};
}

bool is_urgent(const Json& repair) {
  const JsonObject* annotations = model::object_at(repair, {"metadata", "annotations"});
  return annotations != nullptr && std::ranges::any_of(kCommands, [&](std::string_view key) {
           return annotations->contains(key);
         });
}

void add_adoption(Json& patch, const Json& pod, const Json& sandbox) {
  model::JsonArray owners;
  if (const model::JsonArray* there = model::array_at(pod, {"metadata", "ownerReferences"}))
    owners = *there;
  owners.push_back(model::controller_reference(sandbox));
  JsonObject& metadata = model::make_object_at(patch, {"metadata"});
  metadata["ownerReferences"] = std::move(owners);
  metadata["resourceVersion"] = model::resource_version_of(pod);
}

bool concerns_sandbox(const Json& before, const Json& now) {
  return !is_same_at(before, now, {"status", "phase"}) ||
         !is_same_at(before, now, {"status", "conditions"}) ||
         !is_same_at(before, now, {"status", "podIPs"}) ||
         !is_same_at(before, now, {"spec", "nodeName"}) ||
         !is_same_at(before, now, {"metadata", "deletionTimestamp"}) ||
         !is_same_at(before, now, {"metadata", "labels"}) ||
         !is_same_at(before, now, {"metadata", "annotations"}) ||
         !is_same_at(before, now, {"metadata", "ownerReferences"});
}

}  // namespace hearth::controllers
