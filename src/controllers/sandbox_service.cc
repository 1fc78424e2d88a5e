#include "controllers/sandbox_service.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "controllers/ownership.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {

using model::JsonObject;

namespace {

struct Port {
  std::int64_t number = 0;
  std::string protocol;

  auto operator<=>(const Port&) const = default;
};

// Ports and the names that their containers gave them; the first of two equal names counts.
struct Ports {
  std::map<Port, std::string> names;
  std::set<std::string> taken;

  void add(const Json& container_port) {
    const std::int64_t number = model::number_at(container_port, {"containerPort"}).value_or(0);
    if (number == 0) return;
    std::string protocol(model::text_at(container_port, {"protocol"}));
    if (protocol.empty()) protocol = "TCP";
    std::string& name = names[{number, std::move(protocol)}];
    const std::string given(model::text_at(container_port, {"name"}));
    if (!given.empty() && name.empty() && taken.insert(given).second) name = given;
  }

  void add_all(const Json& container) {
    if (const JsonArray* ports = model::array_at(container, {"ports"}))
      for (const Json& each : *ports) add(each);
  }
};

std::string generated_name(const Port& port, const std::set<std::string>& taken) {
  std::string protocol = port.protocol;
  std::ranges::transform(protocol, protocol.begin(),
                         [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
  const std::string base = fmt::format("p-{}-{}", port.number, protocol);
  std::string name = base;
  for (unsigned suffix = 2; taken.contains(name); ++suffix)
    name = fmt::format("{}-{}", base, suffix);
  return name;
}

JsonObject tracking(const Json& sandbox) {
  return {{model::kNameHashLabel, model::name_hash(model::name_of(sandbox))}};
}

bool is_same_port(const Json& left, const Json& right) {
  for (const std::string_view field : {"name", "protocol", "port", "targetPort"}) {
    const Json* one = model::find(left, {field});
    const Json* other = model::find(right, {field});
    if (one == nullptr || other == nullptr || !model::is_same(*one, *other)) return false;
  }
  return true;
}

bool has_ports(const Json& service, const JsonArray& wanted) {
  const JsonArray* ports = model::array_at(service, {"spec", "ports"});
  if (ports == nullptr) return wanted.empty();
  return std::ranges::equal(*ports, wanted, is_same_port);
}

Json ports_or_null(JsonArray ports) {
  return ports.empty() ? Json(nullptr) : Json(std::move(ports));
}

}  // namespace

ServiceWish service_wish(const Json& sandbox) {
  const Json* wish = model::find(sandbox, {"spec", "service"});
  if (wish == nullptr || !wish->is_bool()) return ServiceWish::unset;
  return wish->get_bool() ? ServiceWish::wanted : ServiceWish::unwanted;
}

JsonArray service_ports(const Json& sandbox) {
  Ports ports;
  constexpr std::string_view kSpec = "spec";
  if (const JsonArray* containers =
          model::array_at(sandbox, {kSpec, "podTemplate", kSpec, "containers"}))
    for (const Json& each : *containers) ports.add_all(each);
  if (const JsonArray* containers =
          model::array_at(sandbox, {kSpec, "podTemplate", kSpec, "initContainers"}))
    for (const Json& each : *containers)
      if (model::text_at(each, {"restartPolicy"}) == "Always") ports.add_all(each);

  JsonArray list;
  for (auto& [port, given] : ports.names) {
    const std::string name = given.empty() ? generated_name(port, ports.taken) : given;
    ports.taken.insert(name);
    list.push_back(JsonObject{{"name", name},
                              {"protocol", port.protocol},
                              {"port", port.number},
                              {"targetPort", port.number}});
  }
  return list;
}

Json new_service(const Json& sandbox) {
  JsonObject spec{{"clusterIP", "None"}, {"selector", tracking(sandbox)}};
  if (JsonArray ports = service_ports(sandbox); !ports.empty()) spec["ports"] = std::move(ports);
  JsonObject service{{"apiVersion", "v1"}, {"kind", "Service"}};
  service["metadata"] =
      JsonObject{{"name", model::name_of(sandbox)},
                 {"namespace", model::namespace_of(sandbox)},
                 {"labels", tracking(sandbox)},
                 {"ownerReferences", JsonArray{model::controller_reference(sandbox)}}};
  service["spec"] = std::move(spec);
  return service;
}

Json service_repair(const Json& service, const Json& sandbox) {
  const JsonObject wanted = tracking(sandbox);
  const std::string_view hash = wanted.at(model::kNameHashLabel).get_string();
  JsonObject patch;
  if (model::label_of(service, model::kNameHashLabel) != hash)
    patch["metadata"] = JsonObject{{"labels", wanted}};

  JsonObject spec;
  const Json* selector = model::find(service, {"spec", "selector"});
  if (selector == nullptr || !model::is_same(*selector, Json(wanted))) {
    JsonObject replacement;  // null for what does not belong there: a merge patch only adds
    if (selector != nullptr && selector->is_object())
      for (const auto& each : selector->get_object()) replacement[each.key()] = nullptr;
    replacement[model::kNameHashLabel] = hash;
    spec["selector"] = std::move(replacement);
  }
  if (service_wish(sandbox) == ServiceWish::wanted) {
    JsonArray ports = service_ports(sandbox);
    if (!has_ports(service, ports)) spec["ports"] = ports_or_null(std::move(ports));
  }
  if (!spec.empty()) patch["spec"] = std::move(spec);
  return patch.empty() ? Json(nullptr) : Json(std::move(patch));
}

Json adopted_service(const Json& service, const Json& sandbox) {
  require_adoptable(service, sandbox, "service");
  const std::string_view address = model::text_at(service, {"spec", "clusterIP"});
  if (!address.empty() && address != "None")
    fail(Code::conflict,
         "cannot adopt service \"{}\": ClusterIP is \"{}\" (expected \"None\", field is immutable)",
         model::name_of(service), address);

  Json adopted = service;
  model::make_object_at(adopted, {"metadata", "labels"})[model::kNameHashLabel] =
      model::name_hash(model::name_of(sandbox));
  JsonArray owners;
  if (const JsonArray* there = model::array_at(service, {"metadata", "ownerReferences"}))
    owners = *there;
  owners.push_back(model::controller_reference(sandbox));
  model::make_object_at(adopted, {"metadata"})["ownerReferences"] = std::move(owners);
  JsonObject& spec = model::make_object_at(adopted, {"spec"});
  spec["selector"] = tracking(sandbox);
  spec.erase("ports");
  if (JsonArray ports = service_ports(sandbox); !ports.empty()) spec["ports"] = std::move(ports);
  return adopted;
}

std::string service_fqdn(const Json& service, std::string_view cluster_domain) {
  return fmt::format("{}.{}.svc.{}", model::name_of(service), model::namespace_of(service),
                     cluster_domain);
}

}  // namespace hearth::controllers
