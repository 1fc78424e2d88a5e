// The Sandbox that a claim gets when no warm one is to be had, or none would do.
#pragma once

#include "model/json.h"

namespace hearth::controllers {

using model::Json;
using model::JsonArray;

// Named like the claim and controlled by it. Throws ClaimProblem where the template forbids what
// the claim brings along, Error where it makes no sense.
Json cold_sandbox(const Json& claim, const Json& sandbox_template);

// Whether the template lets the claim bring along what it does; throws as above.
void check_wishes(const Json& claim, const Json& sandbox_template);

// The volumes of a template and a claim together, under the template's policy.
JsonArray merged_volume_claims(const Json& claim, const Json& sandbox_template);

// The container of a pod spec that a name of the claim means (empty: the first that is no init
// container); null for none.
Json* find_container(Json& pod_spec, std::string_view name);

}  // namespace hearth::controllers
