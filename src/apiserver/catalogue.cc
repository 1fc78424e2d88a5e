#include "apiserver/catalogue.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apiserver/crds.h"
#include "apiserver/digest.h"
#include "apiserver/kinds_internal.h"
#include "apiserver/strategy.h"
#include "apiserver/usage_metrics.h"
#include "base/error.h"
#include "model/conversion.h"
#include "schema/builtin.h"

namespace hearth::apiserver {
namespace {

// Subresources beside status and scale; proxy and resize are not served.
struct Subresources {
  std::string_view plural;
  std::vector<std::string> names;
};

const std::vector<Subresources>& core_subresources() {
  static const std::vector<Subresources> kRows = {
      {"namespaces", {"finalize"}},
      {"pods",
       {"attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward"}},
      {"serviceaccounts", {"token"}},
  };
  return kRows;
}

// What is asked by creating it; the answer is never kept.
struct Review {
  std::string_view group;
  std::string_view kind;
  std::string_view plural;
  bool namespaced;
};
constexpr Review kReviews[] = {
    {"", "Binding", "bindings", true},
    {"authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", false},
    {"authentication.k8s.io", "TokenReview", "tokenreviews", false},
    {"authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", true},
    {"authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false},
    {"authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false},
    {"authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", false},
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string path_of(std::string_view group, std::string_view version, std::string_view plural) {
  return fmt::format("{}/{}/{}", group, version, plural);
}

std::vector<std::string> texts_in(const JsonObject& object, std::string_view name) {
  std::vector<std::string> texts;
  if (const JsonArray* list = array_in(object, name))
    for (const Json& one : *list)
      if (const auto* text = one.if_string()) texts.emplace_back(text->data(), text->size());
  return texts;
}

Resource builtin_resource(const schema::BuiltinKind& kind) {
  Resource resource{
      .group = kind.group,
      .version = kind.version,
      .kind = kind.kind,
      .list_kind = kind.kind + "List",
      .plural = kind.plural,
      .singular = kind.singular,
      .short_names = kind.short_names,
      .categories = kind.categories,
      .namespaced = kind.namespaced,
      .built_in = true,
      .has_status = kind.has_status,
      .schema = kind.schema,
      .storage_version = kind.version,
  };
  if (kind.group.empty())
    for (const Subresources& row : core_subresources())
      if (row.plural == kind.plural) resource.subresources = row.names;
  // Both shapes of Events are one thing; the core one is kept.
  const bool is_event = kind.group == "events.k8s.io" && kind.kind == "Event";
  resource.store_name = is_event ? kind.plural : resource.group_resource().text();
  return resource;
}

std::vector<Column> columns_of(const JsonObject& version) {
  std::vector<Column> columns;
  for (const Item column : items_in(version, "additionalPrinterColumns", ""))
    columns.push_back({
        .name = std::string(text_in(column.object, "name")),
        .type = std::string(text_in(column.object, "type")),
        .format = std::string(text_in(column.object, "format")),
        .description = std::string(text_in(column.object, "description")),
        .priority = static_cast<int>(number_in(column.object, "priority").value_or(0)),
        .json_path = std::string(text_in(column.object, "jsonPath")),
    });
  return columns;
}

std::optional<ScalePaths> scale_of(const JsonObject& subresources) {
  const JsonObject* scale = object_in(subresources, "scale");
  if (!scale) return std::nullopt;
  return ScalePaths{std::string(text_in(*scale, "specReplicasPath")),
                    std::string(text_in(*scale, "statusReplicasPath")),
                    std::string(text_in(*scale, "labelSelectorPath"))};
}

// The schema of a version; the one of `before` if that came from the same text.
schema::SchemaPtr schema_of(const JsonObject& version, const ResourcePtr& before) {
  const JsonObject& holder = as_object(version.if_contains("schema"));
  const Json* source = holder.if_contains("openAPIV3Schema");
  if (!source) fail(Code::invalid, "version '{}' has no schema", text_in(version, "name"));
  if (before && before->schema && before->schema->source &&
      model::is_same(*before->schema->source, *source))
    return before->schema;
  return schema::parse_schema(*source);
}

Resource crd_resource(const Json& crd, const JsonObject& names) {
  Resource resource{
      .group = std::string(model::text_at(crd, {"spec", "group"})),
      .kind = std::string(text_in(names, "kind")),
      .list_kind = std::string(text_in(names, "listKind")),
      .plural = std::string(text_in(names, "plural")),
      .singular = std::string(text_in(names, "singular")),
      .short_names = texts_in(names, "shortNames"),
      .categories = texts_in(names, "categories"),
      .namespaced = model::text_at(crd, {"spec", "scope"}) != "Cluster",
      .storage_version = std::string(storage_version(crd)),
  };
  if (resource.singular.empty()) resource.singular = lower(resource.kind);
  if (resource.list_kind.empty()) resource.list_kind = resource.kind + "List";
  resource.store_name = resource.group_resource().text();
  return resource;
}

void set_version(Resource& resource, const Json& crd, const JsonObject& version) {
  const JsonObject& subresources = as_object(version.if_contains("subresources"));
  resource.version = text_in(version, "name");
  resource.has_status = object_in(subresources, "status") != nullptr;
  resource.scale = scale_of(subresources);
  resource.columns = columns_of(version);
  for (const Item field : items_in(version, "selectableFields", "")) {
    std::string_view path = text_in(field.object, "jsonPath");
    if (path.starts_with('.')) path.remove_prefix(1);
    resource.selectable_fields.emplace_back(path);
  }
  const Json* deprecated = version.if_contains("deprecated");
  if (deprecated && deprecated->is_bool() && deprecated->get_bool()) {
    resource.deprecation_warning = text_in(version, "deprecationWarning");
    if (resource.deprecation_warning.empty())
      resource.deprecation_warning = deprecation_warning(crd, resource.version);
  }
}

// What discovery shows of a resource.
std::string description_of(const Resource& resource) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}\n", resource.api_version(),
                     resource.plural, resource.kind, resource.singular, resource.list_kind,
                     fmt::join(resource.short_names, ","), fmt::join(resource.categories, ","),
                     resource.namespaced, resource.has_status, resource.scale.has_value(),
                     fmt::join(resource.subresources, ","), resource.create_only);
}

}  // namespace

Catalogue::Catalogue(const std::vector<Json>& crds, const Catalogue* previous, bool measures) {
  add_builtin_kinds();
  add_reviews();
  if (measures)
    for (Resource& resource : metrics_resources()) add(std::move(resource));
  std::vector<const Json*> sorted;
  sorted.reserve(crds.size());
  for (const Json& crd : crds) sorted.push_back(&crd);
  // By group and name, so that discovery looks the same whenever the same CRDs are there.
  std::sort(sorted.begin(), sorted.end(), [](const Json* left, const Json* right) {
    const auto key = [](const Json& crd) {
      return std::pair(model::text_at(crd, {"spec", "group"}),
                       model::text_at(crd, {"metadata", "name"}));
    };
    return key(*left) < key(*right);
  });
  for (const Json* crd : sorted) {
    try {
      add_crd(*crd, previous);
    } catch (const Error& error) {
      problems_.emplace(model::text_at(*crd, {"metadata", "name"}), error.what());
    }
  }
  sort_versions();
  find_stored();
  make_digest(crds);
}

void Catalogue::add_builtin_kinds() {
  for (const schema::BuiltinKind& kind : schema::builtin_kinds()) {
    Resource resource = builtin_resource(kind);
    resource.strategy = find_strategy(kind.group, kind.version, kind.kind);
    add(std::move(resource));
  }
}

void Catalogue::add_reviews() {
  for (const Review& review : kReviews) {
    Resource resource{
        .group = std::string(review.group),
        .version = "v1",
        .kind = std::string(review.kind),
        .list_kind = std::string(review.kind) + "List",
        .plural = std::string(review.plural),
        .singular = lower(review.kind),
        .namespaced = review.namespaced,
        .built_in = true,
        .create_only = true,
        .strategy = find_strategy(review.group, "v1", review.kind),
        .storage_version = "v1",
    };
    resource.schema = schema::find_builtin(resource.api_version(), resource.kind);
    resource.store_name = resource.group_resource().text();
    add(std::move(resource));
  }
}

void Catalogue::add_crd(const Json& crd, const Catalogue* previous) {
  const JsonArray* conditions = model::array_at(crd, {"status", "conditions"});
  if (conditions && !conditions->empty() && !is_established(crd)) return;
  const JsonObject& accepted = as_object(model::find(crd, {"status", "acceptedNames"}));
  const JsonObject& wanted = as_object(model::find(crd, {"spec", "names"}));
  const Resource common = crd_resource(crd, is_unset(accepted, "plural") ? wanted : accepted);
  // All versions or none: half a CRD would hide objects.
  std::vector<Resource> resources;
  for (const Item version :
       items_in(as_object(model::find(crd, {"spec"})), "versions", "spec.versions")) {
    const Json* served = version.object.if_contains("served");
    if (!served || !served->is_bool() || !served->get_bool()) continue;
    Resource resource = common;
    set_version(resource, crd, version.object);
    if (find(resource.group, resource.version, resource.plural) ||
        find_kind(resource.group, resource.version, resource.kind))
      fail(Code::conflict, "'{}' of {} is served already", resource.plural, resource.api_version());
    resource.schema = schema_of(
        version.object,
        previous ? previous->find(resource.group, resource.version, resource.plural) : nullptr);
    // Our own conversion leads to v1beta1; a CRD that keeps something else does without.
    const bool is_converted = resource.storage_version == "v1beta1" ||
                              !model::has_conversion(resource.group, resource.kind);
    resource.strategy =
        find_strategy(resource.group, is_converted ? resource.version : "", resource.kind);
    resources.push_back(std::move(resource));
  }
  for (Resource& resource : resources) add(std::move(resource));
}

void Catalogue::add(Resource resource) {
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& one) { return one.name == resource.group; });
  if (group == groups_.end()) group = groups_.insert(groups_.end(), Group{.name = resource.group});
  auto version = std::find_if(group->versions.begin(), group->versions.end(),
                              [&](const Version& one) { return one.version == resource.version; });
  if (version == group->versions.end())
    version = group->versions.insert(group->versions.end(),
                                     Version{.version = resource.version, .from_crds = true});
  version->from_crds &= !resource.built_in;
  auto shared = std::make_shared<const Resource>(std::move(resource));
  by_path_.emplace(path_of(shared->group, shared->version, shared->plural), shared);
  version->resources.push_back(std::move(shared));
}

