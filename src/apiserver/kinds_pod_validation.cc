// What can be wrong with a pod's spec, beyond its types: the mistakes that people make.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "apiserver/kinds_strategies_internal.h"

namespace hearth::apiserver {
namespace {

using Names = std::set<std::string, std::less<>>;

void check_unique(Errors& errors, Names& seen, std::string field, std::string_view name) {
  if (name.empty()) return;
  if (!seen.emplace(name).second)
    errors.push_back(model::duplicate(std::move(field), json_quote(name)));
}

void check_env(Errors& errors, const Item& variable) {
  const std::string_view name = text_in(variable.object, "name");
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~' && c != '='; };
  if (name.empty())
    errors.push_back(model::required(variable.at("name")));
  else if (!std::all_of(name.begin(), name.end(), is_printable))
    errors.push_back(model::invalid(variable.at("name"), json_quote(name),
                                    "a valid environment variable name must consist only of "
                                    "printable ASCII characters other than '='"));
  const JsonObject* from = object_in(variable.object, "valueFrom");
  if (!from) return;
  const auto is_given = [](const auto& source) { return !source.value().is_null(); };
  const auto sources = std::count_if(from->begin(), from->end(), is_given);
  const std::string field = variable.at("valueFrom");
  if (sources == 0)
    errors.push_back(model::invalid(field, "\"\"",
                                    "must specify one of: `fieldRef`, `resourceFieldRef`, "
                                    "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"));
  else if (!is_unset(variable.object, "value"))
    errors.push_back(
        model::invalid(field, "\"\"", "may not be specified when `value` is not empty"));
  else if (sources > 1)
    errors.push_back(
        model::invalid(field, "\"\"", "may not have more than one field specified at a time"));
  for (const std::string_view source : {"configMapKeyRef", "secretKeyRef"})
    if (const JsonObject* key = object_in(*from, source))
      check_required(errors, *key, "key", fmt::format("{}.{}.key", field, source));
}

void check_port(Errors& errors, Names& names, const Item& port) {
  const std::string_view name = text_in(port.object, "name");
  if (!name.empty()) {
    check_port_name(errors, port.at("name"), name);
    check_unique(errors, names, port.at("name"), name);
  }
  if (const auto number = number_in(port.object, "containerPort").value_or(0); number == 0)
    errors.push_back(model::required(port.at("containerPort")));
  else
    check_port_number(errors, port.at("containerPort"), number);
  if (const auto number = number_in(port.object, "hostPort").value_or(0); number != 0)
    check_port_number(errors, port.at("hostPort"), number);
  check_protocol(errors, port.at("protocol"), text_in(port.object, "protocol"));
}

// A path inside a volume stays inside.
void check_descending(Errors& errors, std::string field, std::string_view path) {
  if (path.starts_with('/'))
    errors.push_back(model::invalid(field, json_quote(path), "must be a relative path"));
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t slash = std::min(path.find('/', start), path.size());
    if (path.substr(start, slash - start) == "..") {
      errors.push_back(model::invalid(std::move(field), json_quote(path), "must not contain '..'"));
      return;
    }
    start = slash + 1;
  }
}

void check_mounts(Errors& errors, const Item& container, const Names& volumes) {
  Names paths;
  for (const Item mount :
       items_in(container.object, "volumeMounts", container.at("volumeMounts"))) {
    const std::string_view name = text_in(mount.object, "name");
    const std::string_view path = text_in(mount.object, "mountPath");
    if (name.empty()) errors.push_back(model::required(mount.at("name")));
    if (!volumes.contains(name)) errors.push_back(not_found(mount.at("name"), name));
    if (path.empty())
      errors.push_back(model::required(mount.at("mountPath")));
    else if (!paths.emplace(path).second)
      errors.push_back(model::invalid(mount.at("mountPath"), json_quote(path), "must be unique"));
    check_descending(errors, mount.at("subPath"), text_in(mount.object, "subPath"));
    check_descending(errors, mount.at("subPathExpr"), text_in(mount.object, "subPathExpr"));
  }
}

bool is_standard_resource(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
         name.starts_with("hugepages-") || name.find('/') != std::string_view::npos;
}

void check_amounts(Errors& errors, const JsonObject& resources, std::string_view list,
                   const std::string& field) {
  for (const auto& [name, amount] : as_object(resources.if_contains(list))) {
    const std::string place = fmt::format("{}.{}[{}]", field, list, std::string_view(name));
    const auto value = quantity_of(amount);
    if (!is_standard_resource(name))
      errors.push_back(
          model::invalid(place, json_quote(name), "must be a standard resource for containers"));
    if (!value)
      errors.push_back(model::invalid(place, model::to_text(amount), model::kQuantityRule));
    else if (value->is_negative())
      errors.push_back(model::invalid(place, json_quote(quantity_text(amount)),
                                      "must be greater than or equal to 0"));
  }
}

void check_resources(Errors& errors, const JsonObject& resources, const std::string& field) {
  check_amounts(errors, resources, "limits", field);
  check_amounts(errors, resources, "requests", field);
  const JsonObject& limits = as_object(resources.if_contains("limits"));
  for (const auto& [name, request] : as_object(resources.if_contains("requests"))) {
    const Json* limit = limits.if_contains(name);
    const auto asked = quantity_of(request);
    const auto most = quantity_of(limit);
    if (asked && most && *asked > *most)
      errors.push_back(model::invalid(field + ".requests", json_quote(quantity_text(request)),
                                      fmt::format("must be less than or equal to {} limit of {}",
                                                  std::string_view(name), quantity_text(*limit))));
  }
}

void check_handler(Errors& errors, const JsonObject& handler, const std::string& field) {
  int handlers = 0;
  for (const std::string_view name : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    if (!object_in(handler, name)) continue;
    if (++handlers > 1)
      errors.push_back(model::forbidden(fmt::format("{}.{}", field, name),
                                        "may not specify more than 1 handler type"));
  }
  if (handlers == 0) errors.push_back(model::required(field, "must specify a handler type"));
  if (const JsonObject* get = object_in(handler, "httpGet")) {
    check_port_number_or_name(errors, field + ".httpGet.port", get->if_contains("port"));
    check_one_of(errors, field + ".httpGet.scheme", text_in(*get, "scheme"), {"HTTP", "HTTPS"});
  }
  if (const JsonObject* tcp = object_in(handler, "tcpSocket"))
    check_port_number_or_name(errors, field + ".tcpSocket.port", tcp->if_contains("port"));
  if (const JsonObject* exec = object_in(handler, "exec"))
    if (const JsonArray* command = array_in(*exec, "command"); !command || command->empty())
      errors.push_back(model::required(field + ".exec.command"));
}

void check_probes(Errors& errors, const Item& container) {
  for (const std::string_view name : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    const JsonObject* probe = object_in(container.object, name);
    if (!probe) continue;
    const std::string field = container.at(name);
    check_handler(errors, *probe, field);
    for (const std::string_view number : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                          "successThreshold", "failureThreshold"})
      check_not_negative(errors, *probe, number, fmt::format("{}.{}", field, number));
    if (name != "readinessProbe" && number_in(*probe, "successThreshold").value_or(1) != 1)
      errors.push_back(model::invalid(field + ".successThreshold",
                                      std::to_string(*number_in(*probe, "successThreshold")),
                                      "must be 1"));
  }
}

