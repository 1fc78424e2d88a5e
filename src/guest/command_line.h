// From what a client asks for to what the spawner needs to know, and back to words when it failed.
#pragma once

#include <string>
#include <vector>

#include "guest/protocol.h"
#include "guest/spawner.h"

namespace hearth::guest {

// Fills in user, home, working directory and environment. Throws Error(invalid).
SpawnPlan plan_command(const ExecRequest& request, const std::vector<std::string>& environment,
                       const std::string& default_user);

// What went wrong, in words for the client.
Failed describe_failure(const SpawnPlan& plan, const SpawnResult& result);

}  // namespace hearth::guest
