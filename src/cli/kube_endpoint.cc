#include "cli/kube_endpoint.h"

#include <optional>

#include "apiserver/server.h"
#include "cli/endpoints.h"
#include "net/workers.h"
#include "node/runtime_backend.h"

namespace hearth::cli {
namespace {

// Commands that are being started at the same time: a guest that is slow holds one up.
constexpr unsigned kStarters = 8;

apiserver::ServerOptions make_options(KubeEndpointOptions& options, remote::Backend* backend) {
  apiserver::ServerOptions made;
  made.state_dir = options.state_dir + "/" + kEngineFolder;
  made.address = options.listening.address;
  made.listen_fd = options.listening.socket.release();
  made.admin_token = options.token;
  if (options.listen != made.address) made.names.push_back(options.listen);
  made.backend = backend;
  return made;
}

}  // namespace

struct KubeEndpoint::State {
  explicit State(KubeEndpointOptions options) {
    if (options.has_sandboxes) {
      workers.emplace(kStarters);
      backend.emplace(options.state_dir, *workers);
    }
    server.emplace(make_options(options, backend ? &*backend : nullptr));
    server->start();
  }

  std::optional<net::Workers> workers;
  std::optional<node::RuntimeBackend> backend;
  std::optional<apiserver::Server> server;  // last: it ends first
};

KubeEndpoint::KubeEndpoint(KubeEndpointOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

KubeEndpoint::~KubeEndpoint() = default;

std::string KubeEndpoint::url() const {
  return state_->server->url();
}

}  // namespace hearth::cli