void Catalogue::sort_versions() {
  for (Group& group : groups_) {
    std::sort(group.versions.begin(), group.versions.end(),
              [](const Version& left, const Version& right) {
                return is_preferred_version(left.version, right.version);
              });
    for (Version& version : group.versions)
      std::sort(version.resources.begin(), version.resources.end(),
                [](const ResourcePtr& left, const ResourcePtr& right) {
                  return left->plural < right->plural;
                });
  }
}

// Of each store name the version that is kept; the best of the others where that one is not served.
void Catalogue::find_stored() {
  std::map<std::string, ResourcePtr, std::less<>> by_name;
  for (const Group& group : groups_)
    for (const Version& version : group.versions)
      for (const ResourcePtr& resource : version.resources) {
        if (resource->create_only || resource->measured) continue;
        const auto [place, is_new] = by_name.emplace(resource->store_name, resource);
        if (!is_new && resource->group == place->second->group &&
            resource->version == resource->storage_version)
          place->second = resource;
      }
  for (auto& [name, resource] : by_name) stored_.push_back(std::move(resource));
}

void Catalogue::make_digest(const std::vector<Json>& crds) {
  std::string text;
  for (const Group& group : groups_)
    for (const Version& version : group.versions)
      for (const ResourcePtr& resource : version.resources) text += description_of(*resource);
  // Schemas are large and change only with the generation; one without a uid was never stored.
  for (const Json& crd : crds) {
    const std::string_view uid = model::text_at(crd, {"metadata", "uid"});
    if (uid.empty())
      text += model::to_text(crd);
    else
      text += fmt::format("{}|{}\n", uid,
                          model::number_at(crd, {"metadata", "generation"}).value_or(0));
  }
  digest_ = text_digest(text);
}

