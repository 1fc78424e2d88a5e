// The headless Service that gives a Sandbox its name in DNS. Pure.
//
// spec.service has three states: true makes and keeps one, false deletes the Sandbox's own, and
// unset keeps the one that is there without making any.
#pragma once

#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;
using model::JsonArray;

enum class ServiceWish { wanted, unwanted, unset };
ServiceWish service_wish(const Json& sandbox);

// From the ports of the pod template's containers, those of sidecars included: each port and
// protocol once, sorted, every one with a name of its own.
JsonArray service_ports(const Json& sandbox);

Json new_service(const Json& sandbox);

// The merge patch for an owned Service whose label, selector or (if the Service is wanted) ports
// differ; null for none. Of ports only name, protocol, port and targetPort count.
Json service_repair(const Json& service, const Json& sandbox);

// An unowned Service as it is when it belongs to the Sandbox. Throws Error(conflict) for one that
// may not be adopted, and for one with a cluster IP, which can never become headless.
Json adopted_service(const Json& service, const Json& sandbox);

// "NAME.NS.svc.DOMAIN"
std::string service_fqdn(const Json& service, std::string_view cluster_domain);

}  // namespace hearth::controllers
