#include "apiserver/housekeeper.h"

#include <algorithm>

#include "apiserver/kept.h"
#include "apiserver/object_meta.h"
#include "base/log.h"
#include "base/time_text.h"

namespace hearth::apiserver {
namespace {

constexpr std::size_t kChangesAtOnce = 1024;
constexpr std::string_view kNamespaces = "namespaces";
constexpr std::string_view kDefinitions = "customresourcedefinitions.apiextensions.k8s.io";

std::vector<std::string> split_uids(std::string_view text) {
  std::vector<std::string> uids;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    uids.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return uids;
}

// By its creation, or by the last time it was seen again.
bool is_older(const store::Object& event, Time than) {
  const Json json = model::parse_json(event.text).value;
  std::string_view text = model::text_at(json, {"lastTimestamp"});
  if (text.empty()) text = model::text_at(json, {"metadata", "creationTimestamp"});
  const auto time = parse_rfc3339(text);
  return time && *time < than;
}

}  // namespace

Housekeeper::Housekeeper(store::Store& store, Objects& objects,
                         std::function<CataloguePtr()> catalogue, const Clock& clock,
                         Options options)
    : store_(store),
      objects_(objects),
      catalogue_(std::move(catalogue)),
      clock_(clock),
      options_(std::move(options)) {}

Housekeeper::~Housekeeper() {
  stop();
}

void Housekeeper::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Housekeeper::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  watch_.reset();
}

void Housekeeper::run(const std::stop_token& stop) {
  Time next_expiry = clock_.now();
  read_everything();
  while (!stop.stop_requested()) {
    follow();
    work();
    if (clock_.now() >= next_expiry) {
      expire_events();
      next_expiry = clock_.now() + std::chrono::minutes(1);
    }
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_for(lock, stop, options_.retry, [&] { return woken_; });
    woken_ = false;
    if (!woken) due_.merge(waiting_);
  }
}

void Housekeeper::read_everything() {
  nodes_.clear();
  by_uid_.clear();
  dependents_.clear();
  const store::Revision since = store_.revision();
  for (const ResourcePtr& resource : catalogue_()->stored()) {
    store::ListQuery query;
    query.resource = resource->store_name;
    for (const store::ObjectPtr& object : store_.list(query).objects) note(*object);
  }
  // Owners may have been read after what they own.
  for (const auto& [key, node] : nodes_)
    if (!node.owners.empty() || node.ending || key.resource == kNamespaces) due_.insert(key);
  watch_ = store_.watch({}, since, [this] {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  });
}

void Housekeeper::follow() {
  while (true) {
    const store::Taken taken = watch_->take(kChangesAtOnce);
    if (taken.expired) {
      watch_.reset();
      read_everything();
      return;
    }
    if (taken.changes.empty()) return;
    for (const store::ChangePtr& change : taken.changes) {
      if (change->kind != store::ChangeKind::deleted) {
        note(*change->object);
        continue;
      }
      forget(change->object->key);
      if (change->object->key.resource == kDefinitions) options_.definitions_changed();
    }
  }
}

void Housekeeper::note(const store::Object& object) {
  Node node;
  node.uid = object.tags.find(kUidTag).value_or("");
  node.owners = split_uids(object.tags.find(kOwnersTag).value_or(""));
  node.ending = object.tags.find(kEndingTag).has_value();
  const auto [at, is_new] = nodes_.try_emplace(object.key);
  for (const std::string& owner : at->second.owners) dependents_[owner].erase(object.key);
  if (!is_new) by_uid_.erase(at->second.uid);
  by_uid_[node.uid] = object.key;
  for (const std::string& owner : node.owners) dependents_[owner].insert(object.key);
  const bool has_news =
      !node.owners.empty() || node.ending || (is_new && object.key.resource == kNamespaces);
  at->second = std::move(node);
  if (has_news) due_.insert(object.key);
}

void Housekeeper::forget(const store::Key& key) {
  const auto at = nodes_.find(key);
  if (at == nodes_.end()) return;
  const Node node = std::move(at->second);
  nodes_.erase(at);
  by_uid_.erase(node.uid);
  for (const std::string& owner : node.owners) {
    dependents_[owner].erase(key);
    // An owner that waits for its dependents may be able to go now.
    if (const auto found = by_uid_.find(owner); found != by_uid_.end()) due_.insert(found->second);
  }
  if (const auto found = dependents_.find(node.uid); found != dependents_.end()) {
    due_.insert(found->second.begin(), found->second.end());
    if (found->second.empty()) dependents_.erase(found);
  }
  // So may a namespace, a definition, a claim: those are few, and wait by name.
  due_.merge(waiting_);
}

void Housekeeper::work() {
  while (!due_.empty()) {
    const std::set<store::Key> batch = std::exchange(due_, {});
    for (const store::Key& key : batch) attempt(key);
    follow();
  }
}

void Housekeeper::attempt(const store::Key& key) {
  try {
    look_at(key);
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return;
    waiting_.insert(key);
    log::warning("housekeeping failed; it is tried again", {{"resource", key.resource},
                                                            {"namespace", key.ns},
                                                            {"name", key.name},
                                                            {"why", error.what()}});
  }
}

std::optional<Place> Housekeeper::place_of(const CataloguePtr& catalogue,
                                           const store::Key& key) const {
  const ResourcePtr resource = catalogue->storage(key.resource);
  if (!resource) return std::nullopt;
  return Place{*resource, key.ns, key.name};
}

void Housekeeper::look_at(const store::Key& key) {
  const CataloguePtr catalogue = catalogue_();
  const auto place = place_of(catalogue, key);
  const auto node = nodes_.find(key);
  if (!place || node == nodes_.end()) return;
  if (key.resource == kNamespaces && !node->second.ending) furnish_namespace(key.name);
  if (!node->second.ending && node->second.owners.empty()) return;
  const store::ObjectPtr kept = store_.find(key);
  if (!kept) return;
  const Json object = view(*kept, place->resource);
  if (node->second.ending)
    end(*place, object);
  else
    collect(*place, object);
}

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
    const auto finalizers = finalizers_of(model::parse_json(owner.object->text).value);
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
    const Json json = view(*kept, dependent->resource);
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
    const Json pod = model::parse_json(kept->text).value;
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
