// What status.containerStatuses[].containerID says of a container that runs in a sandbox.
#pragma once

#include <string_view>

namespace hearth::model {

// The sandbox's id follows.
inline constexpr std::string_view kContainerScheme = "hearth://";

// The id of the sandbox; empty for a container that is none of ours.
constexpr std::string_view sandbox_of_container(std::string_view container_id) {
  return container_id.starts_with(kContainerScheme) ? container_id.substr(kContainerScheme.size())
                                                    : std::string_view();
}

}  // namespace hearth::model
