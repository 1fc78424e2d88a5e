#include "node/network_policy.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "model/meta.h"
#include "model/selector.h"
#include "node/network_policy_internal.h"
#include "node/pod_policy.h"

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

// Pods are looked at when the first policy or Service asks for them: mostly none does, and there
// may be thousands that come and go.
struct Neighbourhood::State {
  std::map<std::string, Labels, std::less<>> namespaces;
  // Those that a Service selects, by namespace.
  std::map<std::string, std::vector<const Neighbour*>, std::less<>> offering;

  explicit State(std::vector<client::Object> pods) : pods_(std::move(pods)) {}

  const std::vector<Neighbour>& all() const;
  void add_offers(std::span<const client::Object> services);

 private:
  std::vector<client::Object> pods_;
  mutable std::once_flag once_;
  mutable std::vector<Neighbour> all_;
};

const std::vector<Neighbour>& Neighbourhood::State::all() const {
  std::call_once(once_, [this] {
    for (const client::Object& pod : pods_) {
      Neighbour neighbour = make_neighbour(*pod);
      if (neighbour.address == 0) continue;
      neighbour.pod = pod;
      const auto ns = namespaces.find(neighbour.ns);
      if (ns != namespaces.end()) neighbour.ns_labels = &ns->second;
      all_.push_back(std::move(neighbour));
    }
  });
  return all_;
}

// Before anyone else reads it.
void Neighbourhood::State::add_offers(std::span<const client::Object> services) {
  const auto has_selector = [](const client::Object& service) {
    const model::JsonObject* selector = model::object_at(*service, {"spec", "selector"});
    return selector && !selector->empty();
  };
  if (std::ranges::none_of(services, has_selector)) return;
  const PodIndex pods(pods_);
  all();
  std::map<const Json*, Neighbour*> known;
  for (Neighbour& neighbour : all_) known[neighbour.pod.get()] = &neighbour;
  for (const client::Object& service : services) {
    for (const client::Object& pod : pods.selected_by(*service)) {
      const std::vector<Ports> offered = offered_by(*service, *pod);
      Neighbour& target = *known.at(pod.get());
      target.offered.insert(target.offered.end(), offered.begin(), offered.end());
    }
  }
  for (const Neighbour& neighbour : all_)
    if (!neighbour.offered.empty()) offering[neighbour.ns].push_back(&neighbour);
}

Neighbourhood::Neighbourhood(std::span<const client::Object> pods,
                             std::span<const client::Object> namespaces,
                             std::span<const client::Object> services) {
  auto state = std::make_unique<State>(std::vector(pods.begin(), pods.end()));
  for (const client::Object& ns : namespaces)
    state->namespaces.emplace(model::name_of(*ns), model::labels_of(*ns));
  state->add_offers(services);
  state_ = std::move(state);
}

Neighbourhood::~Neighbourhood() = default;

struct NetworkPolicies::State {
  std::vector<std::shared_ptr<const Parsed>> all;

  void add(std::span<const client::Object> policies) {
    for (const client::Object& policy : policies)
      all.push_back(std::make_shared<const Parsed>(parse_network_policy(*policy)));
  }
  std::vector<Ports> admitted(const Neighbour& source, const Neighbour& target) const;
  void open_offered(Draft& draft, const Neighbour& source, const Neighbourhood::State& around,
                    const PeerRule* rule) const;
  void apply(Draft& draft, const Neighbour& source, const Neighbourhood::State& around,
             const PeerRule& rule) const;
};

// On which ports `target` lets `source` in.
std::vector<Ports> NetworkPolicies::State::admitted(const Neighbour& source,
                                                    const Neighbour& target) const {
  const bool is_near = source.ns == target.ns;
  std::vector<Ports> ports;
  bool is_selected = false;
  for (const auto& policy : all) {
    if (!policy->is_ingress || !policy->is_about(target.ns, target.labels)) continue;
    is_selected = true;
    for (const PeerRule& rule : policy->ingress) {
      const auto is_meant = [&](const Peer& peer) {
        return means(peer, policy->ns, source) || (is_near && is_in_block(peer, source.address));
      };
      if (!(rule.is_anybody ? is_near : std::ranges::any_of(rule.peers, is_meant))) continue;
      const std::vector<Ports> more = ports_of(rule, target.pod.get());
      ports.insert(ports.end(), more.begin(), more.end());
    }
  }
  if (!is_selected && is_near) return {Ports()};
  return ports;
}

// To what Services of the namespace offer, as far as `rule` (null: no limit) and targets agree.
void NetworkPolicies::State::open_offered(Draft& draft, const Neighbour& source,
                                          const Neighbourhood::State& around,
                                          const PeerRule* rule) const {
  const auto found = around.offering.find(source.ns);
  if (found == around.offering.end()) return;
  for (const Neighbour* target : found->second) {
    if (draft.is_full()) return;
    if (target->address == source.address) continue;
    std::vector<Ports> ports = meet(target->offered, admitted(source, *target));
    if (rule) ports = meet(ports, ports_of(*rule, target->pod.get()));
    draft.open(target->address, ports);
  }
}

void NetworkPolicies::State::apply(Draft& draft, const Neighbour& source,
                                   const Neighbourhood::State& around, const PeerRule& rule) const {
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
    for (const Neighbour& target : around.all())
      if (!draft.is_full() && target.address != source.address && means(peer, source.ns, target))
        draft.open(target.address,
                   meet(ports_of(rule, target.pod.get()), admitted(source, target)));
  }
}

NetworkPolicies::NetworkPolicies(std::span<const client::Object> policies) {
  auto state = std::make_unique<State>();
  state->add(policies);
  state_ = std::move(state);
}

NetworkPolicies::NetworkPolicies(const NetworkPolicies& others, std::string_view ns,
                                 std::span<const client::Object> policies) {
  auto state = std::make_unique<State>();
  for (const auto& policy : others.state_->all)
    if (policy->ns != ns) state->all.push_back(policy);
  state->add(policies);
  state_ = std::move(state);
}

NetworkPolicies::~NetworkPolicies() = default;

network::Policy NetworkPolicies::policy_for(const Json& pod, const Neighbourhood& around,
                                            std::span<const std::uint32_t> answered) const {
  Neighbour source = make_neighbour(pod);
  const auto ns = around.state_->namespaces.find(source.ns);
  if (ns != around.state_->namespaces.end()) source.ns_labels = &ns->second;
  Draft draft;
  bool is_selected = false;
  for (const auto& policy : state_->all) {
    if (!policy->is_egress || !policy->is_about(source.ns, source.labels)) continue;
    is_selected = true;
    for (const PeerRule& rule : policy->egress) state_->apply(draft, source, *around.state_, rule);
  }
  if (!is_selected) {
    draft.allow_world({});
    state_->open_offered(draft, source, *around.state_, nullptr);
  }
  network::Policy policy = std::move(draft).take();
  narrow_as_asked(policy, pod, answered);
  return policy;
}

bool NetworkPolicies::is_about_neighbours(const Neighbourhood& around) const {
  if (!around.state_->offering.empty()) return true;
  const auto looks = [](const PeerRule& rule) {
    return std::ranges::any_of(rule.peers, [](const Peer& peer) { return !peer.block; });
  };
  return std::ranges::any_of(
      state_->all, [&](const auto& policy) { return std::ranges::any_of(policy->egress, looks); });
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
