// Dates as HTTP writes them (RFC 9110 section 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hearth::http {

// To the second, rounded down.
std::string format_date(Time time);

// Nothing for text that is no such date. The two spellings that were obsolete in 1999 are none.
std::optional<Time> parse_date(std::string_view text);

}  // namespace hearth::http
