#include "node/service_map.h"

#include <algorithm>

#include "base/error.h"
#include "model/meta.h"
#include "node/network_policy.h"

namespace hearth::node {
namespace {

using model::JsonArray;
using model::JsonObject;
using model::text_at;

constexpr std::size_t kMostEndpoints = 1000;  // of a slice
constexpr std::string_view kManager = "hearth-node";

// 0 for none: headless, or not given one yet.
std::uint32_t cluster_ip(const Json& service) {
  const std::string_view text = text_at(service, {"spec", "clusterIP"});
  if (text.empty() || text == "None") return 0;
  try {
    return network::parse_cidr(text).address;
  } catch (const Error&) {
    return 0;  // IPv6
  }
}

bool is_led_by_us(const Json& service) {
  const model::JsonObject* selector = model::object_at(service, {"spec", "selector"});
  return selector && !selector->empty() && text_at(service, {"spec", "type"}) != "ExternalName";
}

// By namespace: Services are many, and so are pods.
using PodMap = std::map<std::string, std::vector<client::Object>, std::less<>>;

PodMap by_namespace(std::span<const client::Object> pods) {
  PodMap map;
  for (const client::Object& pod : pods)
    if (address_of_pod(*pod) != 0) map[std::string(model::namespace_of(*pod))].push_back(pod);
  return map;
}

std::vector<client::Object> endpoints_of(const Json& service, const PodMap& pods) {
  std::vector<client::Object> all;
  const auto found = pods.find(model::namespace_of(service));
  if (found == pods.end() || !is_led_by_us(service)) return all;
  for (const client::Object& pod : found->second)
    if (selects(service, *pod) && is_endpoint(service, *pod)) all.push_back(pod);
  return all;
}

network::Protocol protocol_of(const Json& port) {
  const std::string_view text = text_at(port, {"protocol"});
  if (text.empty() || text == "TCP") return network::Protocol::tcp;
  return text == "UDP" ? network::Protocol::udp : network::Protocol::any;
}

JsonObject reference_to(const Json& pod) {
  return {{"kind", "Pod"},
          {"namespace", model::namespace_of(pod)},
          {"name", model::name_of(pod)},
          {"uid", model::uid_of(pod)}};
}

JsonObject slice_endpoint(const Json& service, const Json& pod) {
  const bool is_serving = model::is_condition_true(pod, "Ready");
  const bool is_ending = model::is_deleting(pod);
  JsonObject endpoint{{"addresses", JsonArray{Json(text_at(pod, {"status", "podIP"}))}},
                      {"conditions", JsonObject{{"ready", is_endpoint(service, pod)},
                                                {"serving", is_serving},
                                                {"terminating", is_ending}}},
                      {"nodeName", text_at(pod, {"spec", "nodeName"})},
                      {"targetRef", reference_to(pod)}};
  const std::string_view hostname = text_at(pod, {"spec", "hostname"});
  if (!hostname.empty() && text_at(pod, {"spec", "subdomain"}) == model::name_of(service))
    endpoint["hostname"] = hostname;
  return endpoint;
}

// Named ports that differ between pods would need a slice for each: the first pod's count.
JsonArray slice_ports(const Json& service, const Json* pod) {
  JsonArray all;
  const JsonArray* ports = model::array_at(service, {"spec", "ports"});
  if (!ports || !pod) return all;
  for (const Json& port : *ports) {
    const std::uint16_t number = target_port(port, *pod);
    if (number == 0) continue;
    const std::string_view protocol = text_at(port, {"protocol"});
    all.push_back(JsonObject{{"name", text_at(port, {"name"})},
                             {"port", number},
                             {"protocol", protocol.empty() ? "TCP" : protocol}});
  }
  return all;
}

}  // namespace

bool is_endpoint(const Json& service, const Json& pod) {
  if (address_of_pod(pod) == 0 || model::is_deleting(pod)) return false;
  return model::is_condition_true(pod, "Ready") ||
         model::is_true_at(service, {"spec", "publishNotReadyAddresses"});
}

std::vector<network::Service> service_rules(std::span<const client::Object> services,
                                            std::span<const client::Object> pods) {
  const PodMap around = by_namespace(pods);
  std::vector<network::Service> rules;
  for (const client::Object& service : services) {
    const std::uint32_t address = cluster_ip(*service);
    const JsonArray* ports = model::array_at(*service, {"spec", "ports"});
    if (!network::kServiceRange.contains(address) || !is_led_by_us(*service) || !ports) continue;
    const std::vector<client::Object> endpoints = endpoints_of(*service, around);
    for (const Json& port : *ports) {
      network::Service rule{.address = address, .protocol = protocol_of(port)};
      const std::int64_t number = model::number_at(port, {"port"}).value_or(0);
      if (rule.protocol == network::Protocol::any || number <= 0 || number > 65535) continue;
      rule.port = static_cast<std::uint16_t>(number);
      for (const client::Object& pod : endpoints) {
        const std::uint16_t target = target_port(port, *pod);
        if (target != 0 && rule.targets.size() < network::kMostTargets)
          rule.targets.push_back({.address = address_of_pod(*pod), .port = target});
      }
      if (rules.size() < network::kMostServices) rules.push_back(std::move(rule));
    }
  }
  return rules;
}

Names service_names(std::span<const client::Object> services, std::span<const client::Object> pods,
                    std::string_view domain) {
  const PodMap around = by_namespace(pods);
  Names names;
  for (const client::Object& service : services) {
    const std::string base = fmt::format("{}.{}.svc.{}", model::name_of(*service),
                                         model::namespace_of(*service), domain);
    std::vector<std::uint32_t>& addresses = names[base];
    if (const std::uint32_t address = cluster_ip(*service)) addresses.push_back(address);
    const bool is_headless = text_at(*service, {"spec", "clusterIP"}) == "None";
    for (const client::Object& pod : endpoints_of(*service, around)) {
      if (is_headless) addresses.push_back(address_of_pod(*pod));
      const std::string_view hostname = text_at(*pod, {"spec", "hostname"});
      if (!hostname.empty() && text_at(*pod, {"spec", "subdomain"}) == model::name_of(*service))
        names[fmt::format("{}.{}", hostname, base)].push_back(address_of_pod(*pod));
    }
  }
  return names;
}

Json endpoint_slice(const Json& service, std::span<const client::Object> pods) {
  JsonArray endpoints;
  const Json* first = nullptr;
  for (const client::Object& pod : pods) {
    if (model::namespace_of(*pod) != model::namespace_of(service) || !selects(service, *pod) ||
        address_of_pod(*pod) == 0 || endpoints.size() >= kMostEndpoints)
      continue;
    if (!first) first = pod.get();
    endpoints.push_back(slice_endpoint(service, *pod));
  }
  return JsonObject{
      {"apiVersion", "discovery.k8s.io/v1"},
      {"kind", "EndpointSlice"},
      {"metadata",
       JsonObject{{"name", fmt::format("{}-{}", model::name_of(service),
                                       model::name_hash(model::uid_of(service)))},
                  {"namespace", model::namespace_of(service)},
                  {"labels", JsonObject{{"kubernetes.io/service-name", model::name_of(service)},
                                        {"endpointslice.kubernetes.io/managed-by", kManager}}},
                  {"ownerReferences", JsonArray{model::controller_reference(service)}}}},
      {"addressType", "IPv4"},
      {"endpoints", std::move(endpoints)},
      {"ports", slice_ports(service, first)}};
}

}  // namespace hearth::node
