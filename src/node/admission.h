// Whether this machine takes a pod at all, in a kubelet's words. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/json.h"

namespace hearth::node {

struct Rejection {
  std::string reason;  // "SysctlForbidden"
  std::string message;
};

// Why the pod fails before anything of it runs; nothing: it does not.
std::optional<Rejection> rejection_of(const model::Json& pod);

// What spec.securityContext.sysctls asks for, NAME=value.
std::vector<std::string> sysctls_of(const model::Json& pod);

}  // namespace hearth::node
