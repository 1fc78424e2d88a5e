// Pools of public templates in the namespaces of the teams that use them (docs/adr/0029): what they
// are called, and how they are made. Who makes them and when is a front door's business.
#pragma once

#include <cstdint>
#include <string_view>

#include "client/client.h"
#include "model/meta.h"

namespace hearth::tenants {

// Where the team's pool of that template is: NS.NAME of the template, in the team's namespace. No
// namespace has a dot in its name, so two templates never share one.
model::Key team_pool_key(std::string_view team_ns, const model::Key& sandbox_template);
// Whether it is one that settle_team_pool left so. One that somebody has scaled is his.
bool is_team_pool(const model::Json& pool);

// Makes it, or brings one that is_team_pool up to date. Throws StatusError.
void settle_team_pool(client::Client& client, std::string_view team_ns,
                      const model::Key& sandbox_template, std::uint32_t replicas);

}  // namespace hearth::tenants
