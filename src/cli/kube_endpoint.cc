#include "cli/kube_endpoint.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <optional>

#include "apiserver/server.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/on_failure.h"
#include "cli/endpoints.h"
#include "client/kinds.h"
#include "controllers/fleet.h"
#include "e2b/outfitting.h"
#include "metrics/registry.h"
#include "model/front_door.h"
#include "net/workers.h"
#include "node/agent.h"
#include "node/meter.h"
#include "node/runtime_backend.h"
#include "node/runtime_pool.h"
#include "pool/reach.h"
#include "runtime/spec.h"
#include "tenants/sandbox_tokens.h"

namespace hearth::cli {
namespace {

// Commands that are being started at the same time: a guest that is slow holds one up.
constexpr unsigned kStarters = 8;

apiserver::ServerOptions make_options(KubeEndpointOptions& options, remote::Backend* backend,
                                      remote::MeasureUsage measure) {
  apiserver::ServerOptions made;
  made.state_dir = options.state_dir + "/" + kEngineFolder;
  made.address = options.listening.address;
  made.listen_fd = options.listening.socket.release();
  made.admin_token = options.token;
  if (options.listen != made.address) made.names.push_back(options.listen);
  made.backend = backend;
  made.measure = std::move(measure);
  return made;
}

// A name of a node is a name of an object: lower case.
std::string node_name_or_host(std::string name) {
  if (name.empty()) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) throw_errno("read the host's name");
    name = host.data();
  }
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

node::AgentOptions make_agent_options(const KubeEndpointOptions& options) {
  node::AgentOptions made;
  made.state_dir = options.state_dir;
  made.node_name = node_name_or_host(options.node_name);
  made.has_network = options.has_network;
  made.eviction = node::parse_thresholds(options.eviction_hard);
  made.pull.downloads = options.state_dir + "/" + kEngineFolder + "/downloads";
  made.pull.extra_ca = options.registry_ca;
  return made;
}

controllers::FleetOptions make_fleet_options(const std::string& node, node::Agent& agent,
                                             tracing::Tracer* tracer) {
  controllers::FleetOptions made;
  made.outfitter = &agent.reach();
  made.controllers = controllers::embedded_options(node);
  made.controllers.tracer = tracer;
  made.controllers.gives_place = [&agent](const model::Json& pod) {
    return agent.gives_place(pod);
  };
  return made;
}

// Sandboxes of the E2B API are made with its variables and their token.
std::function<void(const model::Json&, runtime::SandboxSpec&)> make_dresser(
    const tenants::SandboxTokens& tokens) {
  return [tokens](const model::Json& pod, runtime::SandboxSpec& spec) {
    const std::optional<model::Owner> owner = model::controller_of(pod);
    if (!owner || owner->kind != "Sandbox") return;
    for (std::string& variable :
         e2b::variables_of(owner->name, model::annotation_of(pod, model::kDressAnnotation)))
      spec.environment.push_back(std::move(variable));
    spec.token = tokens.envd_token({std::string(model::namespace_of(pod)), owner->name});
  };
}

}  // namespace

struct KubeEndpoint::State {
  explicit State(KubeEndpointOptions options)
      : engine_dir(options.state_dir + "/" + kEngineFolder) {
    if (options.has_sandboxes) {
      workers.emplace(kStarters);
      backend.emplace(options.state_dir, *workers);
    }
    remote::MeasureUsage measure;
    if (options.has_sandboxes) {
      runtime.emplace(options.state_dir);
      meter.emplace(*runtime, clock, node_name_or_host(options.node_name));
      measure = [this] { return meter->measure(); };
    }
    server.emplace(make_options(options, backend ? &*backend : nullptr, std::move(measure)));
    server->start();
    if (!options.has_sandboxes) return;
    node::AgentOptions agent_options = make_agent_options(options);
    std::optional<tenants::SandboxTokens> tokens;
    if (options.e2b) tokens.emplace(tenants::load_token_seed(server->client()));
    if (tokens) agent_options.dress = make_dresser(*tokens);
    agent.emplace(server->client(), agent_options);
    agent->start();
    fleet.emplace(server->client(), clock, options.metrics ? *options.metrics : unseen,
                  make_fleet_options(agent_options.node_name, *agent, options.tracer));
    // Caches know of everybody who listens before they start, and end before those do.
    OnFailure undo([this] { stop(); });
    if (tokens) add_e2b(std::move(*options.e2b), *tokens, options.metrics);
    fleet->start_caches();
    fleet->start_controllers();
    server->welcome(client::kSandboxClaims, fleet->claim_welcomer());
    if (e2b) e2b->start();
    undo.release();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { stop(); }

  void add_e2b(E2bEndpointOptions options, const tenants::SandboxTokens& tokens,
               metrics::Registry* registry) {
    options.folder = engine_dir;
    options.keeps_first_key = true;
    e2b.emplace(E2bParts{.client = server->client(),
                         .manager = fleet->manager(),
                         .allocator = fleet->allocator(),
                         .reach = &agent->reach(),
                         .tokens = tokens,
                         .clock = clock,
                         .metrics = registry ? *registry : unseen,
                         .hurry_news = [this] { server->hurry_news(); }},
                std::move(options));
  }

  void stop() {
    if (e2b) e2b->stop();
    if (server) server->welcome(client::kSandboxClaims, {});
    if (fleet) fleet->stop();
  }

  const std::string engine_dir;
  const SystemClock clock;
  metrics::Registry unseen;  // where nobody gave one

  std::optional<net::Workers> workers;
  std::optional<node::RuntimeBackend> backend;
  std::optional<node::RuntimePool> runtime;  // of the meter
  std::optional<node::Meter> meter;
  std::optional<apiserver::Server> server;
  std::optional<node::Agent> agent;
  std::optional<controllers::Fleet> fleet;
  std::optional<E2bEndpoint> e2b;  // last: it uses all of them
};

KubeEndpoint::KubeEndpoint(KubeEndpointOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

KubeEndpoint::~KubeEndpoint() = default;

std::string KubeEndpoint::url() const {
  return state_->server->url();
}

}  // namespace hearth::cli
