#include "cli/controller.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "cli/e2b_endpoint.h"
#include "cli/listening.h"
#include "cli/otlp.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "client/cluster_access.h"
#include "client/http_client.h"
#include "client/kinds.h"
#include "client/paced_client.h"
#include "controllers/fleet.h"
#include "linux/fd.h"
#include "metrics/registry.h"
#include "model/yaml_text.h"
#include "net/server.h"
#include "net/workers.h"
#include "reconcile/leader_election.h"
#include "schema/builtin.h"
#include "webhook/trust.h"
#include "webhook/webhook.h"

namespace hearth::cli {
namespace {

// The lease of agent-sandbox-controller: ours and theirs must never act at the same time.
constexpr char kLease[] = "a3317529.agent-sandbox.x-k8s.io";
constexpr unsigned kManyWorkers = 1000;
// Of an address: not served.
constexpr char kOff[] = "0";

client::ClusterAccess find_cluster(const ControllerOptions& options) {
  const char* named = ::getenv("KUBECONFIG");
  if (!options.kubeconfig.empty()) {
    return client::load_kubeconfig({options.kubeconfig}, options.context);
  }
  if (named != nullptr && *named != '\0') {
    return client::load_kubeconfig(client::kubeconfig_files(), options.context);
  }
  if (!options.context.empty()) fail(Code::invalid, "--context: of which file? Add --kubeconfig");
  if (auto access = client::find_in_cluster_access()) return *access;
  fail(Code::not_found,
       "which cluster? Neither --kubeconfig nor KUBECONFIG names one, and this "
       "is no pod of one");
}

bool has_extensions(client::HttpClient& api) {
  http::Request request;
  request.method = "GET";
  request.target = "/apis/" + client::kSandboxClaims.api_version();
  try {
    api.fetch(request);
    return true;
  } catch (const model::StatusError& error) {
    if (error.status().code != 404) throw;
    return false;
  }
}

void tell_options(const ControllerOptions& options) {
  for (const std::string& flag : options.without_effect) {
    log::warning("a flag has no effect here", {{"flag", flag}});
  }
  const controllers::Options& of = options.controllers;
  const unsigned workers =
      of.sandbox_workers + of.claim_workers + of.pool_workers + of.template_workers;
  if (workers > kManyWorkers) {
    log::warning("that is a lot of workers for one API server", {{"workers", workers}});
  }
}

http::Response ok(const http::Request& /*request*/) {
  return http::text_response(200, "ok");
}

// One server on one address, until it goes.
class Endpoint {
 public:
  Endpoint(const std::string& address, const char* flag, net::Router router)
      : listening_(listen_on(address, flag)), server_(options(), std::move(router)) {
    server_.start();
    log::info("listening", {{"flag", flag}, {"url", listening_.url}});
  }

 private:
  net::ServerOptions options() {
    net::ServerOptions options;
    options.listen_fd = listening_.socket.release();
    options.max_connections = 64;  // probes and scrapers
    return options;
  }

  Listening listening_;
  net::Server server_;
};

net::Router metrics_router(const metrics::Registry& registry, net::Workers& workers) {
  net::Router router;
  const auto render = [&registry](const http::Request&) {
    http::Response response{.body = registry.render()};
    response.headers.set("Content-Type", metrics::kTextType);
    return response;
  };
  router.add("GET", "/metrics", render, {.workers = &workers});
  return router;
}

net::Router health_router() {
  net::Router router;
  router.add("GET", "/healthz", ok);
  router.add("GET", "/readyz", ok);
  return router;
}

// Health and numbers, where they are wanted.
class Doors {
 public:
  Doors(const ControllerOptions& options, const metrics::Registry& registry) {
    if (options.metrics_address != kOff) {
      metrics_.emplace(options.metrics_address, "--metrics-bind-address",
                       metrics_router(registry, scrapes_));
    }
    if (options.health_address != kOff) {
      health_.emplace(options.health_address, "--health-probe-bind-address", health_router());
    }
  }

