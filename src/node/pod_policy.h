// Whom a pod's sandbox may talk to, from what the pod itself says. Pure.
#pragma once

#include <string>

#include "model/json.h"
#include "network/policy.h"
#include "pool/reach.h"

namespace hearth::node {

using model::Json;

// Where no NetworkPolicy is known: everything outside the walls (network/policy.h), but what the
// pod's annotation hearth.dev/egress takes away. Throws Error(invalid) for an annotation that makes
// no sense: it would let out what it means to keep in.
network::Policy pod_policy(const Json& pod);

// Takes away what the annotation takes away. Throws as above.
void narrow_as_asked(network::Policy& policy, const Json& pod);

// Takes away what the lists do not let pass, and adds nothing that the policy does not let pass.
// Throws Error(invalid).
void narrow(network::Policy& policy, const pool::Egress& egress);

// The annotation's text, and back. Throws Error(invalid).
std::string egress_text(const pool::Egress& egress);
pool::Egress parse_egress(std::string_view text);

}  // namespace hearth::node
