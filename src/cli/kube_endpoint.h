// The Kubernetes API of an engine: with controllers and this machine as its node, or alone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/e2b_endpoint.h"
#include "cli/listening.h"

namespace hearth::metrics {
class Registry;
}

namespace hearth::tracing {
class Tracer;
}

namespace hearth::cli {

struct KubeEndpointOptions {
  std::string state_dir;
  Listening listening;
  std::string listen;  // as the user wrote it: one more name of the server
  std::string token;   // the admin's; empty: the kept one, or a new one
  // Pods become sandboxes of the runtime; exec, logs and port-forward lead to them.
  bool has_sandboxes = false;
  std::string node_name;                       // with them; empty: the host's name
  bool has_network = true;                     // and whether they have one
  std::string eviction_hard = {};              // and what pods are ended for (node/pressure.h)
  std::optional<E2bEndpointOptions> e2b = {};  // with them: the E2B API too
  metrics::Registry* metrics = nullptr;  // of the controllers; must not be asked once this is gone
  std::string registry_ca = {};          // PEM: whom to trust of registries besides the system's
  tracing::Tracer* tracer = nullptr;     // of the controllers; must outlive this
};

class KubeEndpoint {
 public:
  // Serves until it is destroyed. Writes into the engine's folder only, as whoever we are now.
  // Throws Error for objects that are damaged or in use.
  explicit KubeEndpoint(KubeEndpointOptions options);
  KubeEndpoint(const KubeEndpoint&) = delete;
  KubeEndpoint& operator=(const KubeEndpoint&) = delete;
  ~KubeEndpoint();

  std::string url() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::cli
