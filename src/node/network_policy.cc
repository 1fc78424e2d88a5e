#include "node/network_policy.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "model/meta.h"
#include "model/selector.h"
#include "node/network_policy_internal.h"

namespace hearth::node {
namespace {

using model::Labels;
using model::text_at;
using network::Cidr;
using network::Protocol;
using network::Rule;

constexpr Cidr kEverywhere{.address = 0, .prefix = 0};

struct Neighbour {
  std::string ns;
  Labels labels;
  const Labels* ns_labels = nullptr;  // null: its namespace is not known
  std::uint32_t address = 0;
  client::Object pod;
  std::vector<Ports> offered;  // by Services
};

// A container port by its name; protocols have to agree.
std::uint16_t find_named_port(const Json& pod, std::string_view name, Protocol protocol) {
  for (const char* kind : {"containers", "initContainers"}) {
    const model::JsonArray* containers = model::array_at(pod, {"spec", kind});
    if (!containers) continue;
    for (const Json& container : *containers) {
      const model::JsonArray* ports = model::array_at(container, {"ports"});
      if (!ports) continue;
      for (const Json& port : *ports)
        if (text_at(port, {"name"}) == name &&
            find_protocol(text_at(port, {"protocol"})) == protocol)
          return port_number(port, {"containerPort"});
    }
  }
  return 0;
}

std::optional<Ports> meet(const Ports& left, const Ports& right) {
  Ports both;
  if (left.protocol != Protocol::any && right.protocol != Protocol::any &&
      left.protocol != right.protocol)
    return std::nullopt;
  both.protocol = left.protocol == Protocol::any ? right.protocol : left.protocol;
  if (left.first == 0 || right.first == 0) {
    both.first = std::max(left.first, right.first);
    both.last = std::max(left.last, right.last);
    return both;
  }
  both.first = std::max(left.first, right.first);
  both.last = std::min(left.last, right.last);
  return both.first <= both.last ? std::optional(both) : std::nullopt;
}

std::vector<Ports> meet(const std::vector<Ports>& left, const std::vector<Ports>& right) {
  std::vector<Ports> all;
  for (const Ports& one : left)
    for (const Ports& other : right)
      if (const auto both = meet(one, other)) all.push_back(*both);
  return all;
}

// Null for a rule that leads to no pod: then names mean nothing.
std::vector<Ports> ports_of(const PeerRule& rule, const Json* pod) {
  if (rule.is_any_port) return {Ports()};
  std::vector<Ports> all;
  for (const PortRule& port : rule.ports) {
    Ports ports = port.ports;
    if (!port.name.empty()) {
      ports.first = ports.last =
          pod ? find_named_port(*pod, port.name, ports.protocol) : std::uint16_t{0};
      if (ports.first == 0) continue;
    }
    all.push_back(ports);
  }
  return all;
}

// Whether a selector of pods and namespaces, said in `ns`, means that neighbour.
bool means(const Peer& peer, std::string_view ns, const Neighbour& other) {
  if (peer.block) return false;
  if (!peer.namespaces && other.ns != ns) return false;
  if (peer.namespaces && (!other.ns_labels || !peer.namespaces->matches(*other.ns_labels)))
    return false;
  return !peer.pods || peer.pods->matches(other.labels);
}

bool is_in_block(const Peer& peer, std::uint32_t address) {
  if (!peer.block || address == 0 || !peer.block->contains(address)) return false;
  return std::ranges::none_of(peer.excepted,
                              [&](const Cidr& cidr) { return cidr.contains(address); });
}

// Collects what one pod may reach.
class Draft {
 public:
  void allow(const Cidr& to, const std::vector<Ports>& ports) { add(policy_.allow, to, ports); }
  bool is_full() const { return policy_.open.size() >= kMostOpened; }
  void open(std::uint32_t address, const std::vector<Ports>& ports) {
    if (policy_.open.size() + ports.size() <= kMostOpened)
      add(policy_.open, {.address = address}, ports);
  }
  // Everywhere but there. Of two such words, what one excepts the other one gives.
  void allow_world(const std::vector<Cidr>& excepted) {
    if (is_world_) {
      for (const Cidr& cidr : std::exchange(excepted_, {}))
        for (const Cidr& rest : without_all(cidr, excepted)) excepted_.push_back(rest);
      return;
    }
    is_world_ = true;
    excepted_ = excepted;
  }
  network::Policy take() && {
    policy_.mode = is_world_ ? network::Mode::world : network::Mode::listed;
    for (const Cidr& cidr : excepted_) policy_.deny.push_back({.to = cidr});
    fit();
    return std::move(policy_);
  }

