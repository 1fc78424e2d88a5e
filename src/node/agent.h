// This machine as a Kubernetes node: runs the pods that are bound to it.
//
//   watch ──▶ Controller ──▶ Pods ──▶ Keeper (one a pod) ──▶ runtime, guests
//                                        └──▶ status, one write at a time
//
// Knows the API only as a client::Client: the embedded one or any cluster's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/client.h"
#include "model/json.h"
#include "node/pressure.h"
#include "registry/pull.h"

namespace hearth::pool {
class Reach;
}
namespace hearth::runtime {
struct SandboxSpec;
}

namespace hearth::node {

struct AgentOptions {
  std::string state_dir;  // of the engine: where its runtime listens
  std::string node_name;
  std::string host_address = "127.0.0.1";
  bool has_network = true;  // whether the runtime gives sandboxes one
  // Whether pods that name no node get this one. Not where a scheduler does that.
  bool binds = true;
  registry::PullOptions pull = {};
  // What must be left of this machine; pods are ended for it. None: it may run out.
  Thresholds eviction = parse_thresholds(kUsualThresholds);
  // Called before the first container of a pod is made that is dressed (model/front_door.h): adds
  // what it wears. Any thread. None: such pods are like others.
  std::function<void(const model::Json& pod, runtime::SandboxSpec& spec)> dress = {};
  unsigned workers = 16;
};

class Agent {
 public:
  // The client must outlive it.
  Agent(client::Client& client, const AgentOptions& options);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  // Returns when what was left here by an earlier life has been taken over and pods are served.
  // Throws Error.
  void start();
  // Idempotent. Sandboxes live on.
  void stop();

  // For who binds a pod as it is made: whether it may, and has its place now. One that may not is
  // made without a node, and the agent says why. Any thread, while the agent runs and binds.
  bool gives_place(const model::Json& pod);
  // For front doors and controllers in the same process. Lives as long as the agent.
  pool::Reach& reach();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::node