 private:
  net::Workers scrapes_{1};
  std::optional<Endpoint> metrics_;
  std::optional<Endpoint> health_;
};

void count_leader(metrics::Registry& registry, const reconcile::LeaderElection& election) {
  const auto collect = [&election] {
    const double leads = election.is_leader() ? 1 : 0;
    return std::vector<metrics::Sample>{{{{"name", kLease}}, leads}};
  };
  registry.collect("leader_election_master_status", "Whether this process leads.",
                   metrics::Kind::gauge, collect);
}

void wait_for_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait(lock, stop, [] { return false; });
}

void act(controllers::Fleet& fleet, const std::stop_token& stop) {
  fleet.start_controllers();
  log::info("controllers started");
  wait_for_stop(stop);
  fleet.stop();
}

// The E2B API and the gateway, with a folder for what is between them. Every replica serves.
class FrontDoor {
 public:
  FrontDoor(const ControllerOptions& options, const E2bParts& parts, controllers::Fleet& fleet)
      : fleet_(fleet), folder_(make_private_folder()) {
    E2bEndpointOptions wanted;
    wanted.folder = folder_;
    wanted.listening = listen_on(options.e2b_address, "--e2b-bind-address");
    wanted.domain = options.e2b_domain;
    if (!options.access_log.empty())
      wanted.access_log = gateway::open_access_file(options.access_log);
    endpoint_.emplace(parts, std::move(wanted));
  }
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;
  ~FrontDoor() {
    endpoint_->stop();
    fleet_.stop();  // its caches know the endpoint
    endpoint_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void start() { endpoint_->start(); }

 private:
  static std::string make_private_folder() {
    std::string path = std::filesystem::temp_directory_path() / "hearth-e2b-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) throw_errno("make folder '{}'", path);
    return path;
  }

  controllers::Fleet& fleet_;
  std::string folder_;
  std::optional<E2bEndpoint> endpoint_;
};

// For a cluster whose CRDs ask for it. Every replica serves.
std::unique_ptr<webhook::Webhook> make_webhook(const WebhookFlags& flags,
                                               const std::string& cluster_domain,
                                               const std::string& own_ns, client::Client& api,
                                               const Clock& clock) {
  webhook::Options wanted{.service = {flags.ns.empty() ? own_ns : flags.ns, flags.service},
                          .cluster_domain = cluster_domain};
  const bool is_wanted =
      flags.is_enabled ? *flags.is_enabled : webhook::is_converted_by(api, wanted.service);
  if (!is_wanted) return nullptr;
  if (!flags.manages_certificates) {
    wanted.certificate_file = std::filesystem::path(flags.folder) / flags.certificate;
    wanted.key_file = std::filesystem::path(flags.folder) / flags.key;
  }
  Listening listening = listen_on(fmt::format(":{}", flags.port), "--webhook-port");
  log::info("converting versions",
            {{"flag", "--webhook-port"}, {"port", flags.port}, {"service", wanted.service.text()}});
  return std::make_unique<webhook::Webhook>(api, clock, std::move(wanted),
                                            std::move(listening.socket));
}

// The lease may be another's by now, and requests of ours hang: what they would go on with, once
// they are answered, is not ours to do. Kubernetes starts us again.
[[noreturn]] void end_at_once() {
  log::error("the lease was lost, and requests are not answered: ending without waiting for them");
  ::_exit(1);
}

// What is done until the end; false: another leads now.
bool lead(controllers::Fleet& fleet, FrontDoor* door, reconcile::LeaderElection* election,
          const std::stop_token& stop) {
  fleet.start_caches(std::chrono::minutes(2), stop);
  if (door != nullptr) door->start();
  if (election == nullptr) {
    act(fleet, stop);
    return true;
  }
  return election->run([&](const std::stop_token& lost) { act(fleet, lost); }, stop);
}

// Runs `work` on a thread of its own until it ends or a signal comes; what it throws comes out.
bool run_until_signal(Signals& signals,
                      const std::function<bool(const std::stop_token& stop)>& work) {
  linux::Pipe done = linux::make_pipe();
  std::exception_ptr failure;
  bool result = false;
  std::jthread working([&](const std::stop_token& stop) {
    try {
      result = work(stop);
    } catch (...) {
      failure = std::current_exception();
    }
    done.write.reset();
  });
  bool is_told = false;
  while (true) {
    std::array<pollfd, 2> waiting = {{{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                                      {.fd = done.read.get(), .events = POLLIN, .revents = 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) {
      throw_errno("wait for signals");
    }
    if (waiting[1].revents != 0) break;
    if (!signals.next()) continue;
    is_told = true;
    log::info("ending");
    working.request_stop();
  }
  working.join();
  if (failure && !is_told) std::rethrow_exception(failure);
  return is_told || result;
}

// Others need a conversion webhook: a server that cannot reach it complains every second.
void serve_kept_version_only(model::Json& crd) {
  model::Json* versions = model::find(crd, {"spec", "versions"});
  for (model::Json& version : versions->as_array()) {
    version.as_object()["served"] = model::is_true_at(version, {"storage"});
  }
}

void convert_by(model::Json& crd, const model::Key& service) {
  if (model::text_at(crd, {"spec", "conversion", "strategy"}) != "Webhook") return;
  const model::Json client = {
      {"service", {{"namespace", service.ns}, {"name", service.name}, {"path", webhook::kPath}}}};
  model::make_object_at(crd, {"spec", "conversion"})["webhook"] = model::JsonObject{
      {"clientConfig", client}, {"conversionReviewVersions", model::JsonArray{"v1"}}};
}

}  // namespace

int controller(const ControllerOptions& options) {
  if (options.version_only) {
    std::puts("hearth " HEARTH_VERSION);
    return 0;
  }
  log::configure(options.log_level, options.log_format);
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  tell_options(options);
  const client::ClusterAccess access = find_cluster(options);
  client::HttpClient http(access, {.manager = "agent-sandbox-controller"});
  std::optional<client::PacedClient> paced;
  if (options.api_qps > 0) paced.emplace(http, options.api_qps, options.api_burst);
  client::Client& api = paced ? static_cast<client::Client&>(*paced) : http;

  const SystemClock clock;
  const std::unique_ptr<tracing::Tracer> tracer =
      options.tracing ? make_tracer(clock, "agent-sandbox-controller") : nullptr;
  controllers::Options wanted = options.controllers;
  wanted.tracer = tracer.get();
  metrics::Registry registry;
  const bool extensions = options.extensions ? *options.extensions : has_extensions(http);
  controllers::Fleet fleet(api, clock, registry,
                           {.controllers = std::move(wanted), .extensions = extensions});
  std::optional<reconcile::LeaderElection> election;
  if (options.leader_elect) {
    const std::string& ns = options.lease_namespace.empty() ? access.ns : options.lease_namespace;
    // Past the fleet's pace: a lease that waits its turn is lost.
    election.emplace(
        http, reconcile::LeaderElectionOptions{.lease = {ns, kLease}, .on_overrun = end_at_once});
    count_leader(registry, *election);
  }
  // Before those that say that we are ready.
  const auto converting =
      make_webhook(options.webhook, options.controllers.cluster_domain, access.ns, http, clock);
  const Doors doors(options, registry);
  std::optional<FrontDoor> door;
  if (options.e2b_address != kOff) {
    const E2bParts parts{.client = api,
                         .manager = fleet.manager(),
                         .allocator = fleet.allocator(),
                         .reach = nullptr,
                         .tokens = tenants::SandboxTokens(tenants::load_token_seed(api)),
                         .clock = clock,
                         .metrics = registry};
    door.emplace(options, parts, fleet);
  }
  const bool is_ours = run_until_signal(signals, [&](const std::stop_token& stop) {
    return lead(fleet, door ? &*door : nullptr, election ? &*election : nullptr, stop);
  });
  if (!is_ours) fail(Code::conflict, "the lease was lost: {}", election->why_lost());
  return 0;
}

int crds(const CrdsOptions& options) {
  for (const schema::BuiltinCrd& builtin : schema::builtin_crds()) {
    model::Json crd = model::parse_json(builtin.json).value;
    const bool is_converted = !options.conversion_service.name.empty();
    if (is_converted) convert_by(crd, options.conversion_service);
    if (!is_converted && !options.all_versions) serve_kept_version_only(crd);
    std::fputs(("---\n" + model::to_yaml(crd)).c_str(), stdout);
  }
  return 0;
}

}  // namespace hearth::cli
