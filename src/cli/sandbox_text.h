// A sandbox and its parts, as JSON.
#pragma once

#include <string>

#include "runtime/runtime.h"

namespace hearth::cli {

std::string to_json(const runtime::Sandbox& sandbox);
std::string to_json(const runtime::Limits& limits);
std::string to_json(const runtime::Usage& usage);

}  // namespace hearth::cli
