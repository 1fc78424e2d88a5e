#include "apiserver/builtin_columns.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apiserver/usage_metrics.h"
#include "model/age.h"
#include "model/quantity.h"
#include "model/selector.h"

namespace hearth::apiserver {
namespace {

using model::array_at;
using model::JsonArray;
using model::JsonObject;
using model::number_at;
using model::object_at;
using model::text_at;

std::string_view text_of(const Json& value) {
  const auto* text = value.if_string();
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

std::string_view name_of(const Json& object) {
  return text_at(object, {"metadata", "name"});
}

std::vector<std::string> texts_at(const Json& value, model::Path path) {
  std::vector<std::string> texts;
  if (const JsonArray* array = array_at(value, path))
    for (const Json& text : *array) texts.emplace_back(text_of(text));
  return texts;
}

std::int64_t size_at(const Json& object, std::string_view member) {
  const JsonObject* members = object_at(object, {member});
  return members ? static_cast<std::int64_t>(members->size()) : 0;
}

// "a=b,c=d", sorted.
std::string map_text(const JsonObject* map) {
  std::vector<std::string> pairs;
  if (map)
    for (const auto& [key, value] : *map)
      pairs.push_back(
          fmt::format("{}={}", std::string_view(key.data(), key.size()), text_of(value)));
  std::sort(pairs.begin(), pairs.end());
  return text_or(fmt::format("{}", fmt::join(pairs, ",")), "<none>");
}

std::string load_balancer(const Json& service) {
  std::set<std::string> addresses;
  if (const JsonArray* ingress = array_at(service, {"status", "loadBalancer", "ingress"}))
    for (const Json& one : *ingress) {
      const std::string_view ip = text_at(one, {"ip"});
      const std::string_view name = ip.empty() ? text_at(one, {"hostname"}) : ip;
      if (!name.empty()) addresses.emplace(name);
    }
  return fmt::format("{}", fmt::join(addresses, ","));
}

std::string external_address(const Json& service) {
  const std::string_view type = text_at(service, {"spec", "type"});
  if (type == "ExternalName") return std::string(text_at(service, {"spec", "externalName"}));
  if (type != "ClusterIP" && type != "NodePort" && type != "LoadBalancer") return "<unknown>";
  std::vector<std::string> addresses = texts_at(service, {"spec", "externalIPs"});
  if (type == "LoadBalancer")
    if (std::string balanced = load_balancer(service); !balanced.empty())
      addresses.insert(addresses.begin(), std::move(balanced));
  return text_or(fmt::format("{}", fmt::join(addresses, ",")),
                 type == "LoadBalancer" ? "<pending>" : "<none>");
}

std::string service_ports(const Json& service) {
  std::vector<std::string> texts;
  if (const JsonArray* ports = array_at(service, {"spec", "ports"}))
    for (const Json& port : *ports) {
      std::string text = fmt::format("{}", number_at(port, {"port"}).value_or(0));
      if (const auto node_port = number_at(port, {"nodePort"}).value_or(0); node_port > 0)
        text += fmt::format(":{}", node_port);
      texts.push_back(text + fmt::format("/{}", text_at(port, {"protocol"})));
    }
  return text_or(fmt::format("{}", fmt::join(texts, ",")), "<none>");
}

void service_cells(const Json& service, Time now, JsonArray& cells) {
  const auto addresses = texts_at(service, {"spec", "clusterIPs"});
  const std::string_view address =
      addresses.empty() ? text_at(service, {"spec", "clusterIP"}) : addresses.front();
  cells = {name_of(service),
           text_at(service, {"spec", "type"}),
           text_or(address, "<none>"),
           external_address(service),
           service_ports(service),
           object_age(service, now),
           map_text(object_at(service, {"spec", "selector"}))};
}

std::string access_modes(const Json& object, std::string_view part) {
  static constexpr std::pair<std::string_view, std::string_view> kModes[] = {
      {"ReadWriteOnce", "RWO"},
      {"ReadOnlyMany", "ROX"},
      {"ReadWriteMany", "RWX"},
      {"ReadWriteOncePod", "RWOP"}};
  const auto modes = texts_at(object, {part, "accessModes"});
  std::vector<std::string_view> short_ones;
  for (const auto& [mode, short_one] : kModes)
    if (std::find(modes.begin(), modes.end(), mode) != modes.end()) short_ones.push_back(short_one);
  return fmt::format("{}", fmt::join(short_ones, ","));
}

std::string capacity(const Json& object, std::string_view part) {
  const std::string_view text = text_at(object, {part, "capacity", "storage"});
  const auto quantity = model::Quantity::parse(text);
  return quantity ? quantity->text() : text_or(text, "0");
}

std::string storage_class(const Json& object) {
  const std::string_view old =
      text_at(object, {"metadata", "annotations", "volume.beta.kubernetes.io/storage-class"});
  return text_or(old, text_at(object, {"spec", "storageClassName"}));
}

std::string phase(const Json& object) {
  const bool is_deleted = !text_at(object, {"metadata", "deletionTimestamp"}).empty();
  return is_deleted ? "Terminating" : std::string(text_at(object, {"status", "phase"}));
}

std::string volume_mode(const Json& object) {
  return text_or(text_at(object, {"spec", "volumeMode"}), "<unset>");
}

std::string attributes_class(const Json& object) {
  return text_or(text_at(object, {"spec", "volumeAttributesClassName"}), "<unset>");
}

void claim_cells(const Json& claim, Time now, JsonArray& cells) {
  const std::string_view volume = text_at(claim, {"spec", "volumeName"});
  const bool is_bound = !volume.empty();
  cells = {name_of(claim),
           phase(claim),
           volume,
           is_bound ? capacity(claim, "status") : "",
           is_bound ? access_modes(claim, "status") : "",
           storage_class(claim),
           attributes_class(claim),
           object_age(claim, now),
           volume_mode(claim)};
}

void volume_cells(const Json& volume, Time now, JsonArray& cells) {
  std::string claim;
  if (object_at(volume, {"spec", "claimRef"}))
    claim = fmt::format("{}/{}", text_at(volume, {"spec", "claimRef", "namespace"}),
                        text_at(volume, {"spec", "claimRef", "name"}));
  cells = {name_of(volume),
           capacity(volume, "spec"),
           access_modes(volume, "spec"),
           text_at(volume, {"spec", "persistentVolumeReclaimPolicy"}),
           phase(volume),
           claim,
           storage_class(volume),
           attributes_class(volume),
           text_at(volume, {"status", "reason"}),
           object_age(volume, now),
           volume_mode(volume)};
}

// An event has two spellings, core/v1's and events.k8s.io/v1's.
std::string_view either(const Json& event, model::Path core, model::Path events) {
  const std::string_view text = text_at(event, core);
  return text.empty() ? text_at(event, events) : text;
}

std::string event_target(const Json& event) {
  std::string kind(either(event, {"involvedObject", "kind"}, {"regarding", "kind"}));
  for (char& c : kind)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const std::string_view name = either(event, {"involvedObject", "name"}, {"regarding", "name"});
  return name.empty() ? kind : fmt::format("{}/{}", kind, name);
}

std::string event_source(const Json& event) {
  const std::string_view component =
      either(event, {"source", "component"}, {"deprecatedSource", "component"});
  const std::string_view host = either(event, {"source", "host"}, {"deprecatedSource", "host"});
  const std::string who =
      text_or(component, either(event, {"reportingComponent"}, {"reportingController"}));
  const std::string where = text_or(host, text_at(event, {"reportingInstance"}));
  return where.empty() ? who : who + ", " + where;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

void event_cells(const Json& event, Time now, JsonArray& cells) {
  std::string_view first = either(event, {"firstTimestamp"}, {"deprecatedFirstTimestamp"});
  if (first.empty()) first = text_at(event, {"eventTime"});
  std::string_view last = either(event, {"lastTimestamp"}, {"deprecatedLastTimestamp"});
  if (last.empty()) last = first;
  std::int64_t count = number_at(event, {"count"}).value_or(0);
  if (count == 0) count = number_at(event, {"deprecatedCount"}).value_or(0);
  if (object_at(event, {"series"})) {
    last = text_at(event, {"series", "lastObservedTime"});
    count = number_at(event, {"series", "count"}).value_or(0);
  }
  cells = {model::age_since(last, now),
           text_at(event, {"type"}),
           text_at(event, {"reason"}),
           event_target(event),
           either(event, {"involvedObject", "fieldPath"}, {"regarding", "fieldPath"}),
           event_source(event),
           trimmed(either(event, {"message"}, {"note"})),
           model::age_since(first, now),
           count == 0 ? 1 : count,
           name_of(event)};
}

std::string node_status(const Json& node) {
  std::string status = "Unknown";
  if (const JsonArray* conditions = array_at(node, {"status", "conditions"}))
    for (const Json& condition : *conditions)
      if (text_at(condition, {"type"}) == "Ready")
        status = text_at(condition, {"status"}) == "True" ? "Ready" : "NotReady";
  if (model::is_true_at(node, {"spec", "unschedulable"})) status += ",SchedulingDisabled";
  return status;
}

std::string node_roles(const Json& node) {
  static constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  for (const auto& [key, value] : model::labels_of(node)) {
    if (key.starts_with(kPrefix) && key.size() > kPrefix.size())
      roles.insert(key.substr(kPrefix.size()));
    if (key == "kubernetes.io/role" && !value.empty()) roles.insert(value);
  }
  return text_or(fmt::format("{}", fmt::join(roles, ",")), "<none>");
}

std::string node_address(const Json& node, std::string_view type) {
  if (const JsonArray* addresses = array_at(node, {"status", "addresses"}))
    for (const Json& address : *addresses)
      if (text_at(address, {"type"}) == type) return std::string(text_at(address, {"address"}));
  return "<none>";
}

void node_cells(const Json& node, Time now, JsonArray& cells) {
  const auto info = [&](std::string_view member) {
    return text_at(node, {"status", "nodeInfo", member});
  };
  std::string kernel = text_or(info("kernelVersion"), "<unknown>");
  if (const std::string_view machine = info("architecture"); !machine.empty())
    kernel += fmt::format(" ({})", machine);
  cells = {name_of(node),
           node_status(node),
           node_roles(node),
           object_age(node, now),
           info("kubeletVersion"),
           node_address(node, "InternalIP"),
           node_address(node, "ExternalIP"),
           text_or(info("osImage"), "<unknown>"),
           kernel,
           text_or(info("containerRuntimeVersion"), "<unknown>")};
}

void namespace_cells(const Json& object, Time now, JsonArray& cells) {
  cells = {name_of(object), text_at(object, {"status", "phase"}), object_age(object, now)};
}

void secret_cells(const Json& secret, Time now, JsonArray& cells) {
  cells = {name_of(secret), text_at(secret, {"type"}), size_at(secret, "data"),
           object_age(secret, now)};
}

void config_map_cells(const Json& map, Time now, JsonArray& cells) {
  cells = {name_of(map), size_at(map, "data") + size_at(map, "binaryData"), object_age(map, now)};
}

void plain_cells(const Json& object, Time now, JsonArray& cells) {
  cells = {name_of(object), object_age(object, now)};
}

void lease_cells(const Json& lease, Time now, JsonArray& cells) {
  cells = {name_of(lease), text_at(lease, {"spec", "holderIdentity"}), object_age(lease, now)};
}

void policy_cells(const Json& policy, Time now, JsonArray& cells) {
  std::string selector = "<none>";
  try {
    if (const Json* chosen = model::find(policy, {"spec", "podSelector"}))
      selector = text_or(model::LabelSelector::from_object(*chosen).text(), "<none>");
  } catch (const Error&) {
    selector = "<error>";
  }
  cells = {name_of(policy), selector, object_age(policy, now)};
}

void binding_cells(const Json& binding, Time now, JsonArray& cells) {
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<std::string> accounts;
  if (const JsonArray* subjects = array_at(binding, {"subjects"}))
    for (const Json& subject : *subjects) {
      const std::string_view kind = text_at(subject, {"kind"});
      const std::string name(text_at(subject, {"name"}));
      if (kind == "User") users.push_back(name);
      if (kind == "Group") groups.push_back(name);
      if (kind == "ServiceAccount")
        accounts.push_back(fmt::format("{}/{}", text_at(subject, {"namespace"}), name));
    }
  cells = {name_of(binding),
           fmt::format("{}/{}", text_at(binding, {"roleRef", "kind"}),
                       text_at(binding, {"roleRef", "name"})),
           object_age(binding, now),
           fmt::format("{}", fmt::join(users, ", ")),
           fmt::format("{}", fmt::join(groups, ", ")),
           fmt::format("{}", fmt::join(accounts, ", "))};
}

void storage_class_cells(const Json& object, Time now, JsonArray& cells) {
  cells = {name_of(object),
           text_at(object, {"provisioner"}),
           text_or(text_at(object, {"reclaimPolicy"}), "Delete"),
           text_or(text_at(object, {"volumeBindingMode"}), "Immediate"),
           model::is_true_at(object, {"allowVolumeExpansion"}),
           object_age(object, now)};
}

// A list of names; '|' begins those that are for -o wide, '+' marks a single one of them.
std::vector<Column> columns(std::initializer_list<std::string_view> names) {
  std::vector<Column> all;
  int priority = 0;
  for (std::string_view name : names) {
    if (name == "|") {
      priority = 1;
      continue;
    }
    const bool is_wide = name.starts_with('+');
    if (is_wide) name.remove_prefix(1);
    all.push_back({.name = std::string(name),
                   .type = "string",
                   .format = name == "Name" ? "name" : "",
                   .priority = is_wide ? 1 : priority});
  }
  return all;
}

std::vector<BuiltinColumns> make_all() {
  const auto events = columns({"Last Seen", "Type", "Reason", "Object", "+Subobject", "+Source",
                               "Message", "+First Seen", "+Count", "+Name"});
  const auto bindings = columns({"Name", "Role", "Age", "|", "Users", "Groups", "ServiceAccounts"});
  constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
  return {
      {"", "Pod",
       columns({"Name", "Ready", "Status", "Restarts", "Age", "|", "IP", "Node", "Nominated Node",
                "Readiness Gates"}),
       pod_cells},
      {"", "Service",
       columns({"Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "|", "Selector"}),
       service_cells},
      {"", "PersistentVolumeClaim",
       columns({"Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass",
                "VolumeAttributesClass", "Age", "|", "VolumeMode"}),
       claim_cells},
      {"", "PersistentVolume",
       columns({"Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim",
                "StorageClass", "VolumeAttributesClass", "Reason", "Age", "|", "VolumeMode"}),
       volume_cells},
      {"", "Namespace", columns({"Name", "Status", "Age"}), namespace_cells},
      {"", "Event", events, event_cells},
      {"events.k8s.io", "Event", events, event_cells},
      {"", "Secret", columns({"Name", "Type", "Data", "Age"}), secret_cells},
      {"", "ConfigMap", columns({"Name", "Data", "Age"}), config_map_cells},
      {"", "ServiceAccount", columns({"Name", "Age"}), plain_cells},
      {"", "Node",
       columns({"Name", "Status", "Roles", "Age", "Version", "|", "Internal-IP", "External-IP",
                "OS-Image", "Kernel-Version", "Container-Runtime"}),
       node_cells},
      {"discovery.k8s.io", "EndpointSlice",
       columns({"Name", "AddressType", "Ports", "Endpoints", "Age"}), endpoint_slice_cells},
      {kMetricsGroup, "NodeMetrics", columns({"Name", "cpu", "memory", "Window"}),
       node_metrics_cells},
      {kMetricsGroup, "PodMetrics", columns({"Name", "cpu", "memory", "Window"}),
       pod_metrics_cells},
      {"coordination.k8s.io", "Lease", columns({"Name", "Holder", "Age"}), lease_cells},
      {"networking.k8s.io", "NetworkPolicy", columns({"Name", "Pod-Selector", "Age"}),
       policy_cells},
      {kRbac, "RoleBinding", bindings, binding_cells},
      {kRbac, "ClusterRoleBinding", bindings, binding_cells},
      {"storage.k8s.io", "StorageClass",
       columns({"Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion",
                "Age"}),
       storage_class_cells},
  };
}

}  // namespace

const BuiltinColumns* find_builtin_columns(std::string_view group, std::string_view kind) {
  static const std::vector<BuiltinColumns> kAll = make_all();
  for (const BuiltinColumns& one : kAll)
    if (one.group == group && one.kind == kind) return &one;
  return nullptr;
}

std::string object_age(const Json& object, Time now) {
  return model::age_since(text_at(object, {"metadata", "creationTimestamp"}), now);
}

std::string text_or(std::string_view text, std::string_view otherwise) {
  return std::string(text.empty() ? otherwise : text);
}

}  // namespace hearth::apiserver
