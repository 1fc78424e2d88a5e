// One thing that is served under one path: a group, a version and a plural.
//
// Made of api/builtin or of a CustomResourceDefinition; the rest of the server asks it and never a
// kind's name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/json.h"
#include "model/status.h"
#include "schema/schema.h"

namespace hearth::apiserver {

using model::Json;

class Strategy;

// Where a CRD's scale subresource finds its numbers, as JSON paths (".spec.replicas").
struct ScalePaths {
  std::string spec_replicas;
  std::string status_replicas;
  std::string label_selector;  // may be empty
};

// A column of kubectl get.
struct Column {
  std::string name;
  std::string type;  // string, integer, number, boolean, date
  std::string format;
  std::string description;
  int priority = 0;       // 1: only -o wide
  std::string json_path;  // empty for built-in kinds, whose cells are computed
};

struct Resource {
  std::string group;  // "" is core
  std::string version;
  std::string kind;
  std::string list_kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  bool built_in = false;
  // Only POST, and nothing is kept: the access reviews.
  bool create_only = false;
  // Only GET, and nothing is kept: metrics.k8s.io (usage_metrics.h).
  bool measured = false;

  bool has_status = false;
  std::optional<ScalePaths> scale;
  // Further subresources of built-in kinds: "log", "exec", "token", "finalize", ...
  std::vector<std::string> subresources;
  std::vector<Column> columns;                 // without Name; of a CRD
  std::vector<std::string> selectable_fields;  // of a CRD, beside metadata.name and .namespace
  std::string deprecation_warning;             // empty: not deprecated

  schema::SchemaPtr schema;
  const Strategy* strategy = nullptr;  // never null in a catalogue
  // The version objects are kept in; another one is converted on the way in and out.
  std::string storage_version;
  // The name objects are kept under; two views of one store (Events) share it.
  std::string store_name;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  model::GroupResource group_resource() const { return {group, plural}; }
  model::GroupKind group_kind() const { return {group, kind}; }
};
using ResourcePtr = std::shared_ptr<const Resource>;

// Between an object as this resource shows it and as it is kept, apiVersion included: what the
// strategy does, and for versions of a CRD that differ in nothing else the apiVersion alone.
void to_storage(const Resource& resource, Json& object);
void from_storage(const Resource& resource, Json& object);

}  // namespace hearth::apiserver
