// Time as text: RFC 3339 for machines, "3m5s" for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hearth {

// "2026-01-02T03:04:05Z", or with as many fraction digits as asked for (0, 3, 6 or 9).
std::string format_rfc3339(Time time, int fraction_digits = 0);

// Any RFC 3339 date-time: offsets and up to nine fraction digits. Nothing for text that is none,
// for days that do not exist, and for years that Time cannot hold.
std::optional<Time> parse_rfc3339(std::string_view text);

// The two largest units that are not zero, as kubectl shows ages: "45s", "3m5s", "2h", "5d3h".
std::string format_age(Duration age);

// "1.5s", "300ms", "2h45m": Go's notation, which Kubernetes and E2B users write. Nothing for text
// that is none, for negative times, and for more than 290 years.
std::optional<Duration> parse_duration(std::string_view text);

}  // namespace hearth
