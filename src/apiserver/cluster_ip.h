// Addresses of Services, of which the server hands out those that nobody has.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::apiserver {

using model::Json;

inline constexpr std::string_view kClusterIpRange = "10.96.0.0/12";
// The first address belongs to the API server itself: Service default/kubernetes.
inline constexpr std::string_view kApiServerClusterIp = "10.96.0.1";

// Whether a Service waits for an address: it wants one and named none.
bool needs_cluster_ip(const Json& service);
// Whether an address that a client chose is in the range and may be handed out.
bool is_cluster_ip(std::string_view address);
// A free address; nothing if there is none left. The search begins at `anywhere` (a random number),
// so that an address is not given to another right after it was freed.
std::optional<std::string> pick_cluster_ip(const std::set<std::string, std::less<>>& used,
                                           std::uint32_t anywhere);
// Whether a client chose the address.
bool is_cluster_ip_chosen(const Json& service);
// Throws 422 for one that a client chose, but cannot have.
void check_chosen_cluster_ip(const Json& service, const std::set<std::string, std::less<>>& used);
void set_cluster_ip(Json& service, std::string_view address);

}  // namespace hearth::apiserver
