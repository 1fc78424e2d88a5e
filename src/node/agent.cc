#include "node/agent.h"

#include "base/error.h"
#include "client/kinds.h"
#include "client/watch_cache.h"
#include "node/binder.h"
#include "node/evictor.h"
#include "node/node_object.h"
#include "node/pod_network.h"
#include "node/pods.h"
#include "node/provisioner.h"
#include "node/reach.h"
#include "node/refresher.h"
#include "node/runtime_pool.h"
#include "node/vacancy.h"
#include "reconcile/controller.h"
#include "reconcile/manager.h"

namespace hearth::node {
namespace {

constexpr Duration kSyncPatience = std::chrono::minutes(1);
// A pod that waits for another's download or hook is no reason to wait.
constexpr unsigned kDownloads = 8;
constexpr unsigned kTalks = 64;
constexpr unsigned kBinders = 4;

client::WatchCacheOptions pods_of(const std::string& node) {
  client::WatchCacheOptions options;
  options.field_selector = "spec.nodeName=" + node;
  return options;
}

client::WatchCacheOptions only(const std::string& node) {
  client::WatchCacheOptions options;
  options.field_selector = "metadata.name=" + node;
  return options;
}

PlannerOptions planner_options(const AgentOptions& options) {
  PlannerOptions made;
  made.node_name = options.node_name;
  made.host_address = options.host_address;
  made.has_network = options.has_network;
  return made;
}

// The cache must outlive it.
std::function<reconcile::Rank(const model::Key& key)> ranks_in(const client::WatchCache& cache) {
  return [&cache](const model::Key& key) { return rank_of(cache.find(key.ns, key.name).get()); };
}

// The claims and volumes of this machine, and who makes and unmakes them.
struct Storage {
  Storage(client::Client& client, runtime::Runtime& runtime, reconcile::EventRecorder& events,
          const std::string& node)
      : provisioner(client, runtime, &events, {.node_name = node}),
        reclaimer(client, runtime),
        manager(client) {
    auto& claims = manager.cache(client::kPersistentVolumeClaims);
    auto& volumes = manager.cache(client::kPersistentVolumes);
    auto& provisioning = manager.add(provisioner, {.name = "node-provisioner", .workers = 2});
    provisioning.watch(claims);
    auto& reclaiming = manager.add(reclaimer, {.name = "node-reclaimer"});
    reclaiming.watch(volumes);
    reclaiming.watch_mapped(claims, volumes_of_claim);
  }

