// Ages as kubectl prints them: "66s", "14m", "2d3h", "4y12d".
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace hearth::model {

// Two or three digits that matter: seconds up to two minutes, days up to two years.
std::string age_text(Duration age);
// The age of a time in RFC 3339; "<unknown>" for none, "<invalid>" for other text.
std::string age_since(std::string_view time, Time now);

}  // namespace hearth::model
