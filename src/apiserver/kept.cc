#include "apiserver/kept.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include <fmt/format.h>

#include "apiserver/object_meta.h"
#include "base/json_text.h"
#include "model/read_json.h"
#include "model/scratch.h"

namespace hearth::apiserver {
namespace {

// What a kept text of this kind begins with.
std::string head_of(std::string_view kind, std::string_view api_version) {
  return fmt::format(R"({{"kind":{},"apiVersion":{},)", json_quote(kind), json_quote(api_version));
}

bool take(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

void append_members(std::string& text, const model::JsonObject& object,
                    std::initializer_list<std::string_view> without) {
  for (const auto& [key, value] : object) {
    const std::string_view name(key.data(), key.size());
    if (std::find(without.begin(), without.end(), name) != without.end()) continue;
    text += ',';
    model::append_text(text, name);
    text += ':';
    model::append_text(text, value);
  }
}

struct Selectable {
  std::string_view group;
  std::string_view kind;
  std::vector<std::string> fields;
};

const std::vector<Selectable>& builtin_selectable_fields() {
  static const std::vector<Selectable> kTable = {
      {"",
       "Pod",
       {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs",
        "status.nominatedNodeName"}},
      {"", "Node", {"spec.unschedulable"}},
      {"", "Namespace", {"status.phase"}},
      {"", "Secret", {"type"}},
      {"", "Service", {"spec.clusterIP", "spec.type"}},
      {"",
       "Event",
       {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
        "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
        "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"}},
      {"events.k8s.io",
       "Event",
       {"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
        "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reason",
        "reportingController", "type"}},
  };
  return kTable;
}

const Json* find_dotted(const Json& object, std::string_view path) {
  const Json* at = &object;
  while (at && !path.empty()) {
    const std::size_t dot = path.find('.');
    at = model::find(*at, {path.substr(0, dot)});
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

// As field selectors compare it: false and 0 are what is left out.
std::string scalar_text(const Json* value) {
  if (!value || value->is_null()) return {};
  if (value->is_string()) return std::string(value->get_string());
  if (value->is_object() || value->is_array()) return {};
  return model::to_text(*value);
}

std::string field_of(const Json& object, const Resource& resource, std::string_view field) {
  if (resource.kind == "Pod" && field == "status.podIPs") {
    std::string all;
    if (const model::JsonArray* ips = model::array_at(object, {"status", "podIPs"}))
      for (const Json& ip : *ips)
        all.append(all.empty() ? "" : ",").append(model::text_at(ip, {"ip"}));
    return all;
  }
  if (resource.kind == "Event" && field == "source") {
    const std::string_view component = model::text_at(object, {"source", "component"});
    return std::string(component.empty() ? model::text_at(object, {"reportingComponent"})
                                         : component);
  }
  if (resource.kind == "Event" && field == "reportingComponent")
    return std::string(model::text_at(object, {"reportingComponent"}));
  std::string text = scalar_text(find_dotted(object, field));
  if (text.empty() && (field == "spec.unschedulable" || field == "spec.hostNetwork"))
    text = "false";
  return text;
}

std::string owner_uids(const Json& object) {
  std::string uids;
  if (const model::JsonArray* owners = model::array_at(object, {"metadata", "ownerReferences"}))
    for (const Json& owner : *owners)
      uids.append(uids.empty() ? "" : ",").append(model::text_at(owner, {"uid"}));
  return uids;
}

// Whether the text begins with head_of() the resource, without making that: kinds, groups and
// versions have nothing to escape.
bool is_kept_as(const store::Object& object, const Resource& resource) {
  std::string_view text = object.text;
  return take(text, R"({"kind":")") && take(text, resource.kind) &&
         take(text, R"(","apiVersion":")") &&
         (resource.group.empty() || (take(text, resource.group) && take(text, "/"))) &&
         take(text, resource.version) && take(text, R"(",)");
}

// The tree, if it is still about and in the version that the resource shows.
std::shared_ptr<const Tree> shown_tree(const store::Object& object, const Resource& resource) {
  auto tree = tree_of(object);
  return tree && is_kept_as(object, resource) ? tree : nullptr;
}

}  // namespace

KeptText render_kept(const Json& object, const patch::Owners& owners) {
  // It grows once in the life of a thread; what is kept has no room to spare but for its revision.
  static thread_local std::string text;
  model::empty_room(text);
  text += head_of(model::text_at(object, {"kind"}), model::text_at(object, {"apiVersion"}));
  text += R"("metadata":{"resourceVersion":")";
  const std::size_t hole = text.size();
  text += '"';
  if (const model::JsonObject* metadata = model::object_at(object, {"metadata"}))
    append_members(text, *metadata, {"resourceVersion"});
  if (!owners.empty()) {
    text += R"(,"managedFields":)";
    patch::append_text(text, owners);
  }
  text += '}';
  append_members(text, object.get_object(), {"kind", "apiVersion", "metadata"});
  text += '}';
  KeptText kept{.text = {}, .hole = hole};
  kept.text.reserve(text.size() + std::numeric_limits<store::Revision>::digits10 + 1);
  kept.text = text;
  return kept;
}

void put_managed_fields(Json& object, const patch::Owners& owners) {
  if (owners.empty()) return;
  std::string text;
  patch::append_text(text, owners);
  model::make_object_at(object, {"metadata"})["managedFields"] = model::read_json(text);
}

std::string render(Json object, const patch::Owners& owners) {
  put_managed_fields(object, owners);
  return model::to_text(object);
}

store::Tags tags_of(const Json& object, const Resource& resource) {
  std::vector<store::Tags::Pair> tags;
  if (const model::JsonObject* labels = model::object_at(object, {"metadata", "labels"}))
    for (const auto& [key, value] : *labels)
      if (value.is_string()) tags.emplace_back(key, value.get_string());
  std::deque<std::string> made;  // what tags are views of
  if (resource.built_in)
    for (const std::string& field : selectable_fields(resource))
      tags.emplace_back(made.emplace_back("\x01" + field),
                        made.emplace_back(field_of(object, resource, field)));
  tags.emplace_back(kUidTag, uid_of(object));
  const std::string owners = owner_uids(object);
  if (!owners.empty()) tags.emplace_back(kOwnersTag, owners);
  if (is_deleting(object)) tags.emplace_back(kEndingTag, "1");
  return store::Tags(tags);
}

const std::vector<std::string>& selectable_fields(const Resource& resource) {
  static const std::vector<std::string> kNone;
  if (!resource.built_in) return resource.selectable_fields;
  for (const Selectable& row : builtin_selectable_fields())
    if (row.group == resource.group && row.kind == resource.kind) return row.fields;
  return kNone;
}

std::string field_text(const store::Object& object, const Resource& resource,
                       std::string_view field) {
  if (field == "metadata.name") return object.key.name;
  if (field == "metadata.namespace") return object.key.ns;
  if (const auto tag = object.tags.find("\x01" + std::string(field))) return std::string(*tag);
  return field_of(view(object, resource), resource, field);
}

store::Durability durability_of(const Resource& resource) {
  // Keys, templates, volumes, and what says who may do what. Sandboxes and their pods do not
  // outlive the machine's power either.
  static constexpr std::array<std::string_view, 14> kSynced = {
      "secrets",
      "configmaps",
      "serviceaccounts",
      "namespaces",
      "persistentvolumes",
      "persistentvolumeclaims",
      "storageclasses.storage.k8s.io",
      "customresourcedefinitions.apiextensions.k8s.io",
      "sandboxtemplates.extensions.agents.x-k8s.io",
      "sandboxtemplates.agents.navix.sh",
      "roles.rbac.authorization.k8s.io",
      "rolebindings.rbac.authorization.k8s.io",
      "clusterroles.rbac.authorization.k8s.io",
      "clusterrolebindings.rbac.authorization.k8s.io",
  };
  const bool synced =
      std::find(kSynced.begin(), kSynced.end(), resource.store_name) != kSynced.end();
  return synced ? store::Durability::power : store::Durability::process;
}

Json view(const store::Object& object, const Resource& resource, model::Storage storage) {
  Json json = model::read_json(object.text, std::move(storage));
  if (is_kept_as(object, resource)) return json;
  from_storage(resource, json);
  return json;
}

JsonPtr look(const store::Object& object, const Resource& resource, const model::Storage& storage) {
  if (const auto tree = shown_tree(object, resource)) return {tree, &tree->json()};
  Json json = view(object, resource, storage);
  model::erase_at(json, {"metadata", "managedFields"});
  return std::make_shared<const Json>(std::move(json));
}

Seen see(const store::Object& object, const Resource& resource, const model::Storage& storage) {
  if (const auto tree = shown_tree(object, resource))
    return {{tree, &tree->json()}, {tree, &tree->owners()}, tree->checked_by() == resource.schema};
  Json json = view(object, resource, storage);
  auto owners = std::make_shared<const patch::Owners>(
      patch::read_owners(model::find(json, {"metadata", "managedFields"})));
  model::erase_at(json, {"metadata", "managedFields"});
  return {std::make_shared<const Json>(std::move(json)), std::move(owners)};
}

std::string view_text(const store::Object& object, const Resource& resource) {
  if (is_kept_as(object, resource)) return object.text;
  return model::to_text(view(object, resource));
}

void append_items(std::string& text, const std::vector<store::ObjectPtr>& objects,
                  const Resource& resource) {
  const std::string head = head_of(resource.kind, resource.api_version());
  bool is_first = true;
  for (const store::ObjectPtr& object : objects) {
    if (!is_first) text += ',';
    is_first = false;
    if (!is_kept_as(*object, resource)) {
      Json json = view(*object, resource);
      if (resource.built_in)
        for (const char* name : {"apiVersion", "kind"}) json.as_object().erase(name);
      text += model::to_text(json);
    } else if (resource.built_in) {
      text.append(1, '{').append(object->text, head.size());
    } else {
      text += object->text;
    }
  }
}

}  // namespace hearth::apiserver
