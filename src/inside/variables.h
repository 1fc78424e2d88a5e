// One of the variables that a sandbox was given, for surfaces that are set up by them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::inside {

// `environment` is NAME=value; the last of a name counts. `otherwise` for one that is missing or
// blank.
std::string variable_or(const std::vector<std::string>& environment, std::string_view name,
                        std::string_view otherwise);

}  // namespace hearth::inside
