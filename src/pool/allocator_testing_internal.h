// A real server, a real cache of its sandboxes, and an allocator that hears of them.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "client/passing_client.h"
#include "metrics/registry.h"
#include "model/agent_sandbox.h"
#include "pool/allocator.h"

namespace hearth::pool {

using namespace std::chrono_literals;

inline const model::Key kPool{"default", "warm"};

// A client that a test can hold up and make fail.
class Meddler : public client::PassingClient {
 public:
  using PassingClient::PassingClient;

  // Before each patch; what it throws is the answer.
  std::function<void(std::string_view ns, std::string_view name)> before_patch;

  // While closed, watches tell nothing.
  void close_gate() { set_gate(false); }
  void open_gate() { set_gate(true); }

  client::Answer patch(const client::ResourceId& resource, std::string_view ns,
                       std::string_view name, client::PatchKind kind, const Json& patch,
                       const client::PatchOptions& options) override {
    if (before_patch) before_patch(ns, name);
    return PassingClient::patch(resource, ns, name, kind, patch, options);
  }
  client::WatchEnd watch(const client::ResourceId& resource, const client::WatchOptions& options,
                         const std::function<void(client::Event)>& handler,
                         const std::stop_token& stop) override {
    return PassingClient::watch(
        resource, options,
        [&](client::Event event) {
          {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, stop, [&] { return is_open_; });
          }
          handler(std::move(event));
        },
        stop);
  }

 private:
  void set_gate(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards is_open_
  std::condition_variable_any changed_;
  bool is_open_ = true;
};

// An allocator with its own cache and client, as one process has them.
class House {
 public:
  explicit House(client::Client& api)
      : client(api), cache(client, client::kSandboxes), allocator(std::in_place, cache, registry) {
    // After the allocator's: what this has heard of, that has too.
    const auto tell = [this](const Object& now) {
      const std::lock_guard lock(mutex_);
      heard_[model::key_of(*now)] = model::resource_version_of(*now);
      changed_.notify_all();
    };
    cache.add_handlers({.on_add = tell,
                        .on_update = [tell](const Object&, const Object& now) { tell(now); },
                        .on_delete = tell});
    cache.start();
    EXPECT_TRUE(cache.wait_synced(20s));
  }
  ~House() {
    client.open_gate();
    cache.stop();
  }

  // Until the cache has told enough.
  bool comes_true(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, condition);
  }
  // Until the allocator has heard of this very version.
  bool sees(const Json& sandbox) {
    return comes_true(
        [&] { return heard_[model::key_of(sandbox)] == model::resource_version_of(sandbox); });
  }
  void note_change() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  metrics::Registry registry;
  Meddler client;
  client::WatchCache cache;
  std::optional<Allocator> allocator;

 private:
  std::mutex mutex_;  // guards heard_
  std::condition_variable changed_;
  std::map<model::Key, std::string> heard_;  // versions
};

// Members of a pool as its controller and their own make them.
inline Json member(const std::string& name, const std::string& pool = kPool.name) {
  Json object = apiserver::json(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})");
  model::JsonObject& metadata = model::make_object_at(object, {"metadata"});
  metadata["name"] = name;
  metadata["namespace"] = kPool.ns;
  metadata["labels"] = model::JsonObject{{model::kPoolLabel, model::name_hash(pool)},
                                         {model::kTemplateRefHashLabel, "69155462"}};
  const Json owner = model::JsonObject{
      {"apiVersion", "extensions.agents.x-k8s.io/v1beta1"},
      {"kind", "SandboxWarmPool"},
      {"metadata", model::JsonObject{{"name", pool}, {"uid", "of-" + pool}}},
  };
  metadata["ownerReferences"] = model::JsonArray{model::controller_reference(owner)};
  return object;
}

inline Json status_patch(const std::string& node, bool has_address, bool is_ready) {
  model::JsonObject status;
  if (!node.empty()) status["nodeName"] = node;
  if (has_address) status["podIPs"] = model::JsonArray{"10.0.0.1"};
  status["conditions"] =
      model::JsonArray{model::JsonObject{{"type", "Ready"},
                                         {"status", is_ready ? "True" : "False"},
                                         {"reason", "Tested"},
                                         {"message", ""},
                                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}}};
  return model::JsonObject{{"status", std::move(status)}};
}

inline Json report(client::Client& api, const std::string& name, const Json& patch) {
  return api.patch(client::kSandboxes, kPool.ns, name, client::PatchKind::merge, patch,
                   {.subresource = "status"});
}

// What an adoption writes.
inline Json adoption(const std::string& claim) {
  const Json owner = model::JsonObject{
      {"apiVersion", "extensions.agents.x-k8s.io/v1beta1"},
      {"kind", "SandboxClaim"},
      {"metadata", model::JsonObject{{"name", claim}, {"uid", "of-" + claim}}},
  };
  return model::JsonObject{
      {"metadata", model::JsonObject{
                       {"labels", model::JsonObject{{model::kPoolLabel, nullptr}}},
                       {"ownerReferences", model::JsonArray{model::controller_reference(owner)}}}}};
}

}  // namespace hearth::pool
