// Services and where they lead: Service, Endpoints, EndpointSlice.
#include <set>

#include <fmt/format.h>

#include "apiserver/cluster_ip.h"
#include "apiserver/kinds_strategies_internal.h"
#include "base/ip_text.h"

namespace hearth::apiserver {
namespace {

constexpr std::uint32_t kFirstAddress = 0x0a600000;  // 10.96.0.0
constexpr std::uint32_t kAddresses = 1U << 20;       // a /12

bool is_headless(const JsonObject& spec) {
  return text_in(spec, "clusterIP") == "None";
}
bool is_external_name(const JsonObject& spec) {
  return text_in(spec, "type") == "ExternalName";
}

// The single address and the list of addresses say the same.
void match_cluster_ips(JsonObject& spec) {
  const JsonArray* list = array_in(spec, "clusterIPs");
  if (!is_unset(spec, "clusterIP") && (!list || list->empty())) {
    const Json address = spec["clusterIP"];
    spec["clusterIPs"] = JsonArray{address};
  } else if (is_unset(spec, "clusterIP") && list && !list->empty()) {
    const Json address = list->front();
    spec["clusterIP"] = address;
  }
}

void fill_in_affinity(JsonObject& spec) {
  constexpr int kThreeHours = 10800;
  set_default(spec, "sessionAffinity", "None");
  if (text_in(spec, "sessionAffinity") == "None") spec.erase("sessionAffinityConfig");
  if (text_in(spec, "sessionAffinity") != "ClientIP") return;
  Json affinity = spec["sessionAffinityConfig"];
  set_default(model::make_object_at(affinity, {"clientIP"}), "timeoutSeconds", kThreeHours);
  spec["sessionAffinityConfig"] = std::move(affinity);
}

void fill_in_port(JsonObject& port) {
  set_default(port, "protocol", "TCP");
  const Json* target = port.if_contains("targetPort");
  const bool is_missing = is_unset(target) || model::as_integer(*target) == 0;
  if (const Json* number = port.if_contains("port"); is_missing && number) {
    const Json same = *number;
    port["targetPort"] = same;
  }
}

void fill_in_service(JsonObject& spec) {
  set_default(spec, "type", "ClusterIP");
  fill_in_affinity(spec);
  for (JsonObject* port : objects_in(spec, "ports")) fill_in_port(*port);
  const std::string_view type = text_in(spec, "type");
  if (type == "NodePort" || type == "LoadBalancer")
    set_default(spec, "externalTrafficPolicy", "Cluster");
  if (type == "LoadBalancer") set_default(spec, "allocateLoadBalancerNodePorts", true);
  if (is_external_name(spec)) return;
  match_cluster_ips(spec);
  if (const JsonArray* families = array_in(spec, "ipFamilies"); !families || families->empty())
    spec["ipFamilies"] = JsonArray{"IPv4"};
  set_default(spec, "ipFamilyPolicy", "SingleStack");
  set_default(spec, "internalTrafficPolicy", "Cluster");
}

void check_service_ports(Errors& errors, const JsonObject& spec) {
  const Items ports = items_in(spec, "ports", "spec.ports");
  if (ports.empty() && !is_headless(spec) && !is_external_name(spec))
    errors.push_back(model::required("spec.ports"));
  std::set<std::string, std::less<>> names;
  std::set<std::string> numbers;
  for (const Item port : ports) {
    const std::string_view name = text_in(port.object, "name");
    if (name.empty() && ports.size() > 1) errors.push_back(model::required(port.at("name")));
    if (!name.empty()) {
      check_dns_label(errors, port.at("name"), name);
      if (!names.emplace(name).second)
        errors.push_back(model::duplicate(port.at("name"), json_quote(name)));
    }
    const std::int64_t number = number_in(port.object, "port").value_or(0);
    const std::string_view protocol = text_in(port.object, "protocol");
    check_port_number(errors, port.at("port"), number);
    check_protocol(errors, port.at("protocol"), protocol);
    check_port_number_or_name(errors, port.at("targetPort"), port.object.if_contains("targetPort"));
    if (!numbers.insert(fmt::format("{}/{}", number, protocol)).second)
      errors.push_back(model::duplicate(port.field(), fmt::format(R"({{"protocol":{},"port":{}}})",
                                                                  json_quote(protocol), number)));
    if (text_in(spec, "type") == "ClusterIP" && number_in(port.object, "nodePort").value_or(0) != 0)
      errors.push_back(
          model::forbidden(port.at("nodePort"), "may not be used when `type` is 'ClusterIP'"));
  }
}

void check_service(Errors& errors, const JsonObject& spec) {
  check_service_ports(errors, spec);
  const std::string_view type = text_in(spec, "type");
  check_one_of(errors, "spec.type", type,
               {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  check_one_of(errors, "spec.sessionAffinity", text_in(spec, "sessionAffinity"),
               {"ClientIP", "None"});
  if (is_headless(spec) && (type == "NodePort" || type == "LoadBalancer"))
    errors.push_back(model::invalid("spec.clusterIPs[0]", "\"None\"",
                                    fmt::format("may not be set to 'None' for {} services", type)));
  if (is_external_name(spec)) {
    if (!is_unset(spec, "clusterIP"))
      errors.push_back(
          model::forbidden("spec.clusterIPs", "may not be set for ExternalName services"));
    const std::string_view name = text_in(spec, "externalName");
    if (name.empty())
      errors.push_back(model::required("spec.externalName"));
    else
      check_dns_subdomain(errors, "spec.externalName",
                          name.substr(0, name.size() - (name.ends_with('.') ? 1 : 0)));
    return;
  }
  check_labels(errors, "spec.selector", object_in(spec, "selector"));
  if (const JsonArray* outside = array_in(spec, "externalIPs"))
    for (std::size_t i = 0; i < outside->size(); ++i)
      if (const auto* text = (*outside)[i].if_string())
        check_ip_address(errors, fmt::format("spec.externalIPs[{}]", i), *text);
  const std::string_view address = text_in(spec, "clusterIP");
  if (!address.empty() && address != "None")
    check_ip_address(errors, "spec.clusterIPs[0]", address);
  const JsonArray* list = array_in(spec, "clusterIPs");
  if (list && !list->empty() && !model::is_same(list->front(), Json(address)))
    errors.push_back(model::invalid("spec.clusterIPs", model::to_text(*list),
                                    "first value must match `clusterIP`"));
}

void check_service_update(Errors& errors, const JsonObject& next, const JsonObject& old) {
  if (is_external_name(next) || is_external_name(old)) return;
  const std::string_view now = text_in(next, "clusterIP");
  const std::string_view before = text_in(old, "clusterIP");
  if (before.empty() || now == before) return;
  errors.push_back(model::invalid("spec.clusterIPs[0]", model::to_text(JsonArray{Json(now)}),
                                  "may not change once set"));
}

class ServiceStrategy : public PlainStrategy {
 public:
  void fill_in(Json& object) const override {
    fill_in_service(model::make_object_at(object, {"spec"}));
  }
  void prepare_create(Json& object) const override {
    model::make_object_at(object, {})["status"] = JsonObject{{"loadBalancer", JsonObject()}};
  }
  // A client that knows nothing of addresses leaves them alone.
  void prepare_update(Json& next, const Json& old) const override {
    keep_status(next, old);
    JsonObject& spec = model::make_object_at(next, {"spec"});
    const JsonObject& before = as_object(model::find(old, {"spec"}));
    if (is_external_name(before)) return;
    if (is_external_name(spec)) {
      const Json* address = before.if_contains("clusterIP");
      const Json* mine = spec.if_contains("clusterIP");
      if (!address || !mine || !model::is_same(*address, *mine)) return;
      for (const std::string_view name :
           {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"})
        spec.erase(name);
      return;
    }
    if (!is_unset(spec, "clusterIP")) return;
    if (const JsonArray* given = array_in(spec, "clusterIPs"); given && !given->empty()) return;
    for (const std::string_view name : {"clusterIP", "clusterIPs"})
      if (const Json* value = before.if_contains(name)) spec[name] = *value;
  }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view subresource) const override {
    Errors errors;
    if (!subresource.empty()) return {};
    const JsonObject& spec = as_object(model::find(next, {"spec"}));
    check_service(errors, spec);
    if (old) check_service_update(errors, spec, as_object(model::find(*old, {"spec"})));
    return errors.take();
  }
};

class EndpointsStrategy : public PlainStrategy {
 public:
  void fill_in(Json& object) const override {
    if (!object.is_object()) return;
    for (JsonObject* subset : objects_in(object.get_object(), "subsets"))
      for (JsonObject* port : objects_in(*subset, "ports")) set_default(*port, "protocol", "TCP");
  }
  std::vector<model::FieldError> validate(const Json& next, const Json*,
                                          std::string_view) const override {
    Errors errors;
    for (const Item subset : items_in(as_object(next), "subsets", "subsets")) {
      for (const std::string_view list : {"addresses", "notReadyAddresses"})
        for (const Item address : items_in(subset.object, list, subset.at(list)))
          check_ip_address(errors, address.at("ip"), text_in(address.object, "ip"));
      for (const Item port : items_in(subset.object, "ports", subset.at("ports"))) {
        check_port_number(errors, port.at("port"), number_in(port.object, "port").value_or(0));
        check_protocol(errors, port.at("protocol"), text_in(port.object, "protocol"));
      }
    }
    return errors.take();
  }
};

void check_slice_address(Errors& errors, const std::string& field, std::string_view type,
                         std::string_view address) {
  if (type == "IPv4" && !parse_ipv4(address))
    errors.push_back(model::invalid(field, json_quote(address), "must be an IPv4 address"));
  if (type == "IPv6" && !parse_ipv6(address))
    errors.push_back(model::invalid(field, json_quote(address), "must be an IPv6 address"));
  if (type == "FQDN") check_dns_subdomain(errors, field, address);
}

class EndpointSliceStrategy : public Strategy {
 public:
  void fill_in(Json& object) const override {
    if (!object.is_object()) return;
    for (JsonObject* port : objects_in(object.get_object(), "ports")) {
      set_default(*port, "name", "");
      set_default(*port, "protocol", "TCP");
    }
  }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view) const override {
    constexpr std::size_t kMostEndpoints = 1000;
    Errors errors;
    const std::string_view type = model::text_at(next, {"addressType"});
    check_one_of(errors, "addressType", type, {"FQDN", "IPv4", "IPv6"});
    if (old) check_immutable(errors, next, *old, {"addressType"}, "addressType");
    for (const Item port : items_in(as_object(next), "ports", "ports"))
      check_protocol(errors, port.at("protocol"), text_in(port.object, "protocol"));
    const Items endpoints = items_in(as_object(next), "endpoints", "endpoints");
    if (endpoints.size() > kMostEndpoints)
      errors.push_back({model::FieldProblem::too_many, "endpoints",
                        fmt::format("Too many: {}: must have at most {} items", endpoints.size(),
                                    kMostEndpoints)});
    for (const Item endpoint : endpoints) check_addresses(errors, endpoint, type);
    return errors.take();
  }
  bool allows_unconditional_update() const override { return true; }

 private:
  static void check_addresses(Errors& errors, const Item& endpoint, std::string_view type) {
    const JsonArray* addresses = array_in(endpoint.object, "addresses");
    if (!addresses || addresses->empty()) {
      errors.push_back(
          model::required(endpoint.at("addresses"), "must contain at least 1 address"));
      return;
    }
    for (std::size_t i = 0; i < addresses->size(); ++i)
      if (const auto* text = (*addresses)[i].if_string())
        check_slice_address(errors, fmt::format("{}[{}]", endpoint.at("addresses"), i), type,
                            {text->data(), text->size()});
  }
};

}  // namespace

bool needs_cluster_ip(const Json& service) {
  const JsonObject& spec = as_object(model::find(service, {"spec"}));
  return !is_external_name(spec) && is_unset(spec, "clusterIP");
}

bool is_cluster_ip_chosen(const Json& service) {
  const std::string_view address = model::text_at(service, {"spec", "clusterIP"});
  return !address.empty() && address != "None";
}

bool is_cluster_ip(std::string_view address) {
  const auto parsed = parse_ipv4(address);
  if (!parsed) return false;
  const std::uint32_t number = ntohl(parsed->s_addr);
  // Neither the network's own address nor the one for everybody in it.
  return number > kFirstAddress && number < kFirstAddress + kAddresses - 1;
}

std::optional<std::string> pick_cluster_ip(const std::set<std::string, std::less<>>& used,
                                           std::uint32_t anywhere) {
  for (std::uint32_t i = 0; i < kAddresses; ++i) {
    const std::uint32_t number = kFirstAddress + (anywhere + i) % kAddresses;
    std::string address = fmt::format("{}.{}.{}.{}", number >> 24, (number >> 16) & 255,
                                      (number >> 8) & 255, number & 255);
    if (is_cluster_ip(address) && address != kApiServerClusterIp && !used.contains(address))
      return address;
  }
  return std::nullopt;
}

void check_chosen_cluster_ip(const Json& service, const std::set<std::string, std::less<>>& used) {
  const std::string address(model::text_at(service, {"spec", "clusterIP"}));
  const auto refuse = [&](std::string_view why) {
    model::throw_invalid(
        {"", "Service"}, model::text_at(service, {"metadata", "name"}),
        {model::invalid("spec.clusterIPs", fmt::format("[{}]", json_quote(address)),
                        fmt::format("failed to allocate IP {}: {}", address, why))});
  };
  if (!is_cluster_ip(address))
    refuse(
        fmt::format("the provided IP ({}) is not in the valid range. The range of valid IPs is {}",
                    address, kClusterIpRange));
  if (used.contains(address)) refuse("provided IP is already allocated");
}

void set_cluster_ip(Json& service, std::string_view address) {
  JsonObject& spec = model::make_object_at(service, {"spec"});
  spec["clusterIP"] = address;
  spec["clusterIPs"] = JsonArray{Json(address)};
}

const Strategy& service_strategy() {
  static const ServiceStrategy kStrategy;
  return kStrategy;
}

const Strategy& endpoints_strategy() {
  static const EndpointsStrategy kStrategy;
  return kStrategy;
}

const Strategy& endpoint_slice_strategy() {
  static const EndpointSliceStrategy kStrategy;
  return kStrategy;
}

}  // namespace hearth::apiserver
