#include "apiserver/discovery.h"

#include <algorithm>
#include <array>

#include "apiserver/digest.h"

namespace hearth::apiserver {
namespace {

using model::JsonArray;
using model::JsonObject;

const std::vector<std::string> kReadWrite = {"get", "patch", "update"};

struct KnownSubresource {
  std::string_view name;
  std::string_view group, version;
  std::string_view kind;  // empty: the resource's own
  std::vector<std::string> verbs;
};

const KnownSubresource* find_known(std::string_view name) {
  static const std::array<KnownSubresource, 14> kKnown = {{
      {"approval", "", "", "", kReadWrite},
      {"attach", "", "", "PodAttachOptions", {"create", "get"}},
      {"binding", "", "", "Binding", {"create"}},
      {"ephemeralcontainers", "", "", "", kReadWrite},
      {"eviction", "policy", "v1", "Eviction", {"create"}},
      {"exec", "", "", "PodExecOptions", {"create", "get"}},
      {"finalize", "", "", "", {"update"}},
      {"log", "", "", "", {"get"}},
      {"portforward", "", "", "PodPortForwardOptions", {"create", "get"}},
      {"proxy", "", "", "PodProxyOptions", {"create", "delete", "get", "patch", "update"}},
      {"resize", "", "", "", kReadWrite},
      {"scale", "autoscaling", "v1", "Scale", kReadWrite},
      {"status", "", "", "", kReadWrite},
      {"token", "authentication.k8s.io", "v1", "TokenRequest", {"create"}},
  }};
  for (const KnownSubresource& known : kKnown)
    if (known.name == name) return &known;
  return nullptr;
}

JsonArray to_array(const std::vector<std::string>& texts) {
  JsonArray array;
  array.reserve(texts.size());
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

Json group_version(const std::string& group, const std::string& version) {
  return JsonObject{{"groupVersion", group.empty() ? version : group + "/" + version},
                    {"version", version}};
}

JsonObject group_members(const Catalogue::Group& group) {
  JsonArray versions;
  for (const auto& version : group.versions)
    versions.push_back(group_version(group.name, version.version));
  JsonObject members{{"name", group.name}, {"versions", std::move(versions)}};
  if (!group.versions.empty())
    members["preferredVersion"] = group_version(group.name, group.versions.front().version);
  return members;
}

void add_names(JsonObject& entry, const Resource& resource) {
  if (!resource.short_names.empty()) entry["shortNames"] = to_array(resource.short_names);
  if (!resource.categories.empty()) entry["categories"] = to_array(resource.categories);
}

Json legacy_entry(const Resource& resource) {
  JsonObject entry{{"name", resource.plural},
                   {"singularName", resource.singular},
                   {"namespaced", resource.namespaced},
                   {"kind", resource.kind},
                   {"verbs", to_array(verbs_of(resource))}};
  add_names(entry, resource);
  return entry;
}

Json legacy_entry(const Resource& resource, const Subresource& sub) {
  JsonObject entry{{"name", resource.plural + "/" + sub.name},
                   {"singularName", ""},
                   {"namespaced", resource.namespaced}};
  if (!sub.group.empty()) {
    entry["group"] = sub.group;
    entry["version"] = sub.version;
  }
  entry["kind"] = sub.kind;
  entry["verbs"] = to_array(sub.verbs);
  return entry;
}

// Built-in kinds leave group and version out: they are those of the document.
Json response_kind(const Resource& resource, const std::string& group, const std::string& version,
                   const std::string& kind) {
  if (!group.empty()) return JsonObject{{"group", group}, {"version", version}, {"kind", kind}};
  return JsonObject{{"group", resource.built_in ? "" : resource.group},
                    {"version", resource.built_in ? "" : resource.version},
                    {"kind", kind}};
}

Json aggregated_entry(const Resource& resource) {
  JsonObject entry{{"resource", resource.plural},
                   {"responseKind", response_kind(resource, "", "", resource.kind)},
                   {"scope", resource.namespaced ? "Namespaced" : "Cluster"},
                   {"singularResource", resource.singular},
                   {"verbs", to_array(verbs_of(resource))}};
  add_names(entry, resource);
  JsonArray subresources;
  for (const Subresource& sub : subresources_of(resource))
    subresources.push_back(
        JsonObject{{"subresource", sub.name},
                   {"responseKind", response_kind(resource, sub.group, sub.version, sub.kind)},
                   {"verbs", to_array(sub.verbs)}});
  if (!subresources.empty()) entry["subresources"] = std::move(subresources);
  return entry;
}

Json aggregated_group(const Catalogue::Group& group) {
  JsonArray versions;
  for (const auto& version : group.versions) {
    JsonArray resources;
    for (const ResourcePtr& resource : version.resources)
      resources.push_back(aggregated_entry(*resource));
    versions.push_back(JsonObject{{"version", version.version},
                                  {"resources", std::move(resources)},
                                  {"freshness", "Current"}});
  }
  JsonObject metadata;
  if (!group.name.empty()) metadata["name"] = group.name;
  return JsonObject{{"metadata", std::move(metadata)}, {"versions", std::move(versions)}};
}

}  // namespace

std::vector<std::string> verbs_of(const Resource& resource) {
  // Reviews are answered, not kept.
  if (resource.create_only) return {"create"};
  if (resource.measured) return {"get", "list"};
  if (resource.built_in && resource.group.empty() && resource.plural == "namespaces")
    return {"create", "delete", "get", "list", "patch", "update", "watch"};
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

std::vector<Subresource> subresources_of(const Resource& resource) {
  std::vector<std::string> names = resource.subresources;
  if (resource.has_status) names.emplace_back("status");
  if (resource.scale) names.emplace_back("scale");
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<Subresource> all;
  for (std::string& name : names) {
    Subresource sub{.name = std::move(name), .kind = resource.kind, .verbs = kReadWrite};
    if (const KnownSubresource* known = find_known(sub.name)) {
      sub.group = known->group;
      sub.version = known->version;
      if (!known->kind.empty()) sub.kind = known->kind;
      sub.verbs = known->verbs;
    }
    all.push_back(std::move(sub));
  }
  return all;
}

Json api_versions(std::string_view address) {
  return JsonObject{
      {"kind", "APIVersions"},
      {"versions", JsonArray{"v1"}},
      {"serverAddressByClientCIDRs",
       JsonArray{JsonObject{{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", address}}}}};
}

Json api_group_list(const Groups& groups) {
  JsonArray all;
  for (const auto& group : groups)
    if (!group.name.empty()) all.push_back(group_members(group));
  return JsonObject{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(all)}};
}

Json api_group(const Catalogue::Group& group) {
  JsonObject answer{{"kind", "APIGroup"}, {"apiVersion", "v1"}};
  for (auto& member : group_members(group)) answer.insert(member);
  return answer;
}

Json api_resource_list(const Catalogue::Group& group, const Catalogue::Version& version) {
  JsonArray resources;
  for (const ResourcePtr& resource : version.resources) {
    resources.push_back(legacy_entry(*resource));
    for (const Subresource& sub : subresources_of(*resource))
      resources.push_back(legacy_entry(*resource, sub));
  }
  JsonObject answer{{"kind", "APIResourceList"}};
  // The oldest document of the API has never had one.
  if (!group.name.empty()) answer["apiVersion"] = "v1";
  answer["groupVersion"] =
      group.name.empty() ? version.version : group.name + "/" + version.version;
  answer["resources"] = std::move(resources);
  return answer;
}

Json aggregated_discovery(const Groups& groups, bool is_core, DiscoveryForm form) {
  JsonArray items;
  for (const auto& group : groups)
    if (group.name.empty() == is_core) items.push_back(aggregated_group(group));
  return JsonObject{{"kind", "APIGroupDiscoveryList"},
                    {"apiVersion", form == DiscoveryForm::v2 ? "apidiscovery.k8s.io/v2"
                                                             : "apidiscovery.k8s.io/v2beta1"},
                    {"metadata", JsonObject()},
                    {"items", std::move(items)}};
}

std::string_view aggregated_content_type(DiscoveryForm form) {
  return form == DiscoveryForm::v2
             ? "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
             : "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
}

std::string etag_of(std::string_view text) {
  return '"' + text_digest(text) + '"';
}

Json root_paths(const Groups& groups) {
  std::vector<std::string> paths = {"/api",    "/apis",    "/apis/",      "/healthz",
                                    "/livez",  "/metrics", "/openapi/v3", "/openapi/v3/",
                                    "/readyz", "/version"};
  for (const auto& group : groups) {
    const std::string prefix = group.name.empty() ? "/api" : "/apis/" + group.name;
    if (!group.name.empty()) paths.push_back(prefix);
    for (const auto& version : group.versions) paths.push_back(prefix + "/" + version.version);
  }
  std::sort(paths.begin(), paths.end());
  return JsonObject{{"paths", to_array(paths)}};
}

}  // namespace hearth::apiserver
