// /etc/hosts of a pod, as a kubelet writes it.
#pragma once

#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::node {

// With the marks of runtime/spec.h for the pod's own address and host name. `domain` is the
// cluster's.
std::string hosts_file_of(const model::Json& pod, std::string_view domain);

}  // namespace hearth::node
