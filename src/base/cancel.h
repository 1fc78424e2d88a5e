// Waiting that can be called off: std::stop_token with a clock.
#pragma once

#include <stop_token>

#include "base/clock.h"

namespace hearth {

// Sleeps for `time`, or until a stop is requested. True when the whole time passed, false when
// called off.
bool sleep_for(const std::stop_token& stop, Duration time);

}  // namespace hearth
