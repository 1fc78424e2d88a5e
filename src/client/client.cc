#include "client/client.h"

#include "http/target.h"

namespace hearth::client {

std::optional<Json> Client::find(const ResourceId& resource, std::string_view ns,
                                 std::string_view name) {
  try {
    return get(resource, ns, name);
  } catch (const model::StatusError& error) {
    if (error.status().code == 404) return std::nullopt;
    throw;
  }
}

List Client::list_all(const ResourceId& resource, ListOptions options) {
  // Large enough to be few requests, small enough to be no burden.
  constexpr std::int64_t kPage = 500;
  if (options.limit == 0) options.limit = kPage;
  List all = list(resource, options);
  while (!all.continue_token.empty()) {
    options.continue_token = all.continue_token;
    options.resource_version.clear();
    List page = list(resource, options);
    for (Json& item : page.items) all.items.push_back(std::move(item));
    all.continue_token = std::move(page.continue_token);
  }
  return all;
}

std::string resource_path(const ResourceId& resource, std::string_view ns, std::string_view name,
                          std::string_view subresource) {
  std::string path = resource.group.empty() ? "/api/" + resource.version
                                            : "/apis/" + resource.group + "/" + resource.version;
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + http::percent_encode(ns);
  path += "/" + resource.plural;
  if (!name.empty()) path += "/" + http::percent_encode(name);
  if (!subresource.empty()) path += "/" + std::string(subresource);
  return path;
}

}  // namespace hearth::client
