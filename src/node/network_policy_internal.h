// A NetworkPolicy as policies are judged by it: see network_policy.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"
#include "model/selector.h"
#include "network/policy.h"

namespace hearth::node {

// Ports of one protocol; 0 to 0: all of them.
struct Ports {
  network::Protocol protocol = network::Protocol::any;
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};

// As a policy has it: a name means something only together with a pod.
struct PortRule {
  Ports ports;
  std::string name;
};

struct Peer {
  std::optional<model::LabelSelector> pods;
  std::optional<model::LabelSelector> namespaces;
  std::optional<network::Cidr> block;
  std::vector<network::Cidr> excepted;
};

struct PeerRule {
  std::vector<Peer> peers;
  std::vector<PortRule> ports;
  bool is_anybody = false;   // no peers were named
  bool is_any_port = false;  // no ports were
};

struct Parsed {
  std::string ns;
  model::LabelSelector selector;
  bool is_ingress = false;
  bool is_egress = false;
  std::vector<PeerRule> ingress;
  std::vector<PeerRule> egress;

  bool is_about(std::string_view pod_ns, const model::Labels& labels) const {
    return ns == pod_ns && selector.matches(labels);
  }
};

// One that makes no sense admits nothing.
Parsed parse_network_policy(const model::Json& policy);

}  // namespace hearth::node
