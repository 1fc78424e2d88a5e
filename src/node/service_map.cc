#include "node/service_map.h"

#include <algorithm>

#include "base/error.h"
#include "model/meta.h"

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

std::vector<client::Object> endpoints_of(const Json& service, const PodIndex& pods) {
  if (!is_led_by_us(service)) return {};
  std::vector<client::Object> all = pods.selected_by(service);
  std::erase_if(all, [&](const client::Object& pod) { return !is_endpoint(service, *pod); });
  return all;
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
                                            const PodIndex& pods) {
  std::vector<network::Service> rules;
  for (const client::Object& service : services) {
    const std::uint32_t address = cluster_ip(*service);
    const JsonArray* ports = model::array_at(*service, {"spec", "ports"});
    if (!network::kServiceRange.contains(address) || !is_led_by_us(*service) || !ports) continue;
    const std::vector<client::Object> endpoints = endpoints_of(*service, pods);
    for (const Json& port : *ports) {
      const auto protocol = find_protocol(text_at(port, {"protocol"}));
      const std::uint16_t number = port_number(port, {"port"});
      if (!protocol || number == 0) continue;
      network::Service rule{.address = address, .protocol = *protocol, .port = number};
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

Names service_names(std::span<const client::Object> services, const PodIndex& pods,
                    std::string_view domain) {
  Names names;
  for (const client::Object& service : services) {
    const std::string base = fmt::format("{}.{}.svc.{}", model::name_of(*service),
                                         model::namespace_of(*service), domain);
    std::vector<std::uint32_t>& addresses = names[base];
    if (const std::uint32_t address = cluster_ip(*service)) addresses.push_back(address);
    const bool is_headless = text_at(*service, {"spec", "clusterIP"}) == "None";
    for (const client::Object& pod : endpoints_of(*service, pods)) {
      if (is_headless) addresses.push_back(address_of_pod(*pod));
      const std::string_view hostname = text_at(*pod, {"spec", "hostname"});
      if (!hostname.empty() && text_at(*pod, {"spec", "subdomain"}) == model::name_of(*service))
        names[fmt::format("{}.{}", hostname, base)].push_back(address_of_pod(*pod));
    }
  }
  return names;
}

Json endpoint_slice(const Json& service, const PodIndex& pods) {
  JsonArray endpoints;
  const Json* first = nullptr;
  for (const client::Object& pod : pods.selected_by(service)) {
    if (endpoints.size() >= kMostEndpoints) break;
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
