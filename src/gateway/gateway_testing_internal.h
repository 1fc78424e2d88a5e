// A gateway on a real API server, with programs in its "sandboxes".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "client/watch_cache.h"
#include "gateway/gateway.h"
#include "gateway/peer_testing_internal.h"
#include "gateway/program_testing_internal.h"
#include "metrics/registry.h"
#include "model/front_door.h"

namespace hearth::gateway {

inline const std::string kId = "iabcdefghij0123456789";

struct SandboxWords {
  std::string name = kId;
  std::string ns = "default";
  std::map<std::string, std::string> labels = {{std::string(model::kFrontLabel), "e2b"}};
  std::map<std::string, std::string> annotations = {};
};

// The whole house.
class House {
 public:
  explicit House(GatewayOptions options = {}) {
    options.reach = options.reach != nullptr ? options.reach : &reach;
    options.registry = &registry;
    if (!options.envd_token)
      options.envd_token = [](const model::Key& key) { return "envd-" + key.name; };
    if (!options.traffic_token) {
      options.traffic_token = [](const model::Key& key) { return "traffic-" + key.name; };
    }
    gateway.emplace(sandboxes, pods, std::move(options));
    sandboxes.start();
    pods.start();
    EXPECT_TRUE(sandboxes.wait_synced(kPatience));
    EXPECT_TRUE(pods.wait_synced(kPatience));
    gateway->start();
  }
  House(const House&) = delete;
  House& operator=(const House&) = delete;
  ~House() {
    sandboxes.stop();
    pods.stop();
    gateway.reset();
  }

  client::Client& api() { return server.client(); }
  Peer connect() { return Peer::connect(gateway->ports()[0]); }

  // With its pod; the gateway knows of both.
  model::Json make_sandbox(const SandboxWords& words = {}) {
    model::Json object = apiserver::json(
        R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
            "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})");
    model::JsonObject& metadata = model::make_object_at(object, {"metadata"});
    metadata["name"] = words.name;
    metadata["namespace"] = words.ns;
    model::JsonObject& labels = model::make_object_at(object, {"metadata", "labels"});
    for (const auto& [key, value] : words.labels) labels[key] = value;
    model::JsonObject& annotations = model::make_object_at(object, {"metadata", "annotations"});
    for (const auto& [key, value] : words.annotations) annotations[key] = value;
    model::Json made = api().create(client::kSandboxes, object);
    make_pod(made);
    gateway->learn(made);
    return made;
  }
  void make_pod(const model::Json& sandbox) {
    model::Json pod = apiserver::json(R"({"apiVersion":"v1","kind":"Pod",
        "spec":{"containers":[{"name":"main","image":"x"}]}})");
    model::JsonObject& metadata = model::make_object_at(pod, {"metadata"});
    metadata["name"] = std::string(model::name_of(sandbox));
    metadata["namespace"] = std::string(model::namespace_of(sandbox));
    metadata["ownerReferences"] = model::JsonArray{model::controller_reference(sandbox)};
    api().create(client::kPods, pod);
    comes_true([&] {
      return pods.find(model::namespace_of(sandbox), model::name_of(sandbox)) != nullptr;
    });
  }
  model::Json annotate(std::string_view key, const model::Json& value) {
    return api().patch(
        client::kSandboxes, "default", kId, client::PatchKind::merge,
        model::JsonObject{
            {"metadata", model::JsonObject{{"annotations", model::JsonObject{{key, value}}}}}});
  }
  static bool comes_true(const std::function<bool()>& condition) {
    for (const Deadline end = Deadline::after(kPatience); !end.passed();) {
      if (condition()) return true;
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "it did not come true";
    return false;
  }

  metrics::Registry registry;
  FakeReach reach;
  apiserver::TestServer server;
  client::WatchCache sandboxes{server.client(), client::kSandboxes};
  client::WatchCache pods{server.client(), client::kPods};
  std::optional<Gateway> gateway;
};

// A request to a port of the sandbox, without body unless told.
inline std::string request(std::string_view line, std::uint16_t port = 8000,
                           std::string_view more = "") {
  return fmt::format(
      "{} HTTP/1.1\r\nHost: gw\r\nE2b-Sandbox-Id: {}\r\nE2b-Sandbox-Port: {}\r\n{}\r\n", line, kId,
      port, more);
}

}  // namespace hearth::gateway
