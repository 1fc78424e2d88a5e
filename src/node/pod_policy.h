// Whom a pod's sandbox may talk to, from what the pod itself says. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/json.h"
#include "network/policy.h"
#include "pool/reach.h"

namespace hearth::node {

using model::Json;

// Where no NetworkPolicy is known: everything outside the walls (network/policy.h), but what the
// pod's annotation hearth.dev/egress takes away. Throws Error(invalid) for an annotation that makes
// no sense: it would let out what it means to keep in.
network::Policy pod_policy(const Json& pod);

// Takes away what the annotation takes away. `answered` are the addresses of hosts that it allows
// by name, the newest first; as many as fit. Throws as above.
void narrow_as_asked(network::Policy& policy, const Json& pod,
                     std::span<const std::uint32_t> answered = {});

// Takes away what the lists do not let pass, and adds nothing that the policy does not let pass.
// Throws Error(invalid).
void narrow(network::Policy& policy, const pool::Egress& egress);

// The annotation's text, and back. Throws Error(invalid).
std::string egress_text(const pool::Egress& egress);
pool::Egress parse_egress(std::string_view text);
// The hosts that are allowed by name (http/host_pattern.h), in the order they were named. They are
// in the list no longer.
std::vector<std::string> take_names(pool::Egress& egress);

}  // namespace hearth::node
