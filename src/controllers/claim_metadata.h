// Labels and annotations that a claim gives its sandbox's pod: which it may ask for, and what comes
// of them together with the template's.
#pragma once

#include <string>
#include <vector>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;
using model::JsonObject;

// spec.additionalPodMetadata. Labels must be of one of the domains, annotations of none of
// Kubernetes' or ours. Throws ClaimProblem(InvalidMetadata).
void check_additional_metadata(const Json& claim, const std::vector<std::string>& label_domains);

// What spec.podTemplate.metadata of the claim's sandbox has to be. Without a template (null) it is
// what the sandbox has, less what only pool members have. Throws Error(conflict) where the claim
// wants another value than the template.
Json claimed_pod_metadata(const Json& claim, const Json& sandbox, const Json* sandbox_template);

// The claim's word about who made it; empty for none.
std::string_view creator_of(const Json& claim);

// A merge patch from one map to another; empty where they are the same. `from` may be null.
JsonObject map_changes(const JsonObject* from, const JsonObject& to);
// The same for the "labels" and "annotations" of two metadata objects.
JsonObject metadata_changes(const Json* from, const Json& to);

}  // namespace hearth::controllers
