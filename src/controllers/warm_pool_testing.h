// A pool's reconciler on a real server, driven by hand.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/passing_client.h"
#include "controllers/pool_index.h"
#include "controllers/pool_testing.h"
#include "controllers/warm_pool_reconciler.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {

// Passes calls on, after a look at creates and deletes of sandboxes.
class WatchedClient final : public client::PassingClient {
 public:
  using PassingClient::PassingClient;

  // May throw in the place of the server.
  std::function<void()> before_create = [] {};
  std::function<void()> before_patch = [] {};
  std::function<void(std::string_view name)> before_remove = [](std::string_view) {};
  std::atomic<unsigned> creates = 0;
  std::atomic<unsigned> removes = 0;

  client::Answer create(const client::ResourceId& resource, const Json& object,
                        const client::WriteOptions& options) override {
    if (resource.plural == "sandboxes") {
      ++creates;
      before_create();
    }
    return PassingClient::create(resource, object, options);
  }
  client::Answer patch(const client::ResourceId& resource, std::string_view ns,
                       std::string_view name, client::PatchKind kind, const Json& patch,
                       const client::PatchOptions& options) override {
    before_patch();
    return PassingClient::patch(resource, ns, name, kind, patch, options);
  }
  client::Answer remove(const client::ResourceId& resource, std::string_view ns,
                        std::string_view name, const client::DeleteOptions& options) override {
    ++removes;
    before_remove(name);
    return PassingClient::remove(resource, ns, name, options);
  }
};

inline Json pool_named(std::string_view name, int replicas, std::string_view strategy = {},
                       std::string_view template_name = "py") {
  Json pool = json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
    "metadata":{"namespace":"default"},"spec":{"sandboxTemplateRef":{}}})");
  pool.at("metadata").as_object()["name"] = name;
  model::make_object_at(pool, {"spec", "sandboxTemplateRef"})["name"] = template_name;
  auto& spec = pool.at("spec").as_object();
  if (replicas >= 0) spec["replicas"] = replicas;
  if (!strategy.empty()) spec["updateStrategy"] = {{"type", strategy}};
  return pool;
}

// What a claim does to the sandbox that it takes.
inline Json claiming_patch(std::string_view resource_version = {}) {
  Json patch = json(R"({"metadata":{
    "labels":{"agents.x-k8s.io/warm-pool-sandbox":null,
              "agents.x-k8s.io/sandbox-template-hash":null,
              "agents.x-k8s.io/sandbox-pod-template-hash":null},
    "ownerReferences":[{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim",
      "name":"somebody","uid":"00000000-0000-0000-0000-000000000001",
      "controller":true,"blockOwnerDeletion":true}]}})");
  if (!resource_version.empty())
    patch.at("metadata").as_object()["resourceVersion"] = resource_version;
  return patch;
}

class PoolWorld {
 public:
  enum class Sandboxes { watched, unwatched };

  // `unwatched`: their cache starts later, by hand.
  explicit PoolWorld(Options wanted = {}, Sandboxes mode = Sandboxes::watched)
      : options(std::move(wanted)) {
    reconciler.watch(controller);
    // Somebody whose event comes last.
    Json marker = json(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
      "metadata":{"namespace":"default","name":"marker"},
      "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})");
    client().create(client::kSandboxes, marker);
    start(pools);
    start(templates);
    if (mode == Sandboxes::watched) start(sandboxes);
  }
  ~PoolWorld() {
    controller.stop();
    for (client::WatchCache* cache : {&pools, &templates, &sandboxes}) cache->stop();
  }
  PoolWorld(const PoolWorld&) = delete;
  PoolWorld& operator=(const PoolWorld&) = delete;

  client::Client& client() { return server.client(); }

  static void start(client::WatchCache& cache) {
    cache.start();
    EXPECT_TRUE(cache.wait_synced(std::chrono::seconds(10)));
  }

  // The caches have heard of everything written so far, and so have their listeners.
  void follow_all() {
    const auto bump = [&](const client::ResourceId& resource, const client::WatchCache& cache,
                          std::string_view name) {
      if (!client().find(resource, "default", name)) return;
      client().patch(
          resource, "default", name, client::PatchKind::merge,
          json(R"({"metadata":{"annotations":{"bump":")" + std::to_string(++bumps_) + "\"}}}"));
      follow(client(), resource, cache, name);
    };
    bump(client::kSandboxWarmPools, pools, "pool");
    follow(client(), client::kSandboxWarmPools, pools, "pool");
    follow(client(), client::kSandboxTemplates, templates, "py");
    bump(client::kSandboxes, sandboxes, "marker");
  }

  reconcile::Next reconcile() {
    follow_all();
    const auto next = reconciler.reconcile({"default", "pool"});
    reconciler.status_writer().flush();
    return next;
  }
  // Until nothing changes any more.
  void settle() {
    for (int i = 0; i < 5; ++i) reconcile();
  }

  // By name. Those with the pool's label.
  std::vector<Json> members() {
    return client()
        .list_all(client::kSandboxes, {.ns = "default",
                                       .label_selector = std::string(model::kPoolLabel) + "=" +
                                                         model::name_hash("pool")})
        .items;
  }
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const Json& member : members()) names.emplace_back(model::name_of(member));
    return names;
  }
  Json pool() { return client().get(client::kSandboxWarmPools, "default", "pool"); }
  Json status() {
    const Json object = pool();
    const Json* status = model::find(object, {"status"});
    return status == nullptr ? Json(model::JsonObject{}) : *status;
  }
  void patch_pool(std::string_view patch) {
    client().patch(client::kSandboxWarmPools, "default", "pool", client::PatchKind::merge,
                   json(patch));
  }
  void patch_template(std::string_view patch) {
    client().patch(client::kSandboxTemplates, "default", "py", client::PatchKind::merge,
                   json(patch));
  }
  void patch_sandbox(std::string_view name, const Json& patch, std::string_view subresource = {}) {
    client().patch(client::kSandboxes, "default", name, client::PatchKind::merge, patch,
                   {.subresource = std::string(subresource)});
  }
  void set_condition(std::string_view name, std::string_view type, std::string_view status,
                     std::string_view reason) {
    Json sandbox = client().get(client::kSandboxes, "default", name);
    model::JsonArray conditions;
    if (const auto* present = model::array_at(sandbox, {"status", "conditions"}))
      conditions = *present;
    model::set_condition(conditions,
                         {.type = std::string(type),
                          .status = std::string(status),
                          .reason = std::string(reason),
                          .message = "of a test",
                          .observed_generation = 1},
                         clock.now());
    patch_sandbox(name, {{"status", {{"conditions", conditions}}}}, "status");
  }
  void make_ready(std::string_view name) {
    set_condition(name, "Ready", "True", "DependenciesReady");
  }
  void claim(std::string_view name) { patch_sandbox(name, claiming_patch()); }

  apiserver::TestServer server;
  ManualClock clock{SystemClock().now()};
  Options options;
  WatchedClient watched{server.client()};
  client::WatchCache pools{server.client(), client::kSandboxWarmPools, warm_pool_cache_options()};
  client::WatchCache templates{server.client(), client::kSandboxTemplates};
  client::WatchCache sandboxes{server.client(), client::kSandboxes, pool_sandbox_cache_options()};
  reconcile::EventRecorder events{server.client(), clock, {.controller = "sandboxwarmpool"}};
  WarmPoolReconciler reconciler{watched, {pools, templates, sandboxes}, clock, events, options};
  reconcile::Controller controller{reconciler, {.name = "sandboxwarmpool"}};

 private:
  int bumps_ = 0;
};

}  // namespace hearth::controllers
