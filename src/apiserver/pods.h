// Pods beyond what all kinds have: how good their service is, and how they come to a node.
#pragma once

#include <string_view>

#include "model/json.h"

namespace hearth::apiserver {

using model::Json;

// "Guaranteed", "Burstable" or "BestEffort", from what the containers ask for.
std::string_view quality_of_service(const Json& pod);

// What POST pods/NAME/binding does to the pod. Throws StatusError: 422 for a binding that names no
// node, 409 for a pod that is placed already or going away. `now` is RFC 3339.
void bind_pod(Json& pod, const Json& binding, std::string_view now);

}  // namespace hearth::apiserver
