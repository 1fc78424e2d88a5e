#include "apiserver/furniture.h"

#include "access/defaults.h"
#include "apiserver/cluster_ip.h"
#include "apiserver/digest.h"
#include "apiserver/object_meta.h"
#include "schema/builtin.h"

namespace hearth::apiserver {
namespace {

// What is missing at the next start is made again: no need to wait for the disk each time.
const WriteOptions kQuietly{.manager = "hearth", .durability = store::Durability::process};
constexpr std::string_view kDefinitions = "customresourcedefinitions.apiextensions.k8s.io";
// Which text of ours a definition was written from: another one is a newer release's.
constexpr std::string_view kDigestAnnotation = "hearth.dev/definition-digest";

Json named(std::string_view name) {
  Json object = model::JsonObject();
  model::make_object_at(object, {"metadata"})["name"] = name;
  return object;
}

void create_missing(Objects& objects, store::Store& store, const Resource& resource,
                    std::string_view ns, Json object) {
  const std::string name(name_of(object));
  if (store.find({resource.store_name, std::string(ns), name})) return;
  object.as_object()["kind"] = resource.kind;
  object.as_object()["apiVersion"] = resource.api_version();
  objects.create({resource, std::string(ns), ""}, {std::move(object), {}}, kQuietly);
}

Json api_service() {
  Json service = named("kubernetes");
  model::make_object_at(service, {"metadata", "labels"})["component"] = "apiserver";
  model::make_object_at(service, {"metadata", "labels"})["provider"] = "kubernetes";
  model::JsonObject& spec = model::make_object_at(service, {"spec"});
  spec["clusterIP"] = kApiServerClusterIp;
  spec["ports"] =
      model::JsonArray{model::JsonObject{{"name", "https"}, {"port", 443}, {"protocol", "TCP"}}};
  return service;
}

}  // namespace

void put_definitions(Objects& objects, store::Store& store, const Catalogue& catalogue) {
  const ResourcePtr resource = catalogue.storage(kDefinitions);
  HEARTH_ASSERT(resource);
  for (const schema::BuiltinCrd& ours : schema::builtin_crds()) {
    const std::string digest = text_digest(ours.json);
    const Place place{*resource, "", std::string(ours.name)};
    const store::ObjectPtr kept =
        store.find({std::string(kDefinitions), "", std::string(ours.name)});
    if (kept && kept->text.find(digest) != std::string::npos) continue;
    Json definition = model::parse_json(ours.json).value;
    model::make_object_at(definition, {"metadata", "annotations"})[kDigestAnnotation] = digest;
    if (!kept) {
      objects.create({*resource, "", ""}, {std::move(definition), {}}, kQuietly);
    } else {
      model::make_object_at(definition, {"metadata"})["resourceVersion"] =
          std::to_string(kept->revision);
      objects.update(place, {std::move(definition), {}}, "", kQuietly);
    }
  }
}

void furnish(Objects& objects, store::Store& store, const Catalogue& catalogue) {
  const ResourcePtr namespaces = catalogue.find("", "v1", "namespaces");
  const ResourcePtr services = catalogue.find("", "v1", "services");
  HEARTH_ASSERT(namespaces && services);
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"})
    create_missing(objects, store, *namespaces, "", named(name));
  for (Json& role : access::default_roles()) {
    const ResourcePtr resource =
        catalogue.find_kind("rbac.authorization.k8s.io", "v1", model::text_at(role, {"kind"}));
    HEARTH_ASSERT(resource);
    const std::string ns(namespace_of(role));
    create_missing(objects, store, *resource, ns, std::move(role));
  }
  create_missing(objects, store, *services, "default", api_service());
}

}  // namespace hearth::apiserver
