// The E2B API on a real server, with the real Sandbox controller, and beneath it a node that only
// pretends: its pods run as soon as they are there.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "controllers/sandbox_reconciler.h"
#include "e2b/api.h"
#include "e2b/state.h"
#include "metrics/registry.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "net/router.h"
#include "pool/allocator.h"
#include "pool/reach.h"
#include "reconcile/event_recorder.h"
#include "reconcile/manager.h"

namespace hearth::e2b {

using apiserver::eventually;
using apiserver::json;

// Remembers what it was told to do.
class FakeReach final : public pool::Reach {
 public:
  bool can_outfit(const Json& pod) override { return is_here(pod); }
  void outfit(const Json& pod, const pool::Outfit& outfit) override {
    fail_if_told("outfit");
    const std::lock_guard lock(mutex_);
    outfits_[std::string(model::name_of(pod))].push_back(outfit);
  }
  bool is_here(const Json& pod) override {
    return model::text_at(pod, {"status", "phase"}) == "Running";
  }
  linux::Fd connect(const Json&, std::uint16_t) override { return linux::Fd(); }
  void commit(const Json& pod, const std::string& image) override {
    fail_if_told("commit");
    if (on_commit) on_commit();
    const std::lock_guard lock(mutex_);
    images_[image] = std::string(model::name_of(pod));
  }
  bool remove_image(const std::string& image) override {
    fail_if_told("remove_image");
    const std::lock_guard lock(mutex_);
    ++removals_;
    return images_.erase(image) > 0;
  }
  std::vector<std::string> find_images(std::string_view prefix) override {
    std::vector<std::string> names;
    for (const auto& [name, pod] : images())
      if (name.starts_with(prefix)) names.push_back(name);
    return names;
  }
  void set_egress(const Json& pod, const pool::Egress& egress) override {
    fail_if_told("set_egress");
    const std::lock_guard lock(mutex_);
    egresses_[std::string(model::name_of(pod))] = egress;
  }
  pool::PodUsage usage(const Json&) override {
    const std::lock_guard lock(mutex_);
    return usage_;
  }

  // What happens meanwhile. Set while nothing is committed.
  std::function<void()> on_commit;

  // The next call of this name, and every later one, throws.
  void fail(std::string call, Code code = Code::unavailable) {
    const std::lock_guard lock(mutex_);
    failing_ = std::move(call);
    code_ = code;
  }
  void set_usage(const pool::PodUsage& usage) {
    const std::lock_guard lock(mutex_);
    usage_ = usage;
  }
  std::vector<pool::Outfit> outfits(const std::string& pod) const {
    const std::lock_guard lock(mutex_);
    const auto found = outfits_.find(pod);
    return found == outfits_.end() ? std::vector<pool::Outfit>() : found->second;
  }
  std::optional<pool::Egress> egress(const std::string& pod) const {
    const std::lock_guard lock(mutex_);
    const auto found = egresses_.find(pod);
    return found == egresses_.end() ? std::nullopt : std::optional(found->second);
  }
  // What an earlier life left.
  void add_image(const std::string& name) {
    const std::lock_guard lock(mutex_);
    images_[name] = "";
  }
  // By name, each with the pod that it was made of.
  std::map<std::string, std::string> images() const {
    const std::lock_guard lock(mutex_);
    return images_;
  }
  unsigned removals() const {
    const std::lock_guard lock(mutex_);
    return removals_;
  }

 private:
  void fail_if_told(std::string_view call) const {
    const std::lock_guard lock(mutex_);
    if (failing_ == call) hearth::fail(code_, "told to fail");
  }

  mutable std::mutex mutex_;  // guards all below
  std::string failing_;
  Code code_ = Code::unavailable;
  std::map<std::string, std::vector<pool::Outfit>> outfits_;
  std::map<std::string, pool::Egress> egresses_;
  std::map<std::string, std::string> images_;
  unsigned removals_ = 0;
  pool::PodUsage usage_;
};

// Runs pods, freezes them, and lets them go.
class FakeNode {
 public:
  explicit FakeNode(client::Client& client) : client_(client), pods_(client, client::kPods) {
    pods_.add_handlers({.on_add = [this](const Object& pod) { attend(*pod); },
                        .on_update = [this](const Object&, const Object& pod) { attend(*pod); },
                        .on_delete = {}});
    pods_.start();
  }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;
  ~FakeNode() { pods_.stop(); }

