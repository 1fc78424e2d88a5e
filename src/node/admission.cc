#include "node/admission.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace hearth::node {
namespace {

using model::Json;
using model::text_at;

// What a kubelet takes without being told to: of namespaces that are the pod's own, and harmless to
// its neighbours.
constexpr std::array<std::string_view, 12> kSafe = {
    "kernel.shm_rmid_forced",           "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",        "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",     "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",      "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",          "net.ipv4.tcp_wmem",
};

// "net/ipv4/x" is "net.ipv4.x": sysctl(8) takes both.
std::string sysctl_name(std::string_view written) {
  std::string name(written);
  const std::size_t separator = name.find_first_of("./");
  if (separator == std::string::npos || name[separator] == '.') return name;
  for (char& c : name)
    if (c == '/' || c == '.') c = c == '/' ? '.' : '/';
  return name;
}

const model::JsonArray& sysctls_in(const Json& pod) {
  static const model::JsonArray kNone;
  const auto* found = model::array_at(pod, {"spec", "securityContext", "sysctls"});
  return found ? *found : kNone;
}

bool asks_for_own_profile(const Json& holder) {
  return text_at(holder, {"securityContext", "appArmorProfile", "type"}) == "Localhost";
}

bool needs_app_armor(const Json& pod) {
  const Json* spec = model::find(pod, {"spec"});
  if (spec == nullptr) return false;
  if (asks_for_own_profile(*spec)) return true;
  for (const std::string_view list : {"initContainers", "containers"})
    if (const auto* containers = model::array_at(*spec, {list});
        containers && std::ranges::any_of(*containers, asks_for_own_profile))
      return true;
  return false;
}

}  // namespace

std::optional<Rejection> rejection_of(const Json& pod) {
  for (const Json& sysctl : sysctls_in(pod)) {
    const std::string name = sysctl_name(text_at(sysctl, {"name"}));
    if (std::ranges::find(kSafe, name) == kSafe.end())
      return Rejection{.reason = "SysctlForbidden",
                       .message = fmt::format("forbidden sysctl: \"{}\" not allowlisted", name)};
  }
  if (needs_app_armor(pod))
    return Rejection{.reason = "AppArmor",
                     .message = "Cannot enforce AppArmor: AppArmor is not enabled on the host"};
  return std::nullopt;
}

std::vector<std::string> sysctls_of(const Json& pod) {
  std::vector<std::string> sysctls;
  for (const Json& sysctl : sysctls_in(pod))
    sysctls.push_back(
        fmt::format("{}={}", sysctl_name(text_at(sysctl, {"name"})), text_at(sysctl, {"value"})));
  return sysctls;
}

}  // namespace hearth::node
