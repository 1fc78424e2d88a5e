// Late configuration: a sandbox that was made ahead of time becomes somebody's.
#pragma once

#include "guest/configuration.h"
#include "guest/core.h"

namespace hearth::guest {

// All of it or nothing: settings change when every file is in place. Throws Error.
void configure(const Configuration& configuration, Core& core);

}  // namespace hearth::guest
