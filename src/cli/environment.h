// The shell lines that point clients at an engine.
#pragma once

#include <string>

#include "cli/endpoints.h"

namespace hearth::cli {

enum class Secrets { left_out, shown };

// `export NAME=value` lines, quoted for a POSIX shell, for what exists. The API key is a secret: it
// is for shells to evaluate, not for terminals and logs.
std::string environment_lines(const std::string& state_dir, const Endpoints& endpoints,
                              Secrets secrets = Secrets::left_out);

}  // namespace hearth::cli
