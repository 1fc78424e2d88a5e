#include "access/defaults.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "access/rules.h"
#include "access/user.h"

namespace hearth::access {
namespace {

using Words = std::vector<std::string>;

const Words kRead = {"get", "list", "watch"};
const Words kWrite = {"create", "delete", "deletecollection", "patch", "update"};
constexpr const char* kCore = "";
constexpr const char* kEvents = "events.k8s.io";
constexpr const char* kAgents = "agents.x-k8s.io";
constexpr const char* kAgentExtensions = "extensions.agents.x-k8s.io";
constexpr const char* kNetworking = "networking.k8s.io";
constexpr const char* kCoordination = "coordination.k8s.io";
constexpr const char* kAuthentication = "authentication.k8s.io";
constexpr const char* kAuthorization = "authorization.k8s.io";

Rule on(Words verbs, Words groups, Words resources) {
  return {
      .verbs = std::move(verbs), .groups = std::move(groups), .resources = std::move(resources)};
}

Rule paths(Words verbs, Words urls) {
  return {.verbs = std::move(verbs), .urls = std::move(urls)};
}

JsonObject object(std::string_view kind, std::string_view name) {
  return {{"apiVersion", fmt::format("{}/v1", kRbacGroup)},
          {"kind", kind},
          {"metadata",
           {{"name", name}, {"labels", {{"kubernetes.io/bootstrapping", "rbac-defaults"}}}}}};
}

Json role(std::string_view name, const std::vector<Rule>& rules) {
  Json made = object("ClusterRole", name);
  JsonArray listed;
  for (const Rule& rule : rules) listed.push_back(to_json(rule));
  made.as_object()["rules"] = std::move(listed);
  return made;
}

std::string aggregation_label(std::string_view role) {
  return fmt::format("{}/aggregate-to-{}", kRbacGroup, role);
}

// Whose rules the role `into` has as well.
Json part_of(std::string_view into, Json role) {
  model::make_object_at(role, {"metadata", "labels"})[aggregation_label(into)] = "true";
  return role;
}

// Gathers the rules of all that say they are part of it: those of add-ons too.
Json gathering(std::string_view name) {
  Json made = role(name, {});
  JsonObject selector{{"matchLabels", {{aggregation_label(name), "true"}}}};
  made.as_object()["aggregationRule"] = {
      {"clusterRoleSelectors", JsonArray({std::move(selector)})}};
  return made;
}

Json binding(std::string_view role_name, const std::vector<std::string_view>& groups) {
  Json made = object("ClusterRoleBinding", role_name);
  made.as_object()["roleRef"] = {
      {"apiGroup", kRbacGroup}, {"kind", "ClusterRole"}, {"name", role_name}};
  JsonArray subjects;
  for (const std::string_view group : groups)
    subjects.push_back({{"apiGroup", kRbacGroup}, {"kind", "Group"}, {"name", group}});
  made.as_object()["subjects"] = std::move(subjects);
  return made;
}

// Everything in a namespace that gives no power over others: no secrets, no way into a pod.
std::vector<Rule> view_rules() {
  return {
      on(kRead, {kCore},
         {"pods", "pods/log", "pods/status", "services", "services/status", "endpoints",
          "configmaps", "serviceaccounts", "persistentvolumeclaims",
          "persistentvolumeclaims/status", "namespaces", "namespaces/status", "resourcequotas",
          "limitranges"}),
      on(kRead, {kCore, kEvents}, {"events"}),
      on(kRead, {kNetworking}, {"networkpolicies"}),
      on(kRead, {"policy"}, {"poddisruptionbudgets"}),
      on(kRead, {kAgents}, {"sandboxes", "sandboxes/status", "sandboxes/scale"}),
      on(kRead, {kAgentExtensions},
         {"sandboxclaims", "sandboxclaims/status", "sandboxtemplates", "sandboxtemplates/status",
          "sandboxwarmpools", "sandboxwarmpools/status", "sandboxwarmpools/scale"})};
}

std::vector<Rule> edit_rules() {
  Words read_write = kRead;
  read_write.insert(read_write.end(), kWrite.begin(), kWrite.end());
  return {
      on(kRead, {kCore},
         {"secrets", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy",
          "services/proxy"}),
      on({"impersonate"}, {kCore}, {"serviceaccounts"}),
      on({"create"}, {kCore}, {"pods/eviction", "serviceaccounts/token"}),
      on(kWrite, {kCore},
         {"pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services",
          "services/proxy", "configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims"}),
      on(kWrite, {kCore, kEvents}, {"events"}),
      on(kWrite, {kNetworking}, {"networkpolicies"}),
      on(kWrite, {"policy"}, {"poddisruptionbudgets"}),
      on(read_write, {kCoordination}, {"leases"}),
      on(kWrite, {kAgents}, {"sandboxes", "sandboxes/scale"}),
      on(kWrite, {kAgentExtensions},
         {"sandboxclaims", "sandboxtemplates", "sandboxwarmpools", "sandboxwarmpools/scale"})};
}

std::vector<Rule> admin_rules() {
  Words read_write = kRead;
  read_write.insert(read_write.end(), kWrite.begin(), kWrite.end());
  return {on({"create"}, {kAuthorization}, {"localsubjectaccessreviews"}),
          on(read_write, {std::string(kRbacGroup)}, {"roles", "rolebindings"})};
}

// What the agent of a machine needs: its pods, their secrets and volumes, and to report.
std::vector<Rule> node_rules() {
  return {on({"create"}, {kAuthentication}, {"tokenreviews"}),
          on({"create"}, {kAuthorization}, {"subjectaccessreviews", "localsubjectaccessreviews"}),
          on(kRead, {kCore}, {"services", "endpoints", "secrets", "configmaps", "serviceaccounts"}),
          on({"create", "get", "list", "watch", "update", "patch"}, {kCore}, {"nodes"}),
          on({"get", "update", "patch"}, {kCore},
             {"nodes/status", "pods/status", "persistentvolumeclaims/status"}),
          on({"get", "list", "watch", "create", "delete"}, {kCore}, {"pods"}),
          on({"create"}, {kCore}, {"pods/eviction", "serviceaccounts/token"}),
          on(kRead, {kCore}, {"persistentvolumeclaims", "persistentvolumes"}),
          on({"create", "update", "patch"}, {kCore, kEvents}, {"events"}),
          on({"get", "create", "update", "patch", "delete"}, {kCoordination}, {"leases"})};
}

const Words kPublicPaths = {"/healthz", "/livez", "/readyz", "/version", "/version/"};

Words discovery_paths() {
  Words all = kPublicPaths;
  for (const char* path : {"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"})
    all.emplace_back(path);
  return all;
}

}  // namespace

std::vector<Json> default_roles() {
  return {
      role("cluster-admin", {on({"*"}, {"*"}, {"*"}), paths({"*"}, {"*"})}),
      gathering("admin"),
      part_of("admin", gathering("edit")),
      part_of("edit", gathering("view")),
      part_of("admin", role("system:aggregate-to-admin", admin_rules())),
      part_of("edit", role("system:aggregate-to-edit", edit_rules())),
      part_of("view", role("system:aggregate-to-view", view_rules())),
      part_of("view", role("system:aggregated-metrics-reader",
                           {on(kRead, {"metrics.k8s.io"}, {"nodes", "pods"})})),
      role("system:discovery", {paths({"get"}, discovery_paths())}),
      role("system:basic-user", {on({"create"}, {kAuthorization},
                                    {"selfsubjectaccessreviews", "selfsubjectrulesreviews"}),
                                 on({"create"}, {kAuthentication}, {"selfsubjectreviews"})}),
      role("system:public-info-viewer", {paths({"get"}, kPublicPaths)}),
      role("system:monitoring", {paths({"get"}, {"/metrics", "/healthz", "/healthz/*", "/livez",
                                                 "/livez/*", "/readyz", "/readyz/*"})}),
      role("system:node", node_rules()),
      binding("cluster-admin", {kMasters}),
      binding("system:discovery", {kAuthenticated}),
      binding("system:basic-user", {kAuthenticated}),
      binding("system:public-info-viewer", {kAuthenticated, kUnauthenticated}),
      binding("system:monitoring", {"system:monitoring"}),
      binding("system:node", {kNodes}),
  };
}

}  // namespace hearth::access
