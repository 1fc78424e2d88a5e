// From a SandboxTemplate to the Sandboxes that are made of it, warm or cold.
#pragma once

#include <string>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;

// What templates and pool members are compared by.
struct Blueprint {
  Json spec;             // of a Sandbox: podTemplate, volumeClaimTemplates, service
  std::string hash;      // of all of it
  std::string pod_hash;  // of podTemplate
  // Not compared: annotations of the Sandbox, see access_rules_of.
  model::JsonObject access;
};

// A copy of the template's blueprint with the secure defaults: no service account token, and
// public name servers where the default network policy keeps the cluster's away.
Blueprint blueprint_of(const Json& sandbox_template);

// What the template says about who may talk to its Sandboxes through the gateway: annotations that
// they bear as well (model/front_door.h).
model::JsonObject access_rules_of(const Json& sandbox_template);
// Those that a Sandbox does not bear as the template has them now.
model::JsonObject access_changes(const Json& sandbox, const Json& sandbox_template);

// Whether its users look after the network policy themselves.
bool is_network_unmanaged(const Json& sandbox_template);

// Whether a Sandbox was made of something else: another template, another pod, volumes or service.
// Metadata and policies do not count.
bool is_stale(const Json& sandbox, const Json& sandbox_template, const Blueprint& blueprint);

}  // namespace hearth::controllers
