// The built-in kinds: Pod, Service, ConfigMap and the others that api/builtin describes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schema/schema.h"

namespace hearth::schema {

// One resource that the server serves without a CRD.
struct BuiltinKind {
  std::string group;  // "" for core
  std::string version;
  std::string kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = false;
  bool has_status = false;  // a status subresource
  SchemaPtr schema;
};

// All of them, in the order of discovery.
const std::vector<BuiltinKind>& builtin_kinds();
// By apiVersion and kind, also of kinds that are no resources (DeleteOptions, Eviction, Scale,
// TokenRequest, the access reviews); null for strangers.
SchemaPtr find_builtin(std::string_view api_version, std::string_view kind);
// The schema of metadata.
const Schema& object_meta();

// Our own CRDs (api/crds), as the JSON of CustomResourceDefinition objects; parse when needed.
struct BuiltinCrd {
  std::string_view name;  // "sandboxes.agents.x-k8s.io"
  std::string_view json;
};
const std::vector<BuiltinCrd>& builtin_crds();

// An object in "application/vnd.kubernetes.protobuf", as JSON with apiVersion and kind. Throws
// Error(invalid) for bytes that are none, and StatusError 415 for kinds that are not described.
Json decode_protobuf(std::string_view body);

}  // namespace hearth::schema
