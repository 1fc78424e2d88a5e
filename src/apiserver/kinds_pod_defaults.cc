// What a pod gets that its author left out. Clients read these fields back and compare.
#include <algorithm>

#include "apiserver/kinds_strategies_internal.h"

namespace hearth::apiserver {
namespace {

// The policy follows the tag: what is called latest, or nothing, is looked for every time.
const char* pull_policy(std::string_view image) {
  const std::size_t digest = image.find('@');
  const std::string_view name = image.substr(0, digest);
  const std::size_t slash = name.rfind('/');
  const std::size_t colon = name.find(':', slash == std::string_view::npos ? 0 : slash);
  if (colon == std::string_view::npos)
    return digest == std::string_view::npos ? "Always" : "IfNotPresent";
  return name.substr(colon + 1) == "latest" ? "Always" : "IfNotPresent";
}

void fill_in_http_get(JsonObject& handler) {
  if (JsonObject* get = object_in(handler, "httpGet")) {
    set_default(*get, "path", "/");
    set_default(*get, "scheme", "HTTP");
  }
}

void fill_in_probe(JsonObject& probe) {
  set_default_number(probe, "timeoutSeconds", 1);
  set_default_number(probe, "periodSeconds", 10);
  set_default_number(probe, "successThreshold", 1);
  set_default_number(probe, "failureThreshold", 3);
  fill_in_http_get(probe);
  if (JsonObject* grpc = object_in(probe, "grpc")) set_default(*grpc, "service", "");
}

// A limit without a request is a request as well.
void fill_in_requests(JsonObject& resources) {
  tidy_quantities(resources, "limits");
  tidy_quantities(resources, "requests");
  const JsonObject* limits = object_in(resources, "limits");
  if (!limits || limits->empty()) return;
  JsonObject requests;
  if (const JsonObject* given = object_in(resources, "requests")) requests = *given;
  for (const auto& [name, limit] : *limits)
    if (!requests.contains(name)) requests[name] = limit;
  resources["requests"] = std::move(requests);
}

void fill_in_container(JsonObject& container, bool host_network) {
  set_default(container, "resources", JsonObject());
  if (JsonObject* resources = object_in(container, "resources")) fill_in_requests(*resources);
  set_default(container, "terminationMessagePath", "/dev/termination-log");
  set_default(container, "terminationMessagePolicy", "File");
  set_default(container, "imagePullPolicy", pull_policy(text_in(container, "image")));
  for (JsonObject* port : objects_in(container, "ports")) {
    set_default(*port, "protocol", "TCP");
    if (const auto number = number_in(*port, "containerPort"); number && host_network)
      set_default_number(*port, "hostPort", *number);
  }
  for (JsonObject* variable : objects_in(container, "env"))
    if (JsonObject* from = object_in(*variable, "valueFrom"))
      if (JsonObject* field = object_in(*from, "fieldRef")) set_default(*field, "apiVersion", "v1");
  for (const std::string_view name : {"livenessProbe", "readinessProbe", "startupProbe"})
    if (JsonObject* probe = object_in(container, name)) fill_in_probe(*probe);
  if (JsonObject* lifecycle = object_in(container, "lifecycle"))
    for (const std::string_view name : {"postStart", "preStop"})
      if (JsonObject* hook = object_in(*lifecycle, name)) fill_in_http_get(*hook);
}

void fill_in_downward_items(JsonObject& source) {
  for (JsonObject* item : objects_in(source, "items"))
    if (JsonObject* field = object_in(*item, "fieldRef")) set_default(*field, "apiVersion", "v1");
}

void fill_in_volume(JsonObject& volume) {
  constexpr int kReadable = 0644;
  constexpr int kTokenSeconds = 3600;
  const auto is_source = [](const auto& member) {
    return member.key() != "name" && !member.value().is_null();
  };
  if (std::none_of(volume.begin(), volume.end(), is_source)) volume["emptyDir"] = JsonObject();
  for (const std::string_view name : {"configMap", "secret", "projected", "downwardAPI"})
    if (JsonObject* source = object_in(volume, name))
      set_default(*source, "defaultMode", kReadable);
  if (JsonObject* folder = object_in(volume, "emptyDir"))
    if (Json* limit = folder->if_contains("sizeLimit")) tidy_quantity(*limit);
  if (JsonObject* path = object_in(volume, "hostPath")) set_default(*path, "type", "");
  if (JsonObject* downward = object_in(volume, "downwardAPI")) fill_in_downward_items(*downward);
  if (JsonObject* image = object_in(volume, "image"))
    set_default(*image, "pullPolicy", pull_policy(text_in(*image, "reference")));
  if (JsonObject* ephemeral = object_in(volume, "ephemeral"))
    if (JsonObject* claim = object_in(*ephemeral, "volumeClaimTemplate"))
      if (JsonObject* spec = object_in(*claim, "spec"))
        set_default(*spec, "volumeMode", "Filesystem");
  if (JsonObject* projected = object_in(volume, "projected"))
    for (JsonObject* source : objects_in(*projected, "sources")) {
      if (JsonObject* token = object_in(*source, "serviceAccountToken"))
        set_default(*token, "expirationSeconds", kTokenSeconds);
      if (JsonObject* downward = object_in(*source, "downwardAPI"))
        fill_in_downward_items(*downward);
    }
}

// A node that goes away keeps its pods for five minutes, unless they say otherwise.
void add_node_tolerations(JsonObject& spec) {
  constexpr int kSeconds = 300;
  for (const std::string_view taint :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    bool is_tolerated = false;
    for (const JsonObject* one : objects_in(spec, "tolerations")) {
      const std::string_view key = text_in(*one, "key");
      const std::string_view effect = text_in(*one, "effect");
      is_tolerated |= (key.empty() || key == taint) && (effect.empty() || effect == "NoExecute");
    }
    if (is_tolerated) continue;
    JsonArray* list = array_in(spec, "tolerations");
    if (!list) list = &spec["tolerations"].emplace_array();
    list->push_back(JsonObject{{"key", taint},
                               {"operator", "Exists"},
                               {"effect", "NoExecute"},
                               {"tolerationSeconds", kSeconds}});
  }
}

// The older member is an alias of the newer one, which wins.
void fill_in_service_account(JsonObject& spec) {
  std::string account(text_in(spec, "serviceAccountName"));
  if (account.empty()) account = text_in(spec, "serviceAccount");
  if (account.empty()) account = "default";
  spec["serviceAccountName"] = account;
  spec["serviceAccount"] = account;
}

}  // namespace

void fill_in_pod_spec(JsonObject& spec) {
  const Json* host = spec.if_contains("hostNetwork");
  const bool host_network = host && host->is_bool() && host->get_bool();
  for (JsonObject* volume : objects_in(spec, "volumes")) fill_in_volume(*volume);
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"})
    for (JsonObject* container : objects_in(spec, list))
      fill_in_container(*container, host_network);
  set_default(spec, "restartPolicy", "Always");
  const auto grace = number_in(spec, "terminationGracePeriodSeconds");
  if (grace && *grace < 0) spec["terminationGracePeriodSeconds"] = 1;
  set_default(spec, "terminationGracePeriodSeconds", 30);
  set_default(spec, "dnsPolicy", "ClusterFirst");
  fill_in_service_account(spec);
  set_default(spec, "securityContext", JsonObject());
  set_default(spec, "schedulerName", "default-scheduler");
  add_node_tolerations(spec);
  set_default(spec, "priority", 0);
  set_default(spec, "enableServiceLinks", true);
  set_default(spec, "preemptionPolicy", "PreemptLowerPriority");
}

}  // namespace hearth::apiserver
