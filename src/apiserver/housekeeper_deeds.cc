// What the housekeeper does about what it has seen.
#include <algorithm>

#include "apiserver/housekeeper.h"
#include "apiserver/kept.h"
#include "apiserver/object_meta.h"
#include "base/log.h"
#include "base/time_text.h"
#include "model/read_json.h"

namespace hearth::apiserver {
namespace {

constexpr std::string_view kNamespaces = "namespaces";

// By its creation, or by the last time it was seen again.
bool is_older(const store::Object& event, Time than) {
  const Json json = model::read_json(event.text);
  std::string_view text = model::text_at(json, {"lastTimestamp"});
  if (text.empty()) text = model::text_at(json, {"metadata", "creationTimestamp"});
  const auto time = parse_rfc3339(text);
  return time && *time < than;
}

}  // namespace

Housekeeper::Owner Housekeeper::find_owner(const Catalogue& catalogue, const std::string& ns,
                                           const Json& reference) const {
  const std::string api_version(model::text_at(reference, {"apiVersion"}));
  const std::size_t slash = api_version.find('/');
  const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  const ResourcePtr resource = catalogue.find_kind(group, "", model::text_at(reference, {"kind"}));
  // Of a kind that is not served nobody can say whether it is there. Nor can something that belongs
  // to the whole cluster be owned by something in one namespace.
  if (!resource || (resource->namespaced && ns.empty()))
    return {.is_known = false, .object = nullptr};
  store::ObjectPtr object = store_.find({resource->store_name, resource->namespaced ? ns : "",
                                         std::string(model::text_at(reference, {"name"}))});
  if (object && object->tags.find(kUidTag) != model::text_at(reference, {"uid"})) object = nullptr;
  return {.is_known = true, .object = std::move(object)};
}

// Something that has owners: goes when none of them is left.
void Housekeeper::collect(const Place& place, const Json& object) {
  const CataloguePtr catalogue = catalogue_();
  std::vector<std::string> absent;
  bool has_owner = false;
  bool is_waited_for = false;
  for (const Json& reference : *model::array_at(object, {"metadata", "ownerReferences"})) {
    const Owner owner = find_owner(*catalogue, place.ns, reference);
    if (owner.is_known && !owner.object) {
      absent.emplace_back(model::text_at(reference, {"uid"}));
      continue;
    }
    has_owner = true;
    if (!owner.object || !owner.object->tags.find(kEndingTag)) continue;
    const auto finalizers = finalizers_of(model::read_json(owner.object->text));
    if (std::find(finalizers.begin(), finalizers.end(), "foregroundDeletion") != finalizers.end())
      is_waited_for = true;
  }
  if (absent.empty() && !is_waited_for) return;
  if (!has_owner || (is_waited_for && absent.empty())) {
    DeleteOptions options;
    options.uid = std::string(uid_of(object));
    options.propagation = is_waited_for ? "Foreground" : "Background";
    objects_.remove(place, options);
    return;
  }
  objects_.amend(place, [&](Json& current) {
    Json* found = model::find(current, {"metadata", "ownerReferences"});
    model::JsonArray* references = found ? found->if_array() : nullptr;
    if (!references) return false;
    const std::size_t before = references->size();
    for (auto at = references->begin(); at != references->end();) {
      const bool gone =
          std::find(absent.begin(), absent.end(), model::text_at(*at, {"uid"})) != absent.end();
      at = gone ? references->erase(at) : at + 1;
    }
    return references->size() != before;
  });
}

// Something that is being deleted and waits for us.
void Housekeeper::end(const Place& place, const Json& object) {
  for (const std::string& finalizer : finalizers_of(object)) {
    if (finalizer == "orphan") orphan_dependents(place, object);
    if (finalizer == "foregroundDeletion") delete_in_foreground(place, object);
    if (finalizer == "kubernetes.io/pvc-protection") release_claim(place, object);
    if (finalizer == "customresourcecleanup.apiextensions.k8s.io") end_definition(place, object);
  }
  if (place.resource.store_name == kNamespaces) end_namespace(place);
}

void Housekeeper::orphan_dependents(const Place& place, const Json& object) {
  const std::string uid(uid_of(object));
  const CataloguePtr catalogue = catalogue_();
  const std::set<store::Key> dependents = dependents_[uid];
  for (const store::Key& key : dependents) {
    const auto dependent = place_of(catalogue, key);
    if (!dependent) continue;
    objects_.amend(*dependent, [&](Json& current) {
      Json* found = model::find(current, {"metadata", "ownerReferences"});
      model::JsonArray* references = found ? found->if_array() : nullptr;
      if (!references) return false;
      const std::size_t before = references->size();
      for (auto at = references->begin(); at != references->end();)
        at = model::text_at(*at, {"uid"}) == uid ? references->erase(at) : at + 1;
      const bool changed = references->size() != before;
      if (references->empty()) model::erase_at(current, {"metadata", "ownerReferences"});
      return changed;
    });
  }
  objects_.amend(place, [](Json& current) { return remove_finalizer(current, "orphan"); });
}

void Housekeeper::delete_in_foreground(const Place& place, const Json& object) {
  const std::string uid(uid_of(object));
  const CataloguePtr catalogue = catalogue_();
  bool must_wait = false;
  const std::set<store::Key> dependents = dependents_[uid];
  for (const store::Key& key : dependents) {
    const auto dependent = place_of(catalogue, key);
    const store::ObjectPtr kept = store_.find(key);
    if (!dependent || !kept) continue;
    const JsonPtr seen = look(*kept, dependent->resource);
    const Json& json = *seen;
    for (const Json& reference : *model::array_at(json, {"metadata", "ownerReferences"}))
      if (model::text_at(reference, {"uid"}) == uid &&
          model::is_true_at(reference, {"blockOwnerDeletion"}))
        must_wait = true;
    if (!is_deleting(json)) collect(*dependent, json);
  }
  // Those that went at once are not waited for.
  follow();
  if (must_wait && !dependents_[uid].empty()) return;
  objects_.amend(place,
                 [](Json& current) { return remove_finalizer(current, "foregroundDeletion"); });
}

void Housekeeper::remove_all(const Resource& resource, const std::optional<std::string>& ns) {
  store::ListQuery query;
  query.resource = resource.store_name;
  query.ns = ns;
  for (const store::ObjectPtr& object : store_.list(query).objects) {
    try {
      objects_.remove({resource, object->key.ns, object->key.name}, {});
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
    }
  }
}

void Housekeeper::end_namespace(const Place& place) {
  const CataloguePtr catalogue = catalogue_();
  bool is_empty = true;
  for (const ResourcePtr& resource : catalogue->stored()) {
    if (!resource->namespaced) continue;
    remove_all(*resource, place.name);
    store::ListQuery query;
    query.resource = resource->store_name;
    query.ns = place.name;
    query.limit = 1;
    is_empty = is_empty && store_.list(query).objects.empty();
  }
  if (!is_empty) {
    waiting_.insert({place.resource.store_name, "", place.name});
    return;
  }
  objects_.amend(place, [](Json& current) {
    Json* found = model::find(current, {"spec", "finalizers"});
    model::JsonArray* list = found ? found->if_array() : nullptr;
    if (!list) return false;
    const std::size_t before = list->size();
    for (auto at = list->begin(); at != list->end();)
      at = at->is_string() && at->get_string() == "kubernetes" ? list->erase(at) : at + 1;
    return list->size() != before;
  });
}

void Housekeeper::end_definition(const Place& place, const Json& definition) {
  const std::string plural(model::text_at(definition, {"spec", "names", "plural"}));
  const std::string group(model::text_at(definition, {"spec", "group"}));
  const CataloguePtr catalogue = catalogue_();
  if (const ResourcePtr resource = catalogue->storage(plural + "." + group)) {
    remove_all(*resource, std::nullopt);
    store::ListQuery query;
    query.resource = resource->store_name;
    query.limit = 1;
    if (!store_.list(query).objects.empty()) {
      waiting_.insert({place.resource.store_name, "", place.name});
      return;
    }
  }
  objects_.amend(place, [](Json& current) {
    return remove_finalizer(current, "customresourcecleanup.apiextensions.k8s.io");
  });
}

void Housekeeper::release_claim(const Place& place, const Json& claim) {
  store::ListQuery query;
  query.resource = "pods";
  query.ns = place.ns;
  for (const store::ObjectPtr& kept : store_.list(query).objects) {
    const Json pod = model::read_json(kept->text);
    const std::string_view phase = model::text_at(pod, {"status", "phase"});
    const model::JsonArray* volumes = model::array_at(pod, {"spec", "volumes"});
    if (!volumes || phase == "Succeeded" || phase == "Failed") continue;
    for (const Json& volume : *volumes)
      if (model::text_at(volume, {"persistentVolumeClaim", "claimName"}) == name_of(claim)) {
        waiting_.insert({place.resource.store_name, place.ns, place.name});
        return;
      }
  }
  objects_.amend(place, [](Json& current) {
    return remove_finalizer(current, "kubernetes.io/pvc-protection");
  });
}

void Housekeeper::furnish_namespace(const std::string& ns) {
  const CataloguePtr catalogue = catalogue_();
  const auto make = [&](std::string_view store_name, std::string_view name, Json object) {
    if (store_.find({std::string(store_name), ns, std::string(name)})) return;
    const ResourcePtr resource = catalogue->storage(store_name);
    if (!resource) return;
    object.as_object()["apiVersion"] = "v1";
    object.as_object()["kind"] = resource->kind;
    model::make_object_at(object, {"metadata"})["name"] = name;
    try {
      objects_.create({*resource, ns, ""}, {std::move(object), {}}, {.manager = "hearth"});
    } catch (const model::StatusError& error) {
      const std::string& reason = error.status().reason;
      if (reason != "AlreadyExists" && reason != "Forbidden" && reason != "NotFound") throw;
    }
  };
  make("serviceaccounts", "default", model::JsonObject());
  Json root_ca = model::JsonObject();
  model::make_object_at(root_ca, {"data"})["ca.crt"] = options_.ca_pem;
  make("configmaps", "kube-root-ca.crt", std::move(root_ca));
}

void Housekeeper::expire_events() {
  const CataloguePtr catalogue = catalogue_();
  const ResourcePtr resource = catalogue->storage("events");
  if (!resource) return;
  store::ListQuery query;
  query.resource = "events";
  for (const store::ObjectPtr& kept : store_.list(query).objects) {
    if (!is_older(*kept, clock_.now() - options_.event_life)) continue;
    try {
      objects_.remove({*resource, kept->key.ns, kept->key.name}, {});
    } catch (const Error& error) {
      if (error.code() != Code::not_found)
        log::warning("an old event could not be removed",
                     {{"name", kept->key.name}, {"why", error.what()}});
    }
  }
}

}  // namespace hearth::apiserver
