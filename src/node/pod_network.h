// What the network of this node's pods is made of, as one: their policies, the addresses and names
// of Services, and who answers names.
#pragma once

#include <memory>
#include <string>

#include "client/watch_cache.h"
#include "model/json.h"
#include "runtime/runtime.h"

namespace hearth::node {

struct PodNetworkOptions {
  std::string state_dir;  // of the runtime
  std::string domain = "cluster.local";
};

class PodNetwork {
 public:
  // All must outlive it. `pods` are this node's, and not started yet; whoever made it starts it.
  PodNetwork(client::Client& client, runtime::Runtime& runtime, client::WatchCache& pods,
             const PodNetworkOptions& options);
  PodNetwork(const PodNetwork&) = delete;
  PodNetwork& operator=(const PodNetwork&) = delete;
  ~PodNetwork();

  // When `pods` has been started. Throws Error.
  void start();
  // Idempotent.
  void stop();

  // A container that is about to be made gets the pod's policy and resolv.conf, if it has a
  // network. After start(). Throws Error, also StatusError.
  void furnish(const model::Json& pod, runtime::SandboxSpec& spec);

  // Has the pod's sandbox talk to whom the pod may, by its own words and the NetworkPolicies that
  // there are now. Changes of either take effect by themselves. As furnish().
  void enforce(const model::Json& pod, const std::string& sandbox);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::node
