#include "controllers/claim_adoption.h"

#include <string>

#include "controllers/blueprint.h"
#include "controllers/claim_metadata.h"
#include "controllers/claim_outfit.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "pool/allocator.h"

namespace hearth::controllers {
namespace {

using model::JsonArray;

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

std::string template_hash(const Json& sandbox, const Json* sandbox_template) {
  return sandbox_template ? model::name_hash(model::name_of(*sandbox_template))
                          : std::string(model::label_of(sandbox, model::kTemplateRefHashLabel));
}

JsonObject pod_template_changes(const Json& claim, const Json& sandbox,
                                const Json* sandbox_template) {
  return metadata_changes(model::find(sandbox, {"spec", "podTemplate", "metadata"}),
                          claimed_pod_metadata(claim, sandbox, sandbox_template));
}

// Whether its pod was made as one for E2B.
bool is_dressed(const Json& sandbox) {
  return model::find(sandbox, {"spec", "podTemplate", "metadata", "annotations",
                               model::kDressAnnotation}) != nullptr;
}

// Whether the claim, as another controller wrote it, says that this is a warm one.
bool is_named_by(const Json& claim, const Json& sandbox) {
  const std::string_view name = model::name_of(sandbox);
  return name != model::name_of(claim) ||
         name == model::annotation_of(claim, model::kSandboxNameAnnotation) ||
         name == model::label_of(claim, model::kSandboxNameAnnotation);
}

void set_if_different(JsonObject& labels, const Json& sandbox, std::string_view key,
                      std::string_view value) {
  if (model::label_of(sandbox, key) != value) labels[key] = text_or_null(value);
}

}  // namespace

Json adoption_patch(const Json& claim, const Json& sandbox, const Json* sandbox_template) {
  JsonObject labels{{model::kPoolLabel, nullptr},
                    {model::kPodTemplateHashLabel, nullptr},
                    {model::kTemplateHashLabel, nullptr},
                    {model::kLaunchTypeLabel, "warm"},
                    {model::kClaimUidLabel, model::uid_of(claim)},
                    {model::kCreatedByLabel, text_or_null(creator_of(claim))},
                    {model::kTemplateRefHashLabel, template_hash(sandbox, sandbox_template)}};
  // A pool's sandbox has a pod of its own name; whatever the annotation said before.
  JsonObject annotations{{model::kPodNameAnnotation, model::name_of(sandbox)}};
  // It may be older than what its template says by now.
  if (sandbox_template)
    for (const auto& [key, value] : access_changes(sandbox, *sandbox_template))
      annotations[key] = value;
  if (const auto trace = model::annotation_of(claim, model::kTraceContextAnnotation);
      !trace.empty())
    annotations[model::kTraceContextAnnotation] = trace;
  if (is_dressed(sandbox))
    annotations[kOutfitAnnotation] = kUndress;
  else if (has_outfit(claim))
    annotations[kOutfitAnnotation] = "required";
  JsonObject patch{{"metadata",
                    {{"labels", std::move(labels)},
                     {"annotations", std::move(annotations)},
                     {"ownerReferences", JsonArray{model::controller_reference(claim)}}}}};
  if (auto changes = pod_template_changes(claim, sandbox, sandbox_template); !changes.empty())
    patch["spec"] = JsonObject{{"podTemplate", JsonObject{{"metadata", std::move(changes)}}}};
  return patch;
}

Json upkeep_patch(const Json& claim, const Json& sandbox, const Json* sandbox_template) {
  JsonObject labels;
  set_if_different(labels, sandbox, model::kClaimUidLabel, model::uid_of(claim));
  set_if_different(labels, sandbox, model::kCreatedByLabel, creator_of(claim));
  set_if_different(labels, sandbox, model::kTemplateRefHashLabel,
                   template_hash(sandbox, sandbox_template));
  if (model::label_of(sandbox, model::kLaunchTypeLabel).empty())
    labels[model::kLaunchTypeLabel] = is_named_by(claim, sandbox) ? "warm" : "cold";
  JsonObject patch;
  if (!labels.empty()) patch["metadata"] = JsonObject{{"labels", std::move(labels)}};
  if (auto changes = pod_template_changes(claim, sandbox, sandbox_template); !changes.empty())
    patch["spec"] = JsonObject{{"podTemplate", JsonObject{{"metadata", std::move(changes)}}}};
  if (patch.empty()) return nullptr;
  return patch;
}

bool is_offered_to(const Json& claim, const Json& sandbox) {
  if (model::namespace_of(claim) != model::namespace_of(sandbox)) return false;
  if (!pool::is_adoptable(sandbox)) return false;
  const std::string_view wanted = model::text_at(claim, {"spec", "warmPoolRef", "name"});
  return wanted.empty() || model::controller_of(sandbox)->name == wanted;
}

}  // namespace hearth::controllers
