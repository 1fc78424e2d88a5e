#include "client/kinds.h"
#include "model/front_door.h"
#include "tenants/system_internal.h"

namespace hearth::tenants {

std::optional<model::Json> create_if_absent(client::Client& client,
                                            const client::ResourceId& resource,
                                            const model::Json& object) {
  try {
    return client.create(resource, object);
  } catch (const model::StatusError& error) {
    if (error.status().reason != "AlreadyExists") throw;
    return std::nullopt;
  }
}

std::optional<model::Json> create_in_system(client::Client& client,
                                            const client::ResourceId& resource,
                                            const model::Json& object) {
  try {
    return create_if_absent(client, resource, object);
  } catch (const model::StatusError& error) {
    if (error.status().code != 404) throw;
  }
  create_if_absent(
      client, client::kNamespaces,
      model::JsonObject{{"apiVersion", "v1"},
                        {"kind", "Namespace"},
                        {"metadata", model::JsonObject{{"name", model::kSystemNamespace}}}});
  return create_if_absent(client, resource, object);
}

}  // namespace hearth::tenants
