// What PID 1 does to itself before it serves, so that everything it will ever start inherits it.
#pragma once

#include "guest/boot.h"

namespace hearth::guest {

// Names the host, brings up the loopback link, hides this process from its neighbours, and gives up
// privileges for good: capabilities, no_new_privs, seccomp filter. Throws Error; a guest that could
// not do all of it must not serve.
void confine(const BootConfig& config);

}  // namespace hearth::guest
