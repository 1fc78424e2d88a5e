// From a NetworkPolicy's text to what it means.
#include <algorithm>

#include "base/error.h"
#include "model/meta.h"
#include "node/network_policy_internal.h"
#include "node/pod_index.h"

namespace hearth::node {

using model::Json;
using model::LabelSelector;
using model::text_at;
using network::Cidr;

namespace {

// "10.1.2.3/8" too, as Kubernetes has it.
Cidr parse_block(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::uint32_t address = network::parse_cidr(text.substr(0, slash)).address;
  // The length of the prefix, with an address that suits all of them.
  Cidr block = network::parse_cidr("0.0.0.0" + std::string(text.substr(slash)));
  if (block.prefix > 0) block.address = address & (~std::uint32_t{0} << (32 - block.prefix));
  return block;
}

std::vector<PortRule> parse_ports(const model::JsonArray& ports) {
  std::vector<PortRule> all;
  for (const Json& port : ports) {
    const auto protocol = find_protocol(text_at(port, {"protocol"}));
    if (!protocol) continue;
    PortRule rule{.ports = {.protocol = *protocol}, .name = std::string(text_at(port, {"port"}))};
    const Json* number = model::find(port, {"port"});
    if (number && !number->is_null() && rule.name.empty()) {
      rule.ports.first = rule.ports.last = port_number(port, {"port"});
      if (rule.ports.first == 0) continue;
      if (model::find(port, {"endPort"})) rule.ports.last = port_number(port, {"endPort"});
      if (rule.ports.last < rule.ports.first) continue;
    }
    all.push_back(std::move(rule));
  }
  return all;
}

std::optional<LabelSelector> parse_selector(const Json& peer, std::string_view member) {
  const Json* selector = model::find(peer, {member});
  if (!selector || selector->is_null()) return std::nullopt;
  return LabelSelector::from_object(*selector);
}

// Nothing for a block of IPv6, which sandboxes do not have.
std::optional<Peer> parse_peer(const Json& peer) {
  Peer parsed{.pods = parse_selector(peer, "podSelector"),
              .namespaces = parse_selector(peer, "namespaceSelector")};
  const std::string_view block = text_at(peer, {"ipBlock", "cidr"});
  if (block.find(':') != std::string_view::npos) return std::nullopt;
  if (!block.empty()) {
    parsed.block = parse_block(block);
    if (const model::JsonArray* excepted = model::array_at(peer, {"ipBlock", "except"}))
      for (const Json& one : *excepted)
        if (one.is_string() && one.get_string().find(':') == std::string_view::npos)
          parsed.excepted.push_back(parse_block(one.get_string()));
  }
  if (!parsed.block && !parsed.pods && !parsed.namespaces) return std::nullopt;
  return parsed;
}

std::vector<PeerRule> parse_rules(const Json& policy, std::string_view direction,
                                  std::string_view who) {
  std::vector<PeerRule> all;
  const model::JsonArray* rules = model::array_at(policy, {"spec", direction});
  if (!rules) return all;
  for (const Json& rule : *rules) {
    PeerRule parsed;
    const model::JsonArray* peers = model::array_at(rule, {who});
    parsed.is_anybody = !peers || peers->empty();
    if (peers)
      for (const Json& peer : *peers)
        if (auto one = parse_peer(peer)) parsed.peers.push_back(std::move(*one));
    const model::JsonArray* ports = model::array_at(rule, {"ports"});
    parsed.is_any_port = !ports || ports->empty();
    if (ports) parsed.ports = parse_ports(*ports);
    all.push_back(std::move(parsed));
  }
  return all;
}

bool has_type(const Json& policy, std::string_view type, bool otherwise) {
  const model::JsonArray* types = model::array_at(policy, {"spec", "policyTypes"});
  if (!types || types->empty()) return otherwise;
  return std::ranges::any_of(*types, [&](const Json& one) {
    return one.is_string() && std::string_view(one.get_string()) == type;
  });
}

}  // namespace

Parsed parse_network_policy(const Json& policy) {
  Parsed parsed{.ns = std::string(model::namespace_of(policy))};
  try {
    if (const Json* selector = model::find(policy, {"spec", "podSelector"}))
      parsed.selector = LabelSelector::from_object(*selector);
    parsed.ingress = parse_rules(policy, "ingress", "from");
    parsed.egress = parse_rules(policy, "egress", "to");
    parsed.is_ingress = has_type(policy, "Ingress", true);
    parsed.is_egress = has_type(policy, "Egress", !parsed.egress.empty());
  } catch (const std::exception&) {
    // Whoever wrote it wanted to forbid something.
    parsed.ingress.clear();
    parsed.egress.clear();
    parsed.is_ingress = parsed.is_egress = true;
  }
  return parsed;
}

}  // namespace hearth::node
