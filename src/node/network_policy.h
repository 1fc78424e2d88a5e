// What NetworkPolicies and Services mean for a pod here: its network::Policy. Pure.
//
// A pod that no egress policy selects may talk to the world; one that is selected, to what its
// policies list. Walls stay where they are (network/policy.h): an ipBlock never leads through them,
// and between pods only what follows is opened.
//
//   * Same namespace: pods that a Service selects, on the ports it leads to, for pods that may go
//     everywhere; pods that an egress rule selects, on its ports. In both cases as far as the
//     target's ingress policies admit the source.
//   * Another namespace: pods that an egress rule selects, if an ingress policy of the target
//     admits the source by name. That the target has no policy is no invitation.
//
// DNS is no subject of policies: names are answered by this machine, whatever a pod may reach.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/watch_cache.h"
#include "model/json.h"
#include "network/policy.h"
#include "node/pod_index.h"

namespace hearth::node {

// More would not fit a policy, and each costs every packet of the pod a little.
inline constexpr std::size_t kMostOpened = 128;

// Whom pods may meet: made from all of them once, and read for each, by any thread.
class Neighbourhood {
 public:
  Neighbourhood(std::span<const client::Object> pods, std::span<const client::Object> namespaces,
                std::span<const client::Object> services);
  ~Neighbourhood();
  Neighbourhood(const Neighbourhood&) = delete;
  Neighbourhood& operator=(const Neighbourhood&) = delete;

 private:
  friend class NetworkPolicies;
  struct State;
  std::unique_ptr<const State> state_;
};

class NetworkPolicies {
 public:
  // One that makes no sense admits nothing.
  explicit NetworkPolicies(std::span<const client::Object> policies);
  ~NetworkPolicies();
  NetworkPolicies(const NetworkPolicies&) = delete;
  NetworkPolicies& operator=(const NetworkPolicies&) = delete;

  // Those that `others` has of other namespaces, and these.
  NetworkPolicies(const NetworkPolicies& others, std::string_view ns,
                  std::span<const client::Object> policies);

  // What does not fit a Policy is left out, and so not allowed. Less what the pod's own annotation
  // takes away (pod_policy.h); Error(invalid) if that makes no sense.
  // `answered` are the addresses of hosts that the annotation allows by name.
  network::Policy policy_for(const Json& pod, const Neighbourhood& around,
                             std::span<const std::uint32_t> answered = {}) const;

  // Whether it makes a difference to pods who else is there.
  bool is_about_neighbours(const Neighbourhood& around) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// What is left of `whole`.
std::vector<network::Cidr> without(const network::Cidr& whole,
                                   std::span<const network::Cidr> excepted);

}  // namespace hearth::node
