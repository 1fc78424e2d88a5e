// A pod's /etc/resolv.conf: dnsPolicy and dnsConfig. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::node {

// `name_server` is who answers names of the cluster, and all others too.
std::string resolv_conf_of(const model::Json& pod, std::string_view name_server,
                           std::string_view domain);

}  // namespace hearth::node
