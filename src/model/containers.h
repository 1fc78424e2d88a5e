// The containers of a pod, as its spec and its status tell of them.
#pragma once

#include <string_view>

#include "model/json.h"

namespace hearth::model {

// The one that a pod is for: whom commands, surfaces and tokens mean when they name none. Empty
// where there is none. A view into the pod.
std::string_view first_container_of(const Json& pod);

// What status.containerStatuses says of one; null where it says nothing.
const Json* find_container_status(const Json& pod, std::string_view name);

}  // namespace hearth::model
