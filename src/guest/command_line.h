// From what a client asks for to what the spawner needs to know, and back to words when it failed.
#pragma once

#include <string>
#include <vector>

#include "guest/awake.h"
#include "guest/process_rights.h"
#include "guest/protocol.h"
#include "guest/spawner.h"

namespace hearth::guest {

// What holds for every command unless its request says otherwise.
struct CommandDefaults {
  const std::vector<std::string>& environment;
  const std::string& user;
  const std::string& directory;  // empty: the user's home
  const std::vector<linux::ResourceLimit>& limits;
  const ProcessRights& rights;
};

// Fills in user, home, working directory and environment. Throws Error(invalid).
SpawnPlan plan_command(const ExecRequest& request, const CommandDefaults& defaults);

// From now on.
AwakeDeadline deadline_of(const ExecRequest& request);

// What went wrong, in words for the client.
Failed describe_failure(const SpawnPlan& plan, const SpawnResult& result);

}  // namespace hearth::guest