  // From now on new pods stay as they are, and nothing is frozen.
  void stop_working() { is_lazy_ = true; }
  void work_again() { is_lazy_ = false; }
  // From now on there is no room for new pods, and the scheduler says so.
  void fill_up() { is_full_ = true; }
  // The pod of this name stays as it is until restart_container(). Before it is there.
  void hold_back(std::string pod) {
    const std::lock_guard lock(mutex_);
    held_back_ = std::move(pod);
  }

  // Its container begins anew, as after a crash.
  void restart_container(std::string_view ns, std::string_view name) {
    const Json pod = client_.get(client::kPods, ns, name);
    run(pod, "again-" + std::to_string(++restarts_));
  }

 private:
  void attend(const Json& pod) {
    try {
      if (model::is_deleting(pod)) {
        client_.remove(client::kPods, model::namespace_of(pod), model::name_of(pod),
                       {.propagation = {}, .uid = {}, .resource_version = {}, .grace_seconds = 0});
      } else if (is_held_back(pod)) {
        return;
      } else if (is_full_ && model::text_at(pod, {"status", "phase"}) != "Running") {
        refuse_room(pod);
      } else if (!is_lazy_ && model::text_at(pod, {"status", "phase"}) != "Running") {
        run(pod, std::string(model::uid_of(pod)));
      } else if (!is_lazy_) {
        freeze(pod);
      }
    } catch (const Error&) {
      // It went meanwhile.
    }
  }
  bool is_held_back(const Json& pod) const {
    const std::lock_guard lock(mutex_);
    return model::name_of(pod) == held_back_;
  }
  void refuse_room(const Json& pod) {
    if (model::find_condition(pod, "PodScheduled") != nullptr) return;
    client_.patch(client::kPods, model::namespace_of(pod), model::name_of(pod),
                  client::PatchKind::merge, json(R"({"status":{"conditions":[
                      {"type":"PodScheduled","status":"False","reason":"Unschedulable",
                       "message":"0/1 nodes are available: 1 Insufficient memory."}]}})"),
                  {.subresource = "status"});
  }
  void run(const Json& pod, const std::string& container) {
    Json status = json(R"({"status":{"phase":"Running","podIP":"127.0.0.1",
        "podIPs":[{"ip":"127.0.0.1"}],"conditions":[{"type":"Ready","status":"True"}]}})");
    status.at("status").as_object()["containerStatuses"] =
        model::JsonArray{JsonObject{{"name", "main"},
                                    {"image", "x"},
                                    {"imageID", "x"},
                                    {"ready", true},
                                    {"restartCount", 0},
                                    {"state", JsonObject{{"running", JsonObject{}}}},
                                    {"containerID", "hearth://" + container}}};
    client_.patch(client::kPods, model::namespace_of(pod), model::name_of(pod),
                  client::PatchKind::merge, status, {.subresource = "status"});
  }
  // It stands still as long as its annotation says so.
  void freeze(const Json& pod) {
    const bool is_wanted = !model::annotation_of(pod, model::kPauseAnnotation).empty();
    if (is_wanted == model::is_condition_true(pod, model::kPausedCondition)) return;
    const Json conditions = json(is_wanted ? R"([{"type":"Ready","status":"False"},
                                        {"type":"hearth.dev/Paused","status":"True"}])"
                                           : R"([{"type":"Ready","status":"True"}])");
    client_.patch(
        client::kPods, model::namespace_of(pod), model::name_of(pod), client::PatchKind::merge,
        JsonObject{{"status", JsonObject{{"conditions", conditions}}}}, {.subresource = "status"});
  }

  client::Client& client_;
  client::WatchCache pods_;
  std::atomic<bool> is_lazy_ = false;
  std::atomic<bool> is_full_ = false;
  mutable std::mutex mutex_;  // guards held_back_
  std::string held_back_;
  int restarts_ = 0;
};

struct Answer {
  unsigned status = 0;
  Json body;
  http::Headers headers;

  std::string text(std::string_view field) const {
    return std::string(model::text_at(body, {field}));
  }
  std::string message() const { return text("message"); }
};

inline Options quick_options() {
  Options options;
  options.start_patience = std::chrono::seconds(20);
  options.pause_patience = std::chrono::seconds(20);
  options.workers = 8;
  return options;
}

