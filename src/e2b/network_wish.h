// What a client says about a sandbox's network, at its making and later: whom it may talk to, who
// may talk to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "e2b/body.h"
#include "model/json.h"
#include "pool/reach.h"

namespace hearth::e2b {

// Whom it may talk to.
struct EgressWish {
  std::optional<bool> internet;  // allow_internet_access
  std::vector<std::string> allow;
  std::vector<std::string> deny;

  // Nothing was restricted.
  bool is_open() const { return internet.value_or(true) && allow.empty() && deny.empty(); }
  pool::Egress egress() const;
};

struct NetworkWish {
  EgressWish egress;
  // allowPublicTraffic: who may talk to its ports; not everybody: with the traffic token only.
  std::optional<bool> says_public;
  std::string mask_host;
  std::vector<std::int64_t> https_ports;

  bool is_public() const { return says_public.value_or(true); }
};

// `body` has allow_internet_access, allowOut, denyOut, egressProxy and rules, as PUT
// /sandboxes/{id}/network sends them. Throws Error(invalid), and
// Refusal(501) for what is not offered.
EgressWish parse_egress(const Body& body);
// `body` is that of a create: allow_internet_access and network.
NetworkWish parse_network(const Body& body);

// As annotations of a Sandbox; null for those that are not wanted, so that a patch removes them.
model::JsonObject egress_annotations(const EgressWish& egress);
model::JsonObject network_annotations(const NetworkWish& network);

// Back: what the annotations of a Sandbox say.
pool::Egress egress_of(const model::Json& sandbox);
// The `network` of a sandbox's details; empty where nothing is special.
model::JsonObject network_of(const model::Json& sandbox);

}  // namespace hearth::e2b
