// A sandbox, as JSON.
#pragma once

#include <string>

#include "runtime/runtime.h"

namespace hearth::cli {

std::string to_json(const runtime::Sandbox& sandbox);

}  // namespace hearth::cli
