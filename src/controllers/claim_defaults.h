// What a pool says for claims that do not say it themselves: spec.claimDefaults of a
// SandboxWarmPool.
#pragma once

#include <optional>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;

// The lifecycle that counts for a claim, with the members of its own spec.lifecycle: that one if it
// has any, otherwise its pool's, whose shutdownAfterSeconds becomes a shutdownTime. Nothing: it
// lives until somebody deletes it.
std::optional<Json> lifecycle_of(const Json& claim, const Json& pool);

}  // namespace hearth::controllers
