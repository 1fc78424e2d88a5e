#include <unistd.h>

#include <charconv>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "apiserver/server.h"
#include "base/id.h"
#include "bench/claim_engines.h"
#include "client/kinds.h"
#include "controllers/fleet.h"
#include "metrics/registry.h"
#include "model/meta.h"
#include "model/read_json.h"
#include "reconcile/manager.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kToken = "bench";
constexpr const char* kNode = "simulated";

// A node that says of every pod that it runs, and of those that are to go that they have.
class SimulatedNode final : public reconcile::Reconciler {
 public:
  explicit SimulatedNode(reconcile::Manager& manager)
      : client_(manager.client()), pods_(manager.cache(client::kPods)) {
    manager.add(*this, {.name = "node", .workers = 4, .is_background = true}).watch(pods_);
  }

  reconcile::Next reconcile(const model::Key& key) override {
    const client::Object pod = pods_.find(key.ns, key.name);
    if (!pod) return reconcile::kWhenChanged;
    try {
      if (model::is_deleting(*pod)) {
        client_.remove(client::kPods, key.ns, key.name, {.grace_seconds = 0});
      } else if (!model::is_condition_true(*pod, "Ready")) {
        client_.patch(client::kPods, key.ns, key.name, client::PatchKind::merge, kRunning,
                      {.subresource = "status"});
      }
    } catch (const model::StatusError& error) {
      if (error.status().code != 404) throw;
    }
    return reconcile::kWhenChanged;
  }

 private:
  const model::Json kRunning = model::read_json(
      R"({"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],)"
      R"("conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}]}})");

  client::Client& client_;
  client::WatchCache& pods_;
};

class Simulation final : public ClaimEngine {
 public:
  Simulation()
      : folder_(fs::temp_directory_path() / ("hearth-bench-sim-" + random_hex(4))),
        server_(make_server()) {
    fleet_.emplace(server_->client(), clock_, metrics_, make_options());
    node_.emplace(fleet_->manager());
    server_->start();
    fleet_->start_caches();
    fleet_->start_controllers();
    server_->welcome(client::kSandboxClaims, fleet_->claim_welcomer());
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() override {
    server_->welcome(client::kSandboxClaims, {});
    fleet_->stop();
    // What writes events and the counts of pools lives as long as the fleet, and asks the server.
    node_.reset();
    fleet_.reset();
    server_.reset();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  ApiAddress address() const override {
    const std::string url = server_->url();
    ApiAddress address{.port = 0, .token = kToken};
    const std::size_t colon = url.rfind(':');
    std::from_chars(url.data() + colon + 1, url.data() + url.size(), address.port);
    return address;
  }
  std::string image() const override { return "simulated"; }

 private:
  std::unique_ptr<apiserver::Server> make_server() const {
    fs::create_directory(folder_);
    return std::make_unique<apiserver::Server>(
        apiserver::ServerOptions{.state_dir = folder_, .admin_token = kToken});
  }
  static controllers::FleetOptions make_options() {
    controllers::FleetOptions options;
    options.controllers = controllers::embedded_options(kNode);
    return options;
  }

  const std::string folder_;
  const SystemClock clock_;
  metrics::Registry metrics_;
  std::unique_ptr<apiserver::Server> server_;
  std::optional<controllers::Fleet> fleet_;
  std::optional<SimulatedNode> node_;
};

}  // namespace

std::unique_ptr<ClaimEngine> start_simulation() {
  // As every program with a server in it: a client that has left must not end us, which would leave
  // the engine beside it running.
  ::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<Simulation>();
}

}  // namespace hearth::bench
