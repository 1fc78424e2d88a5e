// Which surface is served by what.
#pragma once

#include <vector>

#include "guest/surfaces.h"

namespace hearth {

// Makes the tables that are made with the first request (the names of header fields). What a
// nursery has done, its copies need not do in the time of somebody who waits.
void prepare_doors();

// See guest::OpenDoors.
void open_doors(std::vector<guest::Door> doors, guest::Core& core);

}  // namespace hearth
