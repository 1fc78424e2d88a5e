#include "apiserver/open_api.h"

#include <algorithm>

#include <fmt/format.h>

#include "apiserver/digest.h"
#include "apiserver/discovery.h"
#include "apiserver/open_api_schemas.h"

namespace hearth::apiserver {
namespace {

using model::JsonArray;
using model::JsonObject;

// Part of every hash: documents of the same catalogue change when what is written here does.
constexpr std::string_view kFormat = "1";

std::string path_of(const std::string& group, const std::string& version) {
  return group.empty() ? "api/" + version : fmt::format("apis/{}/{}", group, version);
}

Json parameter(std::string_view name, std::string_view in, std::string_view type) {
  JsonObject parameter{{"name", name}, {"in", in}, {"schema", JsonObject{{"type", type}}}};
  if (in == "path") parameter["required"] = true;
  return parameter;
}

// The query parameters that a verb understands.
JsonArray query_parameters(std::string_view verb) {
  JsonArray all{parameter("pretty", "query", "string")};
  const auto add = [&](std::string_view name, std::string_view type = "string") {
    all.push_back(parameter(name, "query", type));
  };
  if (verb == "list") {
    for (const char* name :
         {"labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "continue"})
      add(name);
    for (const char* name : {"watch", "allowWatchBookmarks", "sendInitialEvents"})
      add(name, "boolean");
    for (const char* name : {"limit", "timeoutSeconds"}) add(name, "integer");
  } else if (verb == "create" || verb == "update" || verb == "patch") {
    for (const char* name : {"dryRun", "fieldManager", "fieldValidation"}) add(name);
    if (verb == "patch") add("force", "boolean");
  } else if (verb == "delete" || verb == "deletecollection") {
    for (const char* name : {"dryRun", "propagationPolicy"}) add(name);
    add("gracePeriodSeconds", "integer");
  }
  return all;
}

// The operations on one resource. What kubectl looks at: the kind in every operation, and of patch
// the parameter fieldValidation and the kinds of patches.
class Operations {
 public:
  Operations(const Resource& resource, std::string schema_name)
      : resource_(resource), schema_(std::move(schema_name)), verbs_(verbs_of(resource)) {}

  void write(JsonObject& paths) const {
    const std::string prefix = "/" + path_of(resource_.group, resource_.version);
    const std::string all = prefix + "/" + resource_.plural;
    const std::string collection =
        resource_.namespaced ? prefix + "/namespaces/{namespace}/" + resource_.plural : all;
    put(paths, collection, collection_item());
    put(paths, collection + "/{name}", object_item(""));
    if (resource_.has_status) put(paths, collection + "/{name}/status", object_item("status"));
    if (resource_.namespaced && has("list"))
      put(paths, all, JsonObject{{"get", operation("list", "", "ForAllNamespaces")}});
  }

 private:
  bool has(std::string_view verb) const {
    return std::find(verbs_.begin(), verbs_.end(), verb) != verbs_.end();
  }

  static void put(JsonObject& paths, const std::string& path, JsonObject item) {
    if (item.empty()) return;
    JsonArray parameters;
    for (const std::string_view name : {"name", "namespace"})
      if (path.find(fmt::format("{{{}}}", name)) != std::string::npos)
        parameters.push_back(parameter(name, "path", "string"));
    if (!parameters.empty()) item["parameters"] = std::move(parameters);
    paths[path] = std::move(item);
  }

  JsonObject collection_item() const {
    JsonObject item;
    if (has("list")) item["get"] = operation("list", "");
    if (has("create")) item["post"] = operation("create", "");
    if (has("deletecollection")) item["delete"] = operation("deletecollection", "");
    return item;
  }
  JsonObject object_item(std::string_view subresource) const {
    JsonObject item;
    if (has("get")) item["get"] = operation("get", subresource);
    if (has("update")) item["put"] = operation("update", subresource);
    if (has("patch")) item["patch"] = operation("patch", subresource);
    if (has("delete") && subresource.empty()) item["delete"] = operation("delete", subresource);
    return item;
  }

  // "patchAgentsV1beta1NamespacedSandboxStatus"; unique in the document.
  std::string operation_id(std::string_view verb, std::string_view subresource,
                           std::string_view suffix) const {
    std::string group = resource_.group.empty() ? "core" : resource_.group;
    std::replace(group.begin(), group.end(), '.', '_');
    return fmt::format("{}_{}_{}_{}{}{}{}", verb, group, resource_.version,
                       resource_.namespaced ? "Namespaced" : "", resource_.kind,
                       subresource.empty() ? "" : "_status", suffix);
  }

  Json content(const std::vector<std::string_view>& types, bool is_patch) const {
    const JsonObject schema = is_patch ? JsonObject{{"type", "object"}}
                                       : JsonObject{{"$ref", "#/components/schemas/" + schema_}};
    JsonObject content;
    for (const std::string_view type : types) content[type] = JsonObject{{"schema", schema}};
    return content;
  }

  Json request_content(std::string_view verb) const {
    if (verb != "patch") return content({"application/json", "application/yaml"}, false);
    std::vector<std::string_view> types = {"application/apply-patch+yaml",
                                           "application/json-patch+json",
                                           "application/merge-patch+json"};
    if (resource_.built_in) types.push_back("application/strategic-merge-patch+json");
    return content(types, true);
  }

  Json operation(std::string_view verb, std::string_view subresource,
                 std::string_view suffix = "") const {
    JsonObject operation{{"operationId", operation_id(verb, subresource, suffix)},
                         {"parameters", query_parameters(verb)}};
    if (verb == "create" || verb == "update" || verb == "patch")
      operation["requestBody"] = JsonObject{{"required", true}, {"content", request_content(verb)}};
    const bool is_object = verb != "list" && verb != "delete" && verb != "deletecollection";
    JsonObject answer{{"description", "OK"}};
    if (is_object) answer["content"] = content({"application/json"}, false);
    operation["responses"] = JsonObject{{verb == "create" ? "201" : "200", std::move(answer)}};
    operation["x-kubernetes-action"] = verb == "create" ? "post" : verb == "update" ? "put" : verb;
    operation["x-kubernetes-group-version-kind"] = JsonObject{
        {"group", resource_.group}, {"kind", resource_.kind}, {"version", resource_.version}};
    return operation;
  }

  const Resource& resource_;
  std::string schema_;
  std::vector<std::string> verbs_;
};

}  // namespace

Json open_api_document(const Catalogue::Group& group, const Catalogue::Version& version,
                       const schema::Schema& object_meta) {
  OpenApiSchemas schemas(object_meta);
  JsonObject paths;
  for (const ResourcePtr& resource : version.resources) {
    const std::string name = schemas.add(*resource);
    Operations(*resource, name).write(paths);
  }
  return JsonObject{
      {"openapi", "3.0.0"},
      {"info", JsonObject{{"title", path_of(group.name, version.version)}, {"version", "v1"}}},
      {"paths", std::move(paths)},
      {"components", JsonObject{{"schemas", schemas.take()}}}};
}

OpenApi::OpenApi(std::vector<Catalogue::Group> groups, std::string digest,
                 const schema::Schema& object_meta)
    : groups_(std::move(groups)), digest_(std::move(digest)), object_meta_(object_meta) {
  JsonObject paths;
  for (const auto& group : groups_)
    for (const auto& version : group.versions) {
      const std::string path = path_of(group.name, version.version);
      parts_[path] = {&group, &version};
      paths[path] = JsonObject{
          {"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", path, hash(path))}};
    }
  index_ = model::to_text(JsonObject{{"paths", std::move(paths)}});
}

OpenApi::Text OpenApi::document(std::string_view path) const {
  const auto part = parts_.find(path);
  if (part == parts_.end()) return nullptr;
  // Made under the lock: whoever else asks wants the same one.
  return documents_.with([&](auto& documents) {
    Text& made = documents[part->first];
    if (!made)
      made = std::make_shared<const std::string>(model::to_text(
          open_api_document(*part->second.group, *part->second.version, object_meta_)));
    return made;
  });
}

std::string OpenApi::hash(std::string_view path) const {
  if (!parts_.contains(path)) return {};
  return text_digest(fmt::format("{}\n{}\n{}", kFormat, digest_, path));
}

}  // namespace hearth::apiserver
