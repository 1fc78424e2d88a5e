// What can be wrong with how a pod's containers run: as whom, under which names, beside what of the
// host.
#include <limits>
#include <set>

#include <fmt/format.h>

#include "apiserver/kinds_strategies_internal.h"
#include "model/names.h"

namespace hearth::apiserver {
namespace {

bool is_true_in(const JsonObject& object, std::string_view name) {
  const Json* value = object.if_contains(name);
  return value && value->is_bool() && value->get_bool();
}

bool is_false_in(const JsonObject& object, std::string_view name) {
  const Json* value = object.if_contains(name);
  return value && value->is_bool() && !value->get_bool();
}

void check_id(Errors& errors, std::string field, std::optional<std::int64_t> id) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (id && (*id < 0 || *id > kMost))
    errors.push_back(model::invalid(std::move(field), std::to_string(*id),
                                    fmt::format("must be between 0 and {}, inclusive", kMost)));
}

void check_security_context(Errors& errors, const JsonObject* context, const std::string& field) {
  if (!context) return;
  for (const std::string_view name : {"runAsUser", "runAsGroup", "fsGroup"})
    check_id(errors, fmt::format("{}.{}", field, name), number_in(*context, name));
  if (const JsonArray* groups = array_in(*context, "supplementalGroups"))
    for (std::size_t i = 0; i < groups->size(); ++i)
      check_id(errors, fmt::format("{}.supplementalGroups[{}]", field, i),
               model::as_integer((*groups)[i]));
  if (is_true_in(*context, "privileged") && is_false_in(*context, "allowPrivilegeEscalation"))
    errors.push_back(
        model::invalid(field, model::to_text(*context),
                       "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
}

void check_container_context(Errors& errors, const Item& container) {
  check_security_context(errors, object_in(container.object, "securityContext"),
                         container.at("securityContext"));
  if (const std::string_view policy = text_in(container.object, "restartPolicy"); !policy.empty())
    check_one_of(errors, container.at("restartPolicy"), policy, {"Always", "Never", "OnFailure"});
  const JsonObject* lifecycle = object_in(container.object, "lifecycle");
  for (const std::string_view name : {"postStart", "preStop"})
    if (const JsonObject* hook = lifecycle ? object_in(*lifecycle, name) : nullptr;
        hook && hook->empty())
      errors.push_back(model::required(fmt::format("{}.{}", container.at("lifecycle"), name),
                                       "must specify a handler type"));
}

void check_dns(Errors& errors, const JsonObject& spec) {
  const JsonObject* config = object_in(spec, "dnsConfig");
  const JsonArray* servers = config ? array_in(*config, "nameservers") : nullptr;
  if (text_in(spec, "dnsPolicy") == "None") {
    if (!config)
      errors.push_back(
          model::required("spec.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"));
    else if (!servers || servers->empty())
      errors.push_back(
          model::required("spec.dnsConfig.nameservers",
                          "must provide at least one DNS nameserver when `dnsPolicy` is None"));
  }
  for (std::size_t i = 0; servers && i < servers->size(); ++i)
    if (const auto* text = (*servers)[i].if_string())
      check_ip_address(errors, fmt::format("spec.dnsConfig.nameservers[{}]", i), *text);
  for (const Item alias : items_in(spec, "hostAliases", "spec.hostAliases")) {
    check_ip_address(errors, alias.at("ip"), text_in(alias.object, "ip"));
    const JsonArray* names = array_in(alias.object, "hostnames");
    for (std::size_t i = 0; names && i < names->size(); ++i)
      if (const auto* text = (*names)[i].if_string())
        check_dns_subdomain(errors, fmt::format("{}[{}]", alias.at("hostnames"), i), *text);
  }
}

void check_host_namespaces(Errors& errors, const JsonObject& spec) {
  if (is_true_in(spec, "shareProcessNamespace") && is_true_in(spec, "hostPID"))
    errors.push_back(model::invalid("spec.securityContext.shareProcessNamespace", "true",
                                    "ShareProcessNamespace and HostPID cannot both be enabled"));
  if (!is_false_in(spec, "hostUsers")) return;
  for (const std::string_view name : {"hostNetwork", "hostPID", "hostIPC"})
    if (is_true_in(spec, name))
      errors.push_back(model::forbidden(fmt::format("spec.{}", name), "when `hostUsers` is false"));
}

void check_gates(Errors& errors, const JsonObject& spec) {
  for (const Item gate : items_in(spec, "readinessGates", "spec.readinessGates")) {
    const std::string_view type = text_in(gate.object, "conditionType");
    for (const std::string& problem : model::check_qualified_name(type))
      errors.push_back(model::invalid(gate.at("conditionType"), json_quote(type), problem));
  }
  std::set<std::string, std::less<>> names;
  for (const Item gate : items_in(spec, "schedulingGates", "spec.schedulingGates"))
    if (const std::string_view name = text_in(gate.object, "name"); !names.emplace(name).second)
      errors.push_back(model::duplicate(gate.field(), json_quote(name)));
}

}  // namespace

void check_pod_context(Errors& errors, const JsonObject& spec) {
  check_security_context(errors, object_in(spec, "securityContext"), "spec.securityContext");
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"})
    for (const Item container : items_in(spec, list, fmt::format("spec.{}", list)))
      check_container_context(errors, container);
  check_labels(errors, "spec.nodeSelector", object_in(spec, "nodeSelector"));
  if (const JsonObject* system = object_in(spec, "os"))
    check_one_of(errors, "spec.os", text_in(*system, "name"), {"linux", "windows"});
  check_dns(errors, spec);
  check_host_namespaces(errors, spec);
  check_gates(errors, spec);
}

}  // namespace hearth::apiserver
