// A newcomer's first minute: one sandbox, one program in it, how long it took, what to try next.
#pragma once

#include <string>

#include "cli/endpoints.h"

namespace hearth::cli {

// Prints to stdout. Throws Error.
void run_demo(const std::string& state_dir, const Endpoints& endpoints);

}  // namespace hearth::cli