 private:
  static void add(std::vector<Rule>& rules, const Cidr& to, const std::vector<Ports>& ports) {
    for (const Ports& one : ports) {
      const Rule rule{
          .to = to, .protocol = one.protocol, .first_port = one.first, .last_port = one.last};
      if (std::ranges::find(rules, rule) == rules.end()) rules.push_back(rule);
    }
  }
  // The part of `cidr` that all of `excepted` except as well.
  static std::vector<Cidr> without_all(const Cidr& cidr, const std::vector<Cidr>& excepted) {
    return without(cidr, without(cidr, excepted));
  }
  // What is forbidden must not be what is left out.
  void fit() {
    if (policy_.deny.size() + policy_.open.size() > network::kMostRules) {
      policy_.mode = network::Mode::listed;
      policy_.deny.clear();
    }
    const std::size_t room = network::kMostRules - policy_.open.size() - policy_.deny.size();
    if (policy_.allow.size() > room) policy_.allow.resize(room);
  }

  network::Policy policy_;
  bool is_world_ = false;
  std::vector<Cidr> excepted_;
};

Neighbour make_neighbour(const Json& pod) {
  return {.ns = std::string(model::namespace_of(pod)),
          .labels = model::labels_of(pod),
          .address = address_of_pod(pod)};
}

std::vector<Ports> offered_by(const Json& service, const Json& pod) {
  const model::JsonArray* ports = model::array_at(service, {"spec", "ports"});
  if (!ports || ports->empty()) return {Ports()};
  std::vector<Ports> all;
  for (const Json& port : *ports) {
    const auto protocol = find_protocol(text_at(port, {"protocol"}));
    const std::uint16_t number = target_port(port, pod);
    if (protocol && number != 0)
      all.push_back({.protocol = *protocol, .first = number, .last = number});
  }
  return all;
}

}  // namespace

struct Neighbourhood::State {
  std::map<std::string, Labels, std::less<>> namespaces;
  std::vector<Neighbour> all;
};

Neighbourhood::Neighbourhood(std::span<const client::Object> pods,
                             std::span<const client::Object> namespaces,
                             std::span<const client::Object> services) {
  auto state = std::make_unique<State>();
  for (const client::Object& ns : namespaces)
    state->namespaces.emplace(model::name_of(*ns), model::labels_of(*ns));
  std::map<std::string, std::vector<client::Object>, std::less<>> offers;
  for (const client::Object& service : services)
    offers[std::string(model::namespace_of(*service))].push_back(service);
  for (const client::Object& pod : pods) {
    Neighbour neighbour = make_neighbour(*pod);
    if (neighbour.address == 0) continue;
    neighbour.pod = pod;
    const auto ns = state->namespaces.find(neighbour.ns);
    if (ns != state->namespaces.end()) neighbour.ns_labels = &ns->second;
    for (const client::Object& service : offers[neighbour.ns]) {
      if (!selects(*service, *pod)) continue;
      const std::vector<Ports> offered = offered_by(*service, *pod);
      neighbour.offered.insert(neighbour.offered.end(), offered.begin(), offered.end());
    }
    state->all.push_back(std::move(neighbour));
  }
  state_ = std::move(state);
}

Neighbourhood::~Neighbourhood() = default;

struct NetworkPolicies::State {
  std::vector<Parsed> all;

  // On which ports `target` lets `source` in.
  std::vector<Ports> admitted(const Neighbour& source, const Neighbour& target) const {
    std::vector<Ports> ports;
    bool is_selected = false;
    for (const Parsed& policy : all) {
      if (!policy.is_ingress || !policy.is_about(target.ns, target.labels)) continue;
      is_selected = true;
      for (const PeerRule& rule : policy.ingress) {
        const bool is_meant =
            rule.is_anybody
                ? source.ns == target.ns
                : std::ranges::any_of(rule.peers, [&](const Peer& peer) {
                    return means(peer, policy.ns, source) ||
                           (source.ns == target.ns && is_in_block(peer, source.address));
                  });
        if (!is_meant) continue;
        const std::vector<Ports> more = ports_of(rule, target.pod.get());
        ports.insert(ports.end(), more.begin(), more.end());
      }
    }
    if (!is_selected && source.ns == target.ns) return {Ports()};
    return ports;
  }

