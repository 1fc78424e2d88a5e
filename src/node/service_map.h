// Where Services lead on this machine. Pure: from Services and pods to what the runtime, the API
// (EndpointSlices) and whoever answers names need.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/watch_cache.h"
#include "model/json.h"
#include "network/services.h"
#include "node/pod_index.h"

namespace hearth::node {

// Ready, or wanted in spite of it (publishNotReadyAddresses), and not on its way out.
bool is_endpoint(const Json& service, const Json& pod);

// What ClusterIPs lead to. Those without a selector are left alone. What does not fit
// (network::kMostServices, kMostTargets) is left out.
std::vector<network::Service> service_rules(std::span<const client::Object> services,
                                            const PodIndex& pods);

// Names below a domain and their addresses.
//   SVC.NS.svc          the ClusterIP, or the addresses of all endpoints of a headless Service
//   HOST.SVC.NS.svc     one endpoint, by spec.hostname of a pod whose spec.subdomain is SVC
using Names = std::map<std::string, std::vector<std::uint32_t>, std::less<>>;
Names service_names(std::span<const client::Object> services, const PodIndex& pods,
                    std::string_view domain);

// The EndpointSlice of a Service with a selector, as the API keeps it: controlled by the Service.
Json endpoint_slice(const Json& service, const PodIndex& pods);

}  // namespace hearth::node
