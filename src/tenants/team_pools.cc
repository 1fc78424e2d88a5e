#include "tenants/team_pools.h"

#include "client/kinds.h"
#include "model/front_door.h"
#include "model/template_ref.h"
#include "tenants/made_internal.h"

namespace hearth::tenants {

using model::Json;
using model::JsonObject;

model::Key team_pool_key(std::string_view team_ns, const model::Key& sandbox_template) {
  return {std::string(team_ns), sandbox_template.ns + "." + sandbox_template.name};
}

bool is_team_pool(const Json& pool) {
  const model::Key key = model::key_of(pool);
  return is_as_made(pool) && key == team_pool_key(key.ns, model::template_key_of(pool));
}

void settle_team_pool(client::Client& client, std::string_view team_ns,
                      const model::Key& sandbox_template, std::uint32_t replicas) {
  const model::Key key = team_pool_key(team_ns, sandbox_template);
  const Json wanted = JsonObject{
      {"apiVersion", client::kSandboxWarmPools.api_version()},
      {"kind", "SandboxWarmPool"},
      {"metadata", JsonObject{{"name", key.name},
                              {"namespace", key.ns},
                              {"annotations", JsonObject{{model::kNamesAnnotation, "id"}}}}},
      {"spec", JsonObject{{"replicas", replicas},
                          {"sandboxTemplateRef", JsonObject{{"name", sandbox_template.text()}}}}}};
  settle_made(client, client::kSandboxWarmPools, wanted, true);
}

}  // namespace hearth::tenants