  // To what Services of the namespace offer, as far as `rule` (null: no limit) and targets agree.
  void open_offered(Draft& draft, const Neighbour& source, const std::vector<Neighbour>& around,
                    const PeerRule* rule) const {
    for (const Neighbour& target : around) {
      if (draft.is_full()) return;
      if (target.ns != source.ns || target.offered.empty()) continue;
      std::vector<Ports> ports = meet(target.offered, admitted(source, target));
      if (rule) ports = meet(ports, ports_of(*rule, target.pod.get()));
      draft.open(target.address, ports);
    }
  }

  void apply(Draft& draft, const Neighbour& source, const std::vector<Neighbour>& around,
             const PeerRule& rule) const {
    const std::vector<Ports> ports = ports_of(rule, nullptr);
    if (rule.is_anybody) {
      rule.is_any_port ? draft.allow_world({}) : draft.allow(kEverywhere, ports);
      return open_offered(draft, source, around, &rule);
    }
    for (const Peer& peer : rule.peers) {
      if (peer.block) {
        if (peer.block->prefix == 0 && rule.is_any_port) {
          draft.allow_world(peer.excepted);
        } else {
          for (const Cidr& cidr : without(*peer.block, peer.excepted)) draft.allow(cidr, ports);
        }
        continue;
      }
      for (const Neighbour& target : around)
        if (!draft.is_full() && means(peer, source.ns, target))
          draft.open(target.address,
                     meet(ports_of(rule, target.pod.get()), admitted(source, target)));
    }
  }
};

NetworkPolicies::NetworkPolicies(std::span<const client::Object> policies) {
  auto state = std::make_unique<State>();
  for (const client::Object& policy : policies) state->all.push_back(parse_network_policy(*policy));
  state_ = std::move(state);
}

NetworkPolicies::~NetworkPolicies() = default;

network::Policy NetworkPolicies::policy_for(const Json& pod, const Neighbourhood& around) const {
  Neighbour source = make_neighbour(pod);
  const auto ns = around.state_->namespaces.find(source.ns);
  if (ns != around.state_->namespaces.end()) source.ns_labels = &ns->second;
  Draft draft;
  bool is_selected = false;
  for (const Parsed& policy : state_->all) {
    if (!policy.is_egress || !policy.is_about(source.ns, source.labels)) continue;
    is_selected = true;
    for (const PeerRule& rule : policy.egress)
      state_->apply(draft, source, around.state_->all, rule);
  }
  if (!is_selected) {
    draft.allow_world({});
    state_->open_offered(draft, source, around.state_->all, nullptr);
  }
  return std::move(draft).take();
}

std::uint32_t address_of_pod(const Json& pod) {
  const std::string_view phase = text_at(pod, {"status", "phase"});
  const std::string_view address = text_at(pod, {"status", "podIP"});
  if (phase == "Succeeded" || phase == "Failed" || address.empty()) return 0;
  try {
    return network::parse_cidr(address).address;
  } catch (const Error&) {
    return 0;
  }
}

bool selects(const Json& service, const Json& pod) {
  const model::JsonObject* selector = model::object_at(service, {"spec", "selector"});
  if (!selector || selector->empty()) return false;
  return std::ranges::all_of(*selector, [&](const auto& label) {
    const Json* value = model::find(pod, {"metadata", "labels", std::string_view(label.key())});
    return value && *value == label.value();
  });
}

std::uint16_t target_port(const Json& service_port, const Json& pod) {
  const std::string_view name = text_at(service_port, {"targetPort"});
  if (!name.empty()) {
    const auto protocol = find_protocol(text_at(service_port, {"protocol"}));
    return protocol ? find_named_port(pod, name, *protocol) : std::uint16_t{0};
  }
  const std::uint16_t number = port_number(service_port, {"targetPort"});
  return number != 0 ? number : port_number(service_port, {"port"});
}

std::vector<Cidr> without(const Cidr& whole, std::span<const Cidr> excepted) {
  std::vector<Cidr> left = {whole};
  for (const Cidr& hole : excepted) {
    std::vector<Cidr> next;
    for (Cidr cidr : left) {
      if (!cidr.overlaps(hole)) {
        next.push_back(cidr);
        continue;
      }
      // Halves that the hole is not in stay; what is left in the end is in the hole.
      while (cidr.prefix < hole.prefix) {
        ++cidr.prefix;
        Cidr other = cidr;
        other.address |= std::uint32_t{1} << (32 - cidr.prefix);
        if (other.contains(hole.address)) std::swap(cidr, other);
        next.push_back(other);
      }
    }
    left = std::move(next);
  }
  return left;
}

}  // namespace hearth::node