  Provisioner provisioner;
  Reclaimer reclaimer;
  reconcile::Manager manager;
};

EvictorOptions evictor_options(const AgentOptions& options, Pods& pods) {
  EvictorOptions made;
  made.thresholds = options.eviction;
  made.supplies = [folder = options.state_dir] { return read_supplies(folder); };
  made.evict = [&pods](const Json& pod, const std::string& why) { pods.evict(pod, why); };
  return made;
}

NodeReporterOptions reporter_options(const AgentOptions& options, Images& images,
                                     Evictor& evictor) {
  NodeReporterOptions made;
  made.pressure = [&evictor] { return evictor.look(); };
  made.taints = options.binds;
  made.facts = read_node_facts(options.state_dir);
  made.facts.name = options.node_name;
  made.facts.address = options.host_address;
  made.images = [&images] { return images.list(); };
  return made;
}

}  // namespace

struct Agent::State {
  State(client::Client& api, const AgentOptions& given)
      : options(given),
        client(api),
        runtime(given.state_dir),
        source(make_runtime_image_source(given.state_dir, given.pull)),
        images(api, *source, clock),
        planner(api, planner_options(given)),
        prober(runtime),
        downloads(kDownloads),
        talks(kTalks),
        events(api, clock, {.controller = "hearth-node", .instance = given.node_name}),
        cache(api, client::kPods, pods_of(given.node_name)),
        network(api, runtime, cache, {.state_dir = given.state_dir}),
        tools{.client = api,
              .runtime = runtime,
              .planner = planner,
              .images = images,
              .prober = prober,
              .downloads = downloads,
              .talks = talks,
              .ends = ends,
              .events = events,
              .clock = clock,
              .host_address = given.host_address,
              .wake = [this](const model::Key& key) { controller.queue().add(key); },
              .furnish = [this](const Json& pod,
                                runtime::SandboxSpec& spec) { network.furnish(pod, spec); },
              .dress = given.dress},
        pods(tools, cache),
        refresher(api, runtime, planner, cache, events),
        controller(
            pods,
            {.name = "node-pods", .workers = given.workers, .queue = {.rank_of = ranks_in(cache)}}),
        node(api, client::kNodes, only(given.node_name)),
        vacancy(node, cache, clock, given.node_name),
        unbound(api, client::kPods, pods_of("")),
        binder(api, unbound, vacancy, events, given.node_name),
        binding(
            binder,
            {.name = "node-binder", .workers = kBinders, .queue = {.rank_of = ranks_in(unbound)}}),
        storage(api, runtime, events, given.node_name),
        reach(
            api, runtime, given.node_name,
            [this](const Json& pod, const std::string& sandbox) { network.enforce(pod, sandbox); }),
        evictor(runtime, cache, clock, evictor_options(given, pods)),
        reporter(api, clock, reporter_options(given, images, evictor)) {
    controller.watch(cache, concerns_node);
    binding.watch(unbound);
    cache.add_handlers({.on_delete = [this](const client::Object& pod) { reach.forget(*pod); }});
  }

  const AgentOptions options;
  client::Client& client;
  SystemClock clock;
  RuntimePool runtime;
  std::unique_ptr<ImageSource> source;
  Images images;
  Planner planner;
  Prober prober;
  Errands downloads;
  Errands talks;
  reconcile::EventRecorder events;
  client::WatchCache cache;
  PodNetwork network;
  Ends ends;
  Tools tools;
  Pods pods;
  Refresher refresher;
  reconcile::Controller controller;
  client::WatchCache node;
  Vacancy vacancy;
  client::WatchCache unbound;
  Binder binder;
  reconcile::Controller binding;
  Storage storage;
  NodeReach reach;
  Evictor evictor;
  NodeReporter reporter;
};

Agent::Agent(client::Client& client, const AgentOptions& options)
    : state_(std::make_unique<State>(client, options)) {}

Agent::~Agent() {
  stop();
}

void Agent::start() {
  state_->reporter.start();
  state_->storage.provisioner.furnish();
  state_->cache.start();
  if (state_->options.binds) {
    state_->node.start();
    state_->unbound.start();
  }
  if (!state_->cache.wait_synced(kSyncPatience) ||
      (state_->options.binds && !state_->node.wait_synced(kSyncPatience)))
    fail(Code::timeout, "the pods of node '{}' could not be listed within a minute",
         state_->options.node_name);
  state_->storage.manager.start_caches(kSyncPatience);
  state_->storage.manager.start_controllers();
  if (state_->options.has_network) state_->network.start();
  state_->pods.adopt();
  state_->controller.start();
  state_->refresher.start();
  if (state_->options.binds) state_->binding.start();
}

bool Agent::gives_place(const model::Json& pod) {
  return !is_left_to_others(pod) && state_->vacancy.take(pod).empty();
}

pool::Reach& Agent::reach() {
  return state_->reach;
}

void Agent::stop() {
  state_->reporter.stop();
  state_->storage.manager.stop();
  state_->binding.stop();
  state_->unbound.stop();
  state_->node.stop();
  state_->controller.stop();
  state_->refresher.stop();
  state_->network.stop();
  state_->cache.stop();
  state_->ends.stop();
  state_->downloads.stop();
  state_->talks.stop();
}

}  // namespace hearth::node
