#include "client/passing_client.h"

namespace hearth::client {

Answer PassingClient::get(const ResourceId& resource, std::string_view ns, std::string_view name) {
  return turn().get(resource, ns, name);
}

List PassingClient::list(const ResourceId& resource, const ListOptions& options) {
  return turn().list(resource, options);
}

Answer PassingClient::create(const ResourceId& resource, const Json& object,
                             const WriteOptions& options) {
  return turn().create(resource, object, options);
}

Answer PassingClient::update(const ResourceId& resource, const Json& object,
                             std::string_view subresource, const WriteOptions& options) {
  return turn().update(resource, object, subresource, options);
}

Answer PassingClient::patch(const ResourceId& resource, std::string_view ns, std::string_view name,
                            PatchKind kind, const Json& patch, const PatchOptions& options) {
  return turn().patch(resource, ns, name, kind, patch, options);
}

Answer PassingClient::remove(const ResourceId& resource, std::string_view ns, std::string_view name,
                             const DeleteOptions& options) {
  return turn().remove(resource, ns, name, options);
}

Answer PassingClient::post(const ResourceId& resource, std::string_view ns, std::string_view name,
                           std::string_view subresource, const Json& body) {
  return turn().post(resource, ns, name, subresource, body);
}

WatchEnd PassingClient::watch(const ResourceId& resource, const WatchOptions& options,
                              const std::function<void(Event event)>& handler,
                              const std::stop_token& stop) {
  return turn().watch(resource, options, handler, stop);
}

}  // namespace hearth::client