class World {
 public:
  explicit World(Options wanted = quick_options(), bool has_reach = true)
      : keys(client(), clock), tokens(tenants::load_token_seed(client())) {
    tenants::create_team(client(), "blue", {});
    add_template("default", "base", R"({"hearth.dev/public":"true"})");
    add_template("default", "private");
    add_template("blue", "own");
    add_pool("default", "base");
    keys.start();
    start(std::move(wanted), has_reach);
    EXPECT_TRUE(keys.wait_synced(std::chrono::seconds(30)));
    red = keys.issue({.team = "default", .name = "red", .limits = {}, .expires = {}}).key;
    blue = keys.issue({.team = "blue", .name = "blue", .limits = {}, .expires = {}}).key;
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    api->stop();
    manager->stop();
    keys.stop();
  }

  client::Client& client() { return server.client(); }

  // Another process in the place of this one; what it knew is gone.
  void restart(Options wanted = quick_options()) {
    api->stop();
    manager->stop();
    api.reset();
    allocator.reset();
    manager.reset();
    start(std::move(wanted), true);
  }

  Answer ask(std::string_view method, std::string_view target, std::string_view body = {},
             const std::optional<std::string>& key = {}, http::Headers headers = {}) {
    http::Request request;
    request.headers = std::move(headers);
    request.method = method;
    request.target = target;
    const auto question = std::min(target.find('?'), target.size());
    request.path = target.substr(0, question);
    request.query = target.substr(std::min(question + 1, target.size()));
    request.body = body;
    const std::string shown = key.value_or(red);
    if (!shown.empty()) request.headers.set("X-API-Key", shown);
    const net::Router::Match match = router->find(request);
    const http::Response response = match.route == nullptr
                                        ? match.surface->renderer(*match.problem, request)
                                        : match.route->unary(request);
    Answer answer{.status = response.status, .body = {}, .headers = response.headers};
    if (!response.body.empty()) answer.body = json(response.body);
    if (response.status >= 400) {
      EXPECT_EQ(model::number_at(answer.body, {"code"}), response.status) << response.body;
      EXPECT_FALSE(answer.message().empty());
    }
    return answer;
  }
  // The id of a new sandbox.
  std::string create(std::string_view body = R"({"templateID":"base"})",
                     const std::optional<std::string>& key = {}) {
    const Answer answer = ask("POST", "/v2/sandboxes", body, key);
    EXPECT_EQ(answer.status, 201U) << answer.message();
    return answer.text("sandboxID");
  }
  Json sandbox(std::string_view id, std::string_view ns = "default") {
    return client().get(client::kSandboxes, ns, id);
  }
  bool exists(std::string_view id, std::string_view ns = "default") {
    return client().find(client::kSandboxes, ns, id).has_value();
  }

