#include "controllers/sandbox_volumes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "controllers/ownership.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {

using model::JsonObject;

namespace {

constexpr std::string_view kWord = "PVC";

// The claim's owners with or without this Sandbox.
JsonArray owners_of(const Json& claim, const Json& sandbox, bool is_owner) {
  JsonArray owners;
  if (const JsonArray* there = model::array_at(claim, {"metadata", "ownerReferences"}))
    for (const Json& each : *there)
      if (model::text_at(each, {"uid"}) != model::uid_of(sandbox)) owners.push_back(each);
  if (is_owner) owners.push_back(model::controller_reference(sandbox));
  return owners;
}

}  // namespace

std::string volume_claim_name(const Json& claim_template, const Json& sandbox) {
  std::string name(model::text_at(claim_template, {"metadata", "name"}));
  name += '-';
  name += model::name_of(sandbox);
  return name;
}

bool keeps_volumes(const Json& sandbox) {
  return model::text_at(sandbox, {"spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"}) ==
         "Retain";
}

Json new_volume_claim(const Json& claim_template, const Json& sandbox) {
  JsonObject metadata{{"name", volume_claim_name(claim_template, sandbox)},
                      {"namespace", model::namespace_of(sandbox)}};
  JsonObject labels;
  if (const JsonObject* given = model::object_at(claim_template, {"metadata", "labels"}))
    labels = *given;
  labels[model::kNameHashLabel] = model::name_hash(model::name_of(sandbox));
  metadata["labels"] = std::move(labels);
  if (const JsonObject* given = model::object_at(claim_template, {"metadata", "annotations"}))
    metadata["annotations"] = *given;
  if (!keeps_volumes(sandbox))
    metadata["ownerReferences"] = JsonArray{model::controller_reference(sandbox)};

  JsonObject claim{{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}};
  claim["metadata"] = std::move(metadata);
  if (const JsonObject* spec = model::object_at(claim_template, {"spec"})) claim["spec"] = *spec;
  return claim;
}

Json volume_claim_repair(const Json& claim, const Json& sandbox) {
  const Ownership ownership = ownership_of(claim, sandbox);
  if (ownership == Ownership::foreign) throw_foreign(claim, sandbox, kWord);
  if (ownership == Ownership::unowned) require_adoptable(claim, sandbox, kWord);
  const bool is_kept = keeps_volumes(sandbox);
  if ((ownership == Ownership::owned) != is_kept) return nullptr;

  JsonObject metadata{{"resourceVersion", model::resource_version_of(claim)}};
  metadata["ownerReferences"] = owners_of(claim, sandbox, !is_kept);
  // Without an owner, the label is what the next Sandbox of this name knows it by.
  if (is_kept)
    metadata["labels"] =
        JsonObject{{model::kNameHashLabel, model::name_hash(model::name_of(sandbox))}};
  return JsonObject{{"metadata", std::move(metadata)}};
}

JsonArray volumes_of_pod(const Json& sandbox) {
  JsonArray claimed;
  std::set<std::string_view> names;
  if (const JsonArray* templates = model::array_at(sandbox, {"spec", "volumeClaimTemplates"})) {
    for (const Json& each : *templates) {
      const std::string_view name = model::text_at(each, {"metadata", "name"});
      names.insert(name);
      claimed.push_back(JsonObject{
          {"name", name},
          {"persistentVolumeClaim", JsonObject{{"claimName", volume_claim_name(each, sandbox)}}}});
    }
  }
  JsonArray volumes;
  if (const JsonArray* given = model::array_at(sandbox, {"spec", "podTemplate", "spec", "volumes"}))
    for (const Json& each : *given)
      if (!names.contains(model::text_at(each, {"name"}))) volumes.push_back(each);
  std::ranges::move(claimed, std::back_inserter(volumes));
  return volumes;
}

}  // namespace hearth::controllers