void check_container(Errors& errors, const Item& container, const Names& volumes, Names& names) {
  const std::string_view name = text_in(container.object, "name");
  if (name.empty())
    errors.push_back(model::required(container.at("name")));
  else
    check_dns_label(errors, container.at("name"), name);
  check_unique(errors, names, container.at("name"), name);
  const std::string_view image = text_in(container.object, "image");
  if (image.empty())
    errors.push_back(model::required(container.at("image")));
  else if (image.front() <= ' ' || image.back() <= ' ')
    errors.push_back(model::invalid(container.at("image"), json_quote(image),
                                    "must not have leading or trailing whitespace"));
  check_one_of(errors, container.at("terminationMessagePolicy"),
               text_in(container.object, "terminationMessagePolicy"),
               {"File", "FallbackToLogsOnError"});
  check_one_of(errors, container.at("imagePullPolicy"),
               text_in(container.object, "imagePullPolicy"), {"Always", "IfNotPresent", "Never"});
  Names port_names;
  for (const Item port : items_in(container.object, "ports", container.at("ports")))
    check_port(errors, port_names, port);
  for (const Item variable : items_in(container.object, "env", container.at("env")))
    check_env(errors, variable);
  check_mounts(errors, container, volumes);
  if (const JsonObject* resources = object_in(container.object, "resources"))
    check_resources(errors, *resources, container.at("resources"));
  check_probes(errors, container);
}