ResourcePtr Catalogue::find(std::string_view group, std::string_view version,
                            std::string_view plural) const {
  const auto found = by_path_.find(path_of(group, version, plural));
  return found == by_path_.end() ? nullptr : found->second;
}

ResourcePtr Catalogue::find_kind(std::string_view group, std::string_view version,
                                 std::string_view kind) const {
  const Group* known = find_group(group);
  if (!known) return nullptr;
  for (const Version& one : known->versions)
    if (version.empty() || one.version == version)
      for (const ResourcePtr& resource : one.resources)
        if (resource->kind == kind) return resource;
  return nullptr;
}

ResourcePtr Catalogue::storage(std::string_view store_name) const {
  const auto found = std::lower_bound(stored_.begin(), stored_.end(), store_name,
                                      [](const ResourcePtr& resource, std::string_view name) {
                                        return resource->store_name < name;
                                      });
  return found != stored_.end() && (*found)->store_name == store_name ? *found : nullptr;
}

const Catalogue::Group* Catalogue::find_group(std::string_view name) const {
  for (const Group& group : groups_)
    if (group.name == name) return &group;
  return nullptr;
}

const Catalogue::Version* Catalogue::find_version(std::string_view group,
                                                  std::string_view version) const {
  if (const Group* known = find_group(group))
    for (const Version& one : known->versions)
      if (one.version == version) return &one;
  return nullptr;
}

void to_storage(const Resource& resource, Json& object) {
  resource.strategy->to_storage(object);
  if (!resource.built_in && resource.version != resource.storage_version)
    model::make_object_at(object, {})["apiVersion"] =
        fmt::format("{}/{}", resource.group, resource.storage_version);
}

void from_storage(const Resource& resource, Json& object) {
  resource.strategy->from_storage(object);
  if (!resource.built_in && resource.version != resource.storage_version)
    model::make_object_at(object, {})["apiVersion"] = resource.api_version();
}

}  // namespace hearth::apiserver
