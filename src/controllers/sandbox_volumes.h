// The volumes that belong to a Sandbox: one PersistentVolumeClaim for each volumeClaimTemplate,
// named TEMPLATE-SANDBOX. Pure: what to make and what to do with one that is there.
#pragma once

#include <string>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;
using model::JsonArray;

std::string volume_claim_name(const Json& claim_template, const Json& sandbox);

// Whether the Sandbox's claims outlive it: persistentVolumeClaimRetentionPolicy.whenDeleted is
// Retain. They have no owner then; the tracking label lets a Sandbox of the same name use them.
bool keeps_volumes(const Json& sandbox);

Json new_volume_claim(const Json& claim_template, const Json& sandbox);

// The merge patch that makes a claim's owner what the Sandbox wants; null where it is so already.
// With the claim's resourceVersion: whoever was judged is who gets an owner. Throws Error(conflict)
// for a claim that the Sandbox must not use.
Json volume_claim_repair(const Json& claim, const Json& sandbox);

// The pod's volumes: those of the template, without those that a claim replaces, and the claims'.
JsonArray volumes_of_pod(const Json& sandbox);

}  // namespace hearth::controllers