void check_init_container(Errors& errors, const Item& container) {
  if (text_in(container.object, "restartPolicy") == "Always") return;
  for (const std::string_view name :
       {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"})
    if (object_in(container.object, name))
      errors.push_back(model::forbidden(
          container.at(name), "may not be set for init containers without restartPolicy=Always"));
}

void check_volume_source(Errors& errors, const Item& volume) {
  int sources = 0;
  for (const auto& [name, source] : volume.object) {
    if (name == "name" || source.is_null()) continue;
    if (++sources > 1)
      errors.push_back(
          model::forbidden(volume.at(name), "may not specify more than 1 volume type"));
  }
  if (sources == 0) errors.push_back(model::required(volume.field(), "must specify a volume type"));
  if (const JsonObject* path = object_in(volume.object, "hostPath"))
    check_required(errors, *path, "path", volume.at("hostPath.path"));
  if (const JsonObject* secret = object_in(volume.object, "secret"))
    check_required(errors, *secret, "secretName", volume.at("secret.secretName"));
  if (const JsonObject* map = object_in(volume.object, "configMap"))
    check_required(errors, *map, "name", volume.at("configMap.name"));
  if (const JsonObject* claim = object_in(volume.object, "persistentVolumeClaim"))
    check_required(errors, *claim, "claimName", volume.at("persistentVolumeClaim.claimName"));
}

Names check_volumes(Errors& errors, const JsonObject& spec) {
  Names names;
  for (const Item volume : items_in(spec, "volumes", "spec.volumes")) {
    const std::string_view name = text_in(volume.object, "name");
    if (name.empty())
      errors.push_back(model::required(volume.at("name")));
    else
      check_dns_label(errors, volume.at("name"), name);
    check_unique(errors, names, volume.at("name"), name);
    check_volume_source(errors, volume);
  }
  return names;
}

void check_tolerations(Errors& errors, const JsonObject& spec) {
  for (const Item one : items_in(spec, "tolerations", "spec.tolerations")) {
    const std::string_view key = text_in(one.object, "key");
    const std::string_view op = text_in(one.object, "operator");
    const std::string_view effect = text_in(one.object, "effect");
    if (key.empty() && op != "Exists")
      errors.push_back(model::invalid(one.at("operator"), json_quote(op),
                                      "operator must be Exists when `key` is empty, which means "
                                      "\"match all values and all keys\""));
    if (number_in(one.object, "tolerationSeconds") && effect != "NoExecute")
      errors.push_back(model::invalid(one.at("effect"), json_quote(effect),
                                      "effect must be 'NoExecute' when `tolerationSeconds` is "
                                      "set"));
    if (!op.empty()) check_one_of(errors, one.at("operator"), op, {"Equal", "Exists"});
    if (op == "Exists" && !is_unset(one.object, "value"))
      errors.push_back(model::invalid(one.at("operator"), json_quote(text_in(one.object, "value")),
                                      "value must be empty when `operator` is 'Exists'"));
    if (!effect.empty())
      check_one_of(errors, one.at("effect"), effect,
                   {"NoSchedule", "PreferNoSchedule", "NoExecute"});
  }
}

void check_names_and_numbers(Errors& errors, const JsonObject& spec) {
  for (const std::string_view name : {"hostname", "subdomain"})
    if (!is_unset(spec, name))
      check_dns_label(errors, fmt::format("spec.{}", name), text_in(spec, name));
  for (const std::string_view name :
       {"nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName"})
    if (!is_unset(spec, name))
      check_dns_subdomain(errors, fmt::format("spec.{}", name), text_in(spec, name));
  const auto deadline = number_in(spec, "activeDeadlineSeconds");
  if (deadline && (*deadline < 1 || *deadline > 2147483647))
    errors.push_back(model::invalid("spec.activeDeadlineSeconds", std::to_string(*deadline),
                                    "must be between 1 and 2147483647, inclusive"));
}

}  // namespace

void check_pod_spec(Errors& errors, const JsonObject& spec) {
  const Names volumes = check_volumes(errors, spec);
  Names names;
  const Items containers = items_in(spec, "containers", "spec.containers");
  if (containers.empty()) errors.push_back(model::required("spec.containers"));
  for (const Item container : containers) check_container(errors, container, volumes, names);
  for (const Item container : items_in(spec, "initContainers", "spec.initContainers")) {
    check_container(errors, container, volumes, names);
    check_init_container(errors, container);
  }
  for (const Item container : items_in(spec, "ephemeralContainers", "spec.ephemeralContainers"))
    check_container(errors, container, volumes, names);
  check_one_of(errors, "spec.restartPolicy", text_in(spec, "restartPolicy"),
               {"Always", "OnFailure", "Never"});
  check_one_of(errors, "spec.dnsPolicy", text_in(spec, "dnsPolicy"),
               {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"});
  check_tolerations(errors, spec);
  check_names_and_numbers(errors, spec);
}

}  // namespace hearth::apiserver
