// The Sandbox reconciler on a real API server, with a clock in the test's hand and a client that
// counts and fails as told. Passes are made by the test; nothing happens by itself.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "client/passing_client.h"
#include "controllers/sandbox_reconciler.h"
#include "metrics/registry.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"
#include "reconcile/event_recorder.h"

namespace hearth::controllers {

using client::ResourceId;
using model::Json;

inline Json yaml(std::string_view text) {
  return model::parse_yaml(text).value;
}

// Passes everything on. Calls are "VERB PLURAL" or "VERB PLURAL/SUBRESOURCE".
class ScriptedClient final : public client::PassingClient {
 public:
  using PassingClient::PassingClient;

  // The writes since the last call, in their order.
  std::vector<std::string> take_writes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(writes_, {});
  }
  // The next call of this kind is refused, with this code.
  void fail_next(std::string call, unsigned code) {
    const std::lock_guard lock(mutex_);
    failures_[std::move(call)] = code;
  }

  client::Answer get(const ResourceId& resource, std::string_view ns,
                     std::string_view name) override {
    refuse("get " + resource.plural);
    return PassingClient::get(resource, ns, name);
  }
  client::Answer create(const ResourceId& resource, const Json& object,
                        const client::WriteOptions& options) override {
    note("create " + resource.plural);
    return PassingClient::create(resource, object, options);
  }
  client::Answer update(const ResourceId& resource, const Json& object,
                        std::string_view subresource,
                        const client::WriteOptions& options) override {
    note("update " + resource.plural);
    return PassingClient::update(resource, object, subresource, options);
  }
  client::Answer patch(const ResourceId& resource, std::string_view ns, std::string_view name,
                       client::PatchKind kind, const Json& patch,
                       const client::PatchOptions& options) override {
    const std::string slash = options.subresource.empty() ? "" : "/";
    note("patch " + resource.plural + slash + options.subresource);
    return PassingClient::patch(resource, ns, name, kind, patch, options);
  }
  client::Answer remove(const ResourceId& resource, std::string_view ns, std::string_view name,
                        const client::DeleteOptions& options) override {
    note("delete " + resource.plural);
    return PassingClient::remove(resource, ns, name, options);
  }

 private:
  void note(const std::string& call) {
    refuse(call);
    const std::lock_guard lock(mutex_);
    writes_.push_back(call);
  }
  void refuse(const std::string& call) {
    const std::lock_guard lock(mutex_);
    const auto found = failures_.find(call);
    if (found == failures_.end()) return;
    const unsigned code = found->second;
    failures_.erase(found);
    throw model::StatusError({.code = code, .reason = "Scripted", .message = "as told"});
  }

  std::mutex mutex_;  // guards what follows
  std::vector<std::string> writes_;
  std::map<std::string, unsigned> failures_;
};

class SandboxReconcilerTest : public testing::Test {
 protected:
  using Writes = std::vector<std::string>;

  explicit SandboxReconcilerTest(Options options = {}) : options_(std::move(options)) {
    for (client::WatchCache* cache : {&sandboxes_, &pods_, &services_}) cache->start();
    for (client::WatchCache* cache : {&sandboxes_, &pods_, &services_})
      EXPECT_TRUE(cache->wait_synced(std::chrono::seconds(20)));
  }

  void TearDown() override {
    for (client::WatchCache* cache : {&sandboxes_, &pods_, &services_}) cache->stop();
  }

  // Objects as people make them, in the namespace "default".
  Json make(const ResourceId& kind, std::string_view text) {
    Json object = yaml(text);
    model::make_object_at(object, {"metadata"})["namespace"] = "default";
    return server_.client().create(kind, object);
  }
  Json make_sandbox(std::string_view spec = kSpec, std::string_view metadata = "{}") {
    Json sandbox = yaml("{apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox}");
    sandbox.as_object()["metadata"] = yaml(metadata);
    sandbox.at("metadata").as_object()["name"] = "dev";
    sandbox.at("metadata").as_object()["namespace"] = "default";
    sandbox.as_object()["spec"] = yaml(spec);
    if (!sandbox.at("spec").as_object().contains("podTemplate"))
      sandbox.at("spec").as_object()["podTemplate"] = yaml(kPod);
    return server_.client().create(client::kSandboxes, sandbox);
  }
  // A pod, Service or claim, perhaps with a controller: "" nobody, "dev" the Sandbox, else a uid.
  Json make_child(const ResourceId& kind, std::string_view name, std::string_view labels,
                  std::string_view controller, std::string_view spec) {
    Json child = yaml("{apiVersion: v1}");
    child.as_object()["kind"] = kind.plural == "pods"       ? "Pod"
                                : kind.plural == "services" ? "Service"
                                                            : "PersistentVolumeClaim";
    child.as_object()["spec"] = yaml(spec);
    model::JsonObject& metadata = model::make_object_at(child, {"metadata"});
    metadata["name"] = name;
    metadata["namespace"] = "default";
    metadata["labels"] = yaml(labels);
    if (controller == "dev") {
      metadata["ownerReferences"] = model::JsonArray{model::controller_reference(sandbox())};
    } else if (!controller.empty()) {
      metadata["ownerReferences"] =
          yaml("[{apiVersion: v1, kind: ConfigMap, name: other, controller: true}]");
      metadata["ownerReferences"].at(0).as_object()["uid"] = controller;
    }
    return server_.client().create(kind, child);
  }
  Json make_pod(std::string_view name, std::string_view labels, std::string_view controller) {
    return make_child(client::kPods, name, labels, controller,
                      "{containers: [{name: main, image: i}]}");
  }

