// Claims on a real server, driven by hand: a client that counts and fails on demand, caches that
// follow, sandboxes whose status the test writes.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/claim_reconciler.h"
#include "controllers/faulty_client_testing.h"
#include "controllers/pool_index.h"
#include "controllers/pool_testing.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {

[[noreturn]] inline void throw_injected_conflict() {
  model::throw_modified({"agents.x-k8s.io", "sandboxes"}, "injected");
}

// A process: caches, allocator and reconciler, as another one would have them on the same server.
struct ClaimProcess {
  ClaimProcess(client::Client& reads, client::Client& writes, const Clock& clock, Options options,
               pool::Outfitter* outfitter)
      : claims(reads, client::kSandboxClaims, claim_cache_options()),
        sandboxes(reads, client::kSandboxes, claim_sandbox_cache_options()),
        pools(reads, client::kSandboxWarmPools, warm_pool_cache_options()),
        templates(reads, client::kSandboxTemplates),
        allocator(std::make_unique<pool::Allocator>(sandboxes, metrics)),
        events(reads, clock, {.controller = "sandboxclaim-controller"}),
        reconciler({.client = writes,
                    .claims = claims,
                    .sandboxes = sandboxes,
                    .pools = pools,
                    .templates = templates,
                    .allocator = *allocator,
                    .events = events,
                    .metrics = metrics,
                    .clock = clock,
                    .outfitter = outfitter},
                   std::move(options)),
        controller(reconciler, {.name = "sandboxclaim", .workers = 8}) {
    reconciler.watch(controller);
    for (client::WatchCache* cache : caches()) cache->start();
    for (client::WatchCache* cache : caches())
      EXPECT_TRUE(cache->wait_synced(std::chrono::seconds(10)));
  }
  ClaimProcess(const ClaimProcess&) = delete;
  ClaimProcess& operator=(const ClaimProcess&) = delete;
  ~ClaimProcess() {
    controller.stop();
    reconciler.stop();
    for (client::WatchCache* cache : caches()) cache->stop();
  }
  std::vector<client::WatchCache*> caches() { return {&claims, &sandboxes, &pools, &templates}; }

  metrics::Registry metrics;
  client::WatchCache claims;
  client::WatchCache sandboxes;
  client::WatchCache pools;
  client::WatchCache templates;
  std::unique_ptr<pool::Allocator> allocator;
  reconcile::EventRecorder events;
  ClaimReconciler reconciler;
  reconcile::Controller controller;
};

class ClaimWorld {
 public:
  explicit ClaimWorld(Options wanted = {}, pool::Outfitter* outfitter = nullptr)
      : options(std::move(wanted)), outfitter_(outfitter) {
    client().create(client::kSandboxTemplates, template_named("py"));
    client().create(client::kSandboxWarmPools, json(R"({
      "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
      "metadata":{"namespace":"default","name":"pool"},
      "spec":{"replicas":0,"sandboxTemplateRef":{"name":"py"}}})"));
    restart();
  }

  client::Client& client() { return server.client(); }
  ClaimReconciler& reconciler() { return process->reconciler; }

  // Another process in the place of this one.
  void restart() {
    process.reset();
    process = std::make_unique<ClaimProcess>(client(), faulty, clock, options, outfitter_);
  }

  // The caches have heard of everything written so far, and so have their listeners.
  void follow_all() {
    bump(client::kSandboxTemplates, process->templates, "zz-marker", template_named("zz-marker"));
    bump(client::kSandboxWarmPools, process->pools, "zz-marker", json(R"({
      "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
      "metadata":{"namespace":"default","name":"zz-marker"},
      "spec":{"replicas":0,"sandboxTemplateRef":{"name":"zz-marker"}}})"));
    bump(client::kSandboxes, process->sandboxes, "zz-marker", json(R"({
      "apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
      "metadata":{"namespace":"default","name":"zz-marker"},
      "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})"));
    bump(client::kSandboxClaims, process->claims, "zz-claim", json(R"({
      "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim",
      "metadata":{"namespace":"default","name":"zz-claim"},
      "spec":{"warmPoolRef":{"name":"zz-marker"},"whenEmpty":"Fail"}})"));
  }
  // The names of claims that the controller would look at now; asked again, of those that were
  // woken since.
  std::set<std::string> take_woken() {
    follow_all();
    std::set<std::string> names;
    reconcile::Queue& queue = process->controller.queue();
    while (queue.size() > 0) {
      const auto key = queue.take({});
      queue.done(*key);
      names.insert(key->name);
    }
    return names;
  }
  // One look at it, with caches that are up to date.
  reconcile::Next pass(std::string_view name = "c") {
    follow_all();
    return look(name);
  }
  // One look at it, with caches as they are.
  reconcile::Next look(std::string_view name = "c") {
    return reconciler().reconcile({"default", std::string(name)});
  }

