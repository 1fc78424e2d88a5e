// The strategies of the built-in kinds, by kind.
#pragma once

#include "apiserver/kinds_internal.h"
#include "apiserver/strategy.h"

namespace hearth::apiserver {

// What a pod's spec gets and what can be wrong with it.
void fill_in_pod_spec(JsonObject& spec);
void check_pod_spec(Errors& errors, const JsonObject& spec);
// The same for how it runs: users, names, namespaces of the host.
void check_pod_context(Errors& errors, const JsonObject& spec);
// kinds_pod_ephemeral.cc. Of specs: what is wrong with them; what may not become of those before;
// and what of a spec that was sent to pods/NAME/ephemeralcontainers counts.
void check_ephemeral_containers(Errors& errors, const JsonObject& spec);
void check_ephemeral_update(Errors& errors, const JsonObject& next, const JsonObject& old);
void keep_only_ephemeral_containers(JsonObject& next, const JsonObject& old);

const Strategy& pod_strategy();
const Strategy& service_strategy();
const Strategy& config_map_strategy();
const Strategy& secret_strategy();
const Strategy& namespace_strategy();
const Strategy& claim_strategy();
const Strategy& volume_strategy();
const Strategy& storage_class_strategy();
const Strategy& core_event_strategy();
const Strategy& event_strategy();
const Strategy& lease_strategy();
const Strategy& network_policy_strategy();
const Strategy& runtime_class_strategy();
const Strategy& node_strategy();
const Strategy& endpoints_strategy();
const Strategy& endpoint_slice_strategy();
const Strategy& role_strategy(bool namespaced);
const Strategy& role_binding_strategy(bool namespaced);
const Strategy& crd_strategy();

// Of a kind that adds nothing: most of what a cluster keeps as plain data.
class PlainStrategy : public Strategy {
 public:
  bool allows_unconditional_update() const override { return true; }
  bool has_generation() const override { return false; }
};

}  // namespace hearth::apiserver
