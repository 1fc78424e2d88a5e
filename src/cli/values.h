// The small notations of a command line: sizes, processors, times, NAME=value, quoted words.
//
// Every parse_x throws Error(invalid) that names the flag and says what would have been right.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hearth::cli {

// "512m", "1.5g", "64Ki", "1GiB", "1048576": units are powers of 1024 whatever their spelling, as
// Docker takes them. "0" is no limit.
std::uint64_t parse_size(std::string_view flag, std::string_view text);

// "1.5" processors as 1500 thousandths; at most three digits after the point count. "0" is no
// limit.
std::uint32_t parse_cpus(std::string_view flag, std::string_view text);

// A whole number within [0, most].
std::uint32_t parse_count(std::string_view flag, std::string_view text, std::uint32_t most);

// "30s", "2m30s", "500ms"; a bare number is seconds. More than zero.
Duration parse_timeout(std::string_view flag, std::string_view text);

// "10m" is so long ago; or a date-time as in RFC 3339.
Time parse_moment(std::string_view flag, std::string_view text);

// Throws Error(invalid) unless `entry` is NAME=value.
void check_environment(std::string_view flag, std::string_view entry);

// "512 MiB", "1.5 GiB", "17 B".
std::string format_size(std::uint64_t bytes);

// One word for a POSIX shell: as it is where that is safe, in single quotes otherwise.
std::string shell_quote(std::string_view text);

// The candidate that `text` was most likely meant to be; empty when it is like none of them.
std::string_view find_nearest(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace hearth::cli
