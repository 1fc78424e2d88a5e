// Which surface is served by what.
#pragma once

#include <vector>

#include "guest/surfaces.h"

namespace hearth {

// See guest::OpenDoors.
void open_doors(std::vector<guest::Door> doors, guest::Core& core);

}  // namespace hearth
