// The guest in a container that somebody else made, a kubelet for one: no nursery, no namespaces or
// limits of ours, perhaps not even root.
//
//   hearth-guest install FOLDER                       puts a copy of itself there, for other images
//   hearth-guest serve [--surfaces=LIST] [--taken-ports=LIST] [-- COMMAND...]
//
// It serves surfaces, starts the command with the container's own streams, passes signals on to it,
// reaps what it leaves behind, and ends as it ends. Without a command the surfaces are the service.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guest/surfaces.h"

namespace hearth::guest {

// Surfaces ask strangers for what this variable holds. Commands do not see it.
inline constexpr std::string_view kTokenVariable = "HEARTH_GUEST_TOKEN";

struct ContainedOptions {
  std::vector<SurfacePort> surfaces;
  bool chosen = false;               // somebody named these; others may be left off
  std::vector<std::string> command;  // empty: none
};

// What comes after "serve". Without --surfaces: envd, code and runtime-api, and sandboxd where
// there is no command, but none on a port of --taken-ports. Throws Error(invalid).
ContainedOptions parse_contained(std::span<const std::string_view> words);

// Returns the exit code of the process: the command's, 128 and the signal that ended it, 127 or 126
// where it is not there or cannot be run. Throws Error where nothing could be served.
int serve_contained(ContainedOptions options, OpenDoors open_doors);

// Copies the program that runs into a folder, which is made if it is not there, for everybody to
// execute. Whoever looks finds all of it or nothing. Throws Error.
void install_self(const std::string& folder);

}  // namespace hearth::guest
