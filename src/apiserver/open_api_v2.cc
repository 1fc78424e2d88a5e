// The little of OpenAPI v2 that older kubectls (before 1.29) insist on, in their protobuf form.
//
// They ask which kinds take fieldValidation and dryRun, and leave the checks to the server. There
// are no schemas in it: without one they check nothing themselves, and merge by their own types.
#include <fmt/format.h>

#include "apiserver/open_api.h"
#include "base/json_text.h"

namespace hearth::apiserver {
namespace {

void append_varint(std::string& out, std::size_t value) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<char>(value | 0x80U));
  out.push_back(static_cast<char>(value));
}

// A text or a message within another: both are bytes with a length.
std::string field(unsigned number, std::string_view bytes) {
  constexpr unsigned kBytes = 2;
  std::string out;
  append_varint(out, number << 3U | kBytes);
  append_varint(out, bytes.size());
  out.append(bytes);
  return out;
}

// Numbers are those of the public OpenAPIv2.proto.
std::string query_parameter(std::string_view name) {
  const std::string schema = field(2, "query") + field(4, name) + field(6, "string");
  const std::string parameter = field(2, field(3, schema));  // non-body, of the query
  return field(1, parameter);
}

std::string patch_operation(const Resource& resource) {
  const std::string kind =
      fmt::format("{{group: {}, kind: {}, version: {}}}\n", json_quote(resource.group),
                  json_quote(resource.kind), json_quote(resource.version));
  std::string operation;
  for (const std::string_view name : {"dryRun", "fieldManager", "fieldValidation", "force"})
    operation += field(8, query_parameter(name));
  return operation +
         field(13, field(1, "x-kubernetes-group-version-kind") + field(2, field(2, kind)));
}

std::string path_of(const Resource& resource) {
  return fmt::format("{}/{}/{}{}/{{name}}",
                     resource.group.empty() ? "/api" : "/apis/" + resource.group, resource.version,
                     resource.namespaced ? "namespaces/{namespace}/" : "", resource.plural);
}

}  // namespace

std::string OpenApi::old_document() const {
  std::string paths;
  for (const auto& group : groups_)
    for (const auto& version : group.versions)
      for (const ResourcePtr& resource : version.resources)
        paths +=
            field(2, field(1, path_of(*resource)) + field(2, field(8, patch_operation(*resource))));
  return field(1, "2.0") + field(2, field(1, "Kubernetes") + field(2, "v1")) + field(8, paths);
}

}  // namespace hearth::apiserver