  // An idle member of a pool, as the pool's controller makes it and the Sandbox's reports it.
  void add_member(std::string_view name, std::string_view address = "10.0.0.1",
                  bool is_ready = true, std::string_view pool = "pool") {
    const Json owner = client().get(client::kSandboxWarmPools, "default", pool);
    Json member = json(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
      "metadata":{"namespace":"default","annotations":{"agents.x-k8s.io/sandbox-template-ref":"py"},
        "labels":{"agents.x-k8s.io/launch-type":"warm","agents.x-k8s.io/created-by":"controller",
        "agents.x-k8s.io/sandbox-template-hash":"old","agents.x-k8s.io/sandbox-pod-template-hash":"o"}},
      "spec":{"podTemplate":{"metadata":{"labels":{},"annotations":
          {"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}},
        "spec":{"automountServiceAccountToken":false,"dnsPolicy":"None",
          "dnsConfig":{"nameservers":["8.8.8.8","1.1.1.1"]},
          "containers":[{"name":"main","image":"python:3.12"}]}}}})");
    member.at("metadata").as_object()["name"] = name;
    member.at("metadata").as_object()["ownerReferences"] =
        model::JsonArray{model::controller_reference(owner)};
    for (const std::string_view place : {"/metadata/labels", "/spec/podTemplate/metadata/labels"}) {
      auto& labels = member.at_pointer(place).as_object();
      labels[model::kPoolLabel] = model::name_hash(pool);
      labels[model::kTemplateRefHashLabel] = model::name_hash("py");
    }
    client().create(client::kSandboxes, member);
    set_sandbox(name, address, is_ready ? "True" : "False",
                is_ready ? "DependenciesReady" : "DependenciesNotReady",
                is_ready ? "Pod is Ready" : "Pod is Running but not Ready");
  }
  void set_sandbox(std::string_view name, std::string_view address, std::string_view ready,
                   std::string_view reason, std::string_view message,
                   std::string_view finished = {}) {
    model::JsonArray conditions;
    const auto add = [&](std::string_view type, std::string_view status, std::string_view why,
                         std::string_view text) {
      model::set_condition(conditions,
                           {.type = std::string(type),
                            .status = std::string(status),
                            .reason = std::string(why),
                            .message = std::string(text),
                            .observed_generation = 1},
                           clock.now());
    };
    if (!finished.empty()) add("Finished", "True", finished, "Pod completed successfully");
    if (!ready.empty()) add("Ready", ready, reason, message);
    model::JsonObject status{{"conditions", conditions}};
    if (!address.empty()) status["podIPs"] = model::JsonArray{Json(address)};
    if (address.empty()) status["podIPs"] = nullptr;
    client().patch(client::kSandboxes, "default", name, client::PatchKind::merge,
                   model::JsonObject{{"status", status}}, {.subresource = "status"});
  }

  // `more`: of spec, or of metadata.
  Json add_claim(std::string_view name = "c", std::string_view spec = "{}",
                 std::string_view metadata = "{}") {
    Json claim = json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
      "kind":"SandboxClaim","spec":{"warmPoolRef":{"name":"pool"}}})");
    claim.as_object()["metadata"] = json(metadata);
    claim.at("metadata").as_object()["namespace"] = "default";
    claim.at("metadata").as_object()["name"] = name;
    const Json parts = json(spec);
    for (const auto& [key, value] : parts.as_object()) {
      if (value.is_null())
        claim.at("spec").as_object().erase(key);
      else
        claim.at("spec").as_object()[key] = value;
    }
    return client().create(client::kSandboxClaims, claim);
  }
  Json claim(std::string_view name = "c") {
    return client().get(client::kSandboxClaims, "default", name);
  }
  void patch_claim(std::string_view patch, std::string_view name = "c",
                   std::string_view subresource = {}) {
    client().patch(client::kSandboxClaims, "default", name, client::PatchKind::merge, json(patch),
                   {.subresource = std::string(subresource)});
  }
  Json sandbox(std::string_view name) { return client().get(client::kSandboxes, "default", name); }
  bool has_sandbox(std::string_view name) {
    return client().find(client::kSandboxes, "default", name).has_value();
  }
  void patch_sandbox(std::string_view name, const Json& patch) {
    client().patch(client::kSandboxes, "default", name, client::PatchKind::merge, patch);
  }
  void patch_template(std::string_view patch) {
    client().patch(client::kSandboxTemplates, "default", "py", client::PatchKind::merge,
                   json(patch));
  }

  // "True DependenciesReady: Pod is Ready"
  std::string ready(std::string_view name = "c") {
    const Json object = claim(name);
    const Json* ready = model::find_condition(object, "Ready");
    if (!ready) return "none";
    return std::string(model::text_at(*ready, {"status"})) + " " +
           std::string(model::text_at(*ready, {"reason"})) + ": " +
           std::string(model::text_at(*ready, {"message"}));
  }
  // status.sandbox.name
  std::string bound(std::string_view name = "c") {
    const Json object = claim(name);
    return std::string(model::text_at(object, {"status", "sandbox", "name"}));
  }
  // Names of the Sandboxes that the claim controls.
  std::vector<std::string> owned(std::string_view name = "c") {
    const Json object = claim(name);
    std::vector<std::string> names;
    for (const Json& each : client().list_all(client::kSandboxes, {.ns = "default"}).items)
      if (model::is_controlled_by(each, model::uid_of(object)))
        names.emplace_back(model::name_of(each));
    return names;
  }
  // "REASON/ACTION: NOTE" of the events so far.
  std::vector<std::string> told() {
    process->events.flush();
    std::vector<std::string> all;
    for (const Json& each : client().list_all(client::kEvents, {.ns = "default"}).items)
      all.push_back(std::string(model::text_at(each, {"reason"})) + "/" +
                    std::string(model::text_at(each, {"action"})) + ": " +
                    std::string(model::text_at(each, {"note"})));
    return all;
  }

  apiserver::TestServer server;
  ManualClock clock{SystemClock().now()};
  FaultyClient faulty{server.client()};
  const Options options;
  std::unique_ptr<ClaimProcess> process;

 private:
  void bump(const client::ResourceId& kind, const client::WatchCache& cache, std::string_view name,
            const Json& object) {
    if (!client().find(kind, "default", name)) client().create(kind, object);
    client().patch(
        kind, "default", name, client::PatchKind::merge,
        json(R"({"metadata":{"annotations":{"bump":")" + std::to_string(++bumps_) + "\"}}}"));
    follow(client(), kind, cache, name);
  }

  pool::Outfitter* const outfitter_;
  int bumps_ = 0;
};

}  // namespace hearth::controllers
