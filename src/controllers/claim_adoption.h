// The writes by which a Sandbox becomes a claim's, and stays as the claim wants it.
#pragma once

#include <string_view>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;

// On an adopted sandbox whose pod has yet to get what the claim brings along (claim_outfit.h), at
// first and whenever there is another pod.
inline constexpr std::string_view kOutfitAnnotation = "hearth.dev/outfit";
// Its value where the sandbox was dressed for E2B (model/front_door.h): the token goes.
inline constexpr std::string_view kUndress = "undress";

// Everything that makes a pool's sandbox the claim's, as one merge patch: owner, labels,
// annotations and the metadata of its pod. `sandbox_template` may be null.
Json adoption_patch(const Json& claim, const Json& sandbox, const Json* sandbox_template);

// What has to change on a sandbox that is the claim's already; null for nothing. The template's
// metadata and the claim's reach it; the template's pod does not.
Json upkeep_patch(const Json& claim, const Json& sandbox, const Json* sandbox_template);

// Whether this pool member may be adopted by the claim: not deleting, same namespace, of a pool.
bool is_offered_to(const Json& claim, const Json& sandbox);

}  // namespace hearth::controllers
