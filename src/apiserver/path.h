// What a request's path asks for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::apiserver {

// "/apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/SUBRESOURCE", with what is left out empty.
struct ResourcePath {
  std::string group;
  std::string version;
  std::optional<std::string> ns;
  std::string plural;
  std::string name;
  std::string subresource;
};

// Nothing for paths that are none of a resource: "/healthz", "/apis/GROUP", "/api/v1". Segments
// are percent-decoded.
std::optional<ResourcePath> parse_resource_path(std::string_view path);

// The verb that RBAC knows for a method on a resource.
std::string verb_of(std::string_view method, const ResourcePath& path, bool is_watch);

}  // namespace hearth::apiserver
