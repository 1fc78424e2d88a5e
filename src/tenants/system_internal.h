// hearth-system: where keys and seeds are kept.
#pragma once

#include "client/client.h"

namespace hearth::tenants {

// Creates `object`; where it is there already, nothing is returned.
std::optional<model::Json> create_if_absent(client::Client& client,
                                            const client::ResourceId& resource,
                                            const model::Json& object);
// Makes the object, and its namespace first if that is what is missing.
std::optional<model::Json> create_in_system(client::Client& client,
                                            const client::ResourceId& resource,
                                            const model::Json& object);

}  // namespace hearth::tenants