  std::optional<Json> find(const ResourceId& kind, std::string_view name) {
    return server_.client().find(kind, "default", name);
  }
  Json sandbox() { return server_.client().get(client::kSandboxes, "default", "dev"); }
  Json pod(std::string_view name = "dev") {
    return server_.client().get(client::kPods, "default", name);
  }
  std::string pod_annotation() {
    return std::string(model::annotation_of(sandbox(), model::kPodNameAnnotation));
  }
  // "STATUS REASON: MESSAGE"; empty for none.
  std::string condition(std::string_view type) {
    const Json now = sandbox();
    const Json* found = model::find_condition(now, type);
    if (found == nullptr) return {};
    return std::string(model::text_at(*found, {"status"})) + " " +
           std::string(model::text_at(*found, {"reason"})) + ": " +
           std::string(model::text_at(*found, {"message"}));
  }

  void patch(const ResourceId& kind, std::string_view name, std::string_view text,
             std::string_view subresource = {}) {
    server_.client().patch(kind, "default", name, client::PatchKind::merge, yaml(text),
                           {.subresource = std::string(subresource)});
  }
  void patch_sandbox(std::string_view text) { patch(client::kSandboxes, "dev", text); }
  void set_pod_status(std::string_view status, std::string_view name = "dev") {
    patch(client::kPods, name, "{status: " + std::string(status) + "}", "status");
  }
  void run_pod(std::string_view name = "dev") { set_pod_status(kRunning, name); }
  // As a node does when everything of it has ended.
  void end_pod(std::string_view name = "dev") {
    server_.client().remove(client::kPods, "default", name, {.grace_seconds = 0});
  }

  // Until the caches show what the server has.
  void settle() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_settled()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "a cache stays behind";
      std::this_thread::yield();
    }
  }
  reconcile::Next pass() {
    settle();
    return reconciler_.reconcile(kKey);
  }
  // A pass with what the caches happen to have.
  reconcile::Next hasty_pass() { return reconciler_.reconcile(kKey); }
  std::string failing_pass() {
    settle();
    try {
      reconciler_.reconcile(kKey);
    } catch (const Error& error) {
      return error.what();
    }
    ADD_FAILURE() << "nothing failed";
    return {};
  }
  // A Sandbox that is ready, and nothing of how it came to be is counted.
  void make_ready(std::string_view spec = kSpec) {
    make_sandbox(spec);
    pass();
    run_pod();
    pass();
    ASSERT_EQ(condition("Ready").substr(0, 4), "True");
    client_.take_writes();
  }
  std::size_t events(std::string_view reason) {
    events_.flush();
    std::size_t count = 0;
    for (const Json& each : server_.client().list_all(client::kEvents, {.ns = "default"}).items)
      if (model::text_at(each, {"reason"}) == reason) ++count;
    return count;
  }

  static constexpr char kSpec[] = "{}";
  static constexpr char kPod[] =
      "{spec: {containers: [{name: main, image: i, ports: [{containerPort: 80}]}]}}";
  static constexpr char kRunning[] =
      "{phase: Running, podIP: 10.0.0.5, podIPs: [{ip: 10.0.0.5}], conditions: "
      "[{type: PodScheduled, status: 'True'}, {type: Ready, status: 'True'}]}";
  static constexpr char kHash[] = "d55997bc";  // of "dev"
  static inline const model::Key kKey{"default", "dev"};

  apiserver::TestServer server_;
  ScriptedClient client_{server_.client()};
  client::WatchCache sandboxes_{server_.client(), client::kSandboxes};
  client::WatchCache pods_{server_.client(), client::kPods, {.indexes = pod_indexes()}};
  client::WatchCache services_{server_.client(), client::kServices};
  ManualClock clock_;
  reconcile::EventRecorder events_{server_.client(), clock_, {.controller = "sandbox-controller"}};
  Options options_;
  metrics::Registry metrics_;
  SandboxReconciler reconciler_{client_,  {sandboxes_, pods_, services_}, clock_, events_, options_,
                                &metrics_};

 private:
  bool is_settled() {
    return is_settled(sandboxes_, client::kSandboxes) && is_settled(pods_, client::kPods) &&
           is_settled(services_, client::kServices);
  }
  bool is_settled(const client::WatchCache& cache, const ResourceId& kind) {
    const auto there = server_.client().list_all(kind, {}).items;
    const auto cached = cache.list();
    if (there.size() != cached.size()) return false;
    for (const Json& each : there) {
      const auto found = cache.find(model::namespace_of(each), model::name_of(each));
      if (!found || model::resource_version_of(*found) != model::resource_version_of(each))
        return false;
    }
    return true;
  }
};

}  // namespace hearth::controllers