  void add_template(std::string_view ns, std::string_view name, std::string_view labels = "{}",
                    std::string_view annotations = "{}") {
    Json made = json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
        "kind":"SandboxTemplate","metadata":{},
        "spec":{"networkPolicyManagement":"Unmanaged","podTemplate":{"spec":{"containers":[
          {"name":"main","image":"host","resources":{"limits":{"cpu":"2","memory":"512Mi"}}}]}}}})");
    JsonObject& metadata = made.at("metadata").as_object();
    metadata["namespace"] = ns;
    metadata["name"] = name;
    metadata["labels"] = json(labels);
    metadata["annotations"] = json(annotations);
    client().create(client::kSandboxTemplates, made);
  }
  void add_pool(std::string_view ns, std::string_view name) {
    Json made = json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
        "kind":"SandboxWarmPool","metadata":{"annotations":{"hearth.dev/sandbox-names":"id"}},
        "spec":{"replicas":1,"sandboxTemplateRef":{}}})");
    made.at("metadata").as_object()["namespace"] = ns;
    made.at("metadata").as_object()["name"] = name;
    made.at_pointer("/spec/sandboxTemplateRef").as_object()["name"] = name;
    client().create(client::kSandboxWarmPools, made);
  }
  // An idle member of a pool, ready to be taken when this returns; or one that starts.
  std::string add_member(std::string_view pool = "base", std::string_view ns = "default",
                         std::string id = new_sandbox_id(), bool is_ready = true) {
    const Json owner = client().get(client::kSandboxWarmPools, ns, pool);
    Json made = json(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{},
        "spec":{"podTemplate":{"metadata":{"annotations":
          {"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}},
          "spec":{"containers":[{"name":"main","image":"host",
            "resources":{"limits":{"cpu":"2","memory":"512Mi"}}}]}}}})");
    JsonObject labels{{model::kPoolLabel, model::name_hash(pool)},
                      {model::kTemplateRefHashLabel, model::name_hash(pool)},
                      {model::kTemplateHashLabel, "a"},
                      {model::kPodTemplateHashLabel, "b"}};
    made.at_pointer("/spec/podTemplate/metadata").as_object()["labels"] = labels;
    made.at_pointer("/spec/podTemplate/metadata/annotations").as_object()[model::kDressAnnotation] =
        pool;
    JsonObject& metadata = made.at("metadata").as_object();
    metadata["namespace"] = ns;
    metadata["name"] = id;
    metadata["labels"] = labels;
    metadata["ownerReferences"] = model::JsonArray{model::controller_reference(owner)};
    const model::Key key{std::string(ns), std::string(pool)};
    const auto there = [&] {
      const pool::Stock stock = allocator->stock(key);
      return is_ready ? stock.ready : stock.starting;
    };
    const std::size_t before = there();
    client().create(client::kSandboxes, made);
    EXPECT_TRUE(eventually([&] { return there() > before; }));
    return id;
  }

  apiserver::TestServer server;
  ManualClock clock{SystemClock().now()};
  metrics::Registry metrics;
  FakeReach reach;
  FakeNode node{server.client()};
  tenants::ApiKeys keys;
  tenants::SandboxTokens tokens;
  std::string red;   // a key of the team default
  std::string blue;  // and of the team blue
  reconcile::EventRecorder events{server.client(), clock, {.controller = "sandbox-controller"}};
  controllers::Options controller_options;
  std::unique_ptr<reconcile::Manager> manager;
  std::unique_ptr<controllers::SandboxReconciler> reconciler;
  std::unique_ptr<pool::Allocator> allocator;
  std::unique_ptr<Api> api;
  std::unique_ptr<net::Router> router;

  // What the gateway was told so far: "running", "paused", ... or "deleted" for each time.
  std::vector<std::string> told_of(std::string_view id) const {
    const std::lock_guard lock(told_mutex_);
    const auto found = told_.find(id);
    return found == told_.end() ? std::vector<std::string>() : found->second;
  }

  // Which it was told to expect requests for.
  std::vector<std::string> chosen() const {
    const std::lock_guard lock(told_mutex_);
    return chosen_;
  }

 private:
  void hear(const Json& box, bool is_deleted) {
    static constexpr std::array<std::string_view, 5> kStates = {"none", "running", "paused",
                                                                "pausing", "resuming"};
    const std::string_view state =
        is_deleted ? "deleted" : kStates.at(static_cast<std::size_t>(state_of(box)));
    const std::lock_guard lock(told_mutex_);
    told_[std::string(model::name_of(box))].emplace_back(state);
  }

  mutable std::mutex told_mutex_;  // guards told_ and chosen_
  std::map<std::string, std::vector<std::string>, std::less<>> told_;
  std::vector<std::string> chosen_;

  void start(Options wanted, bool has_reach) {
    manager = std::make_unique<reconcile::Manager>(client());
    reconciler = std::make_unique<controllers::SandboxReconciler>(
        client(), controllers::sandbox_caches(*manager), clock, events, controller_options);
    reconciler->add_to(*manager);
    allocator = std::make_unique<pool::Allocator>(manager->cache(client::kSandboxes), metrics);
    api = std::make_unique<Api>(Parts{.client = client(),
                                      .manager = *manager,
                                      .allocator = allocator.get(),
                                      .reach = has_reach ? &reach : nullptr,
                                      .keys = keys,
                                      .tokens = tokens,
                                      .clock = clock,
                                      .metrics = metrics,
                                      .wrote = [this](const Json& box) { hear(box, false); },
                                      .deleted = [this](const Json& box) { hear(box, true); },
                                      .chosen =
                                          [this](const model::Key& key) {
                                            const std::lock_guard lock(told_mutex_);
                                            chosen_.push_back(key.name);
                                          },
                                      .hurry_news = [this] { server->hurry_news(); }},
                                std::move(wanted));
    manager->start_caches(std::chrono::seconds(30));
    manager->start_controllers();
    router = std::make_unique<net::Router>(api->router());
  }
};

}  // namespace hearth::e2b
