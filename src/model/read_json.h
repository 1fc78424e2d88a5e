// JSON that a server or our own store wrote: read without a look for members that come twice, which
// takes longer than all the rest (model/json.h has the parser for what people send).
#pragma once

#include <string_view>

#include "model/json.h"

namespace hearth::model {

// One JSON text; of members that come twice the last counts. Throws Error(invalid) with the place.
Json read_json(std::string_view text);

}  // namespace hearth::model
