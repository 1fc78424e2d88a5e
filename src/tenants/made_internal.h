// Objects that are made for people who did not ask for them, until they change them: from then on
// those are theirs. metadata.generation tells.
#pragma once

#include "client/client.h"

namespace hearth::tenants {

// Makes `wanted` if there is none and `make` says so. One that is as an earlier call left it is
// brought up to date; any other stays as it is. Throws StatusError.
void settle_made(client::Client& client, const client::ResourceId& resource,
                 const model::Json& wanted, bool make);
// Whether settle_made left it so: nobody has changed its spec since.
bool is_as_made(const model::Json& kept);

}  // namespace hearth::tenants
