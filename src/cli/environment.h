// The shell lines that point clients at an engine.
#pragma once

#include <string>

#include "cli/endpoints.h"

namespace hearth::cli {

// `export NAME=value` lines, quoted for a POSIX shell, for what exists.
std::string environment_lines(const std::string& state_dir, const Endpoints& endpoints);

}  // namespace hearth::cli
