// The roles and bindings that every server starts with.
#pragma once

#include <vector>

#include "model/json.h"

namespace hearth::access {

// ClusterRole and ClusterRoleBinding objects, without uid and the like: to be created if they are
// not there. The names are those that people and manifests know.
std::vector<model::Json> default_roles();

}  // namespace hearth::access
