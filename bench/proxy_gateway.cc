#include "bench/proxy_gateway.h"

#include <fmt/format.h>

#include "apiserver/server.h"
#include "base/error.h"
#include "bench/process.h"
#include "client/kinds.h"
#include "client/watch_cache.h"
#include "gateway/gateway.h"
#include "metrics/registry.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "model/read_json.h"

namespace hearth::bench {
namespace {

model::Json make_sandbox(client::Client& api) {
  return api.create(
      client::kSandboxes,
      model::read_json(fmt::format(
          R"({{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{{"name":"{}",)"
          R"("namespace":"default","labels":{{"{}":"e2b"}}}},"spec":{{"podTemplate":{{"spec":)"
          R"({{"containers":[{{"name":"main","image":"x"}}]}}}}}}}})",
          kProxiedSandbox, model::kFrontLabel)));
}

void make_pod(client::Client& api, const model::Json& sandbox) {
  model::Json pod = model::read_json(fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"default"}},)"
      R"("spec":{{"containers":[{{"name":"main","image":"x"}}]}}}})",
      kProxiedSandbox));
  model::make_object_at(pod, {"metadata"})["ownerReferences"] =
      model::JsonArray{model::controller_reference(sandbox)};
  api.create(client::kPods, pod);
  api.patch(client::kPods, "default", kProxiedSandbox, client::PatchKind::merge,
            model::read_json(R"({"status":{"phase":"Running","podIP":"127.0.0.1"}})"),
            {.subresource = "status"});
}

}  // namespace

struct ProxyGateway::Parts {
  explicit Parts(const std::string& folder)
      : server(apiserver::ServerOptions{.state_dir = folder}),
        sandboxes(server.client(), client::kSandboxes),
        pods(server.client(), client::kPods) {
    gateway::GatewayOptions options;
    options.registry = &metrics;  // counting is part of its work
    options.envd_token = [](const model::Key&) { return "envd"; };
    options.traffic_token = [](const model::Key&) { return "traffic"; };
    gateway = std::make_unique<gateway::Gateway>(sandboxes, pods, std::move(options));
    make_pod(server.client(), make_sandbox(server.client()));
    sandboxes.start();
    pods.start();
    if (!sandboxes.wait_synced(kPatience) || !pods.wait_synced(kPatience))
      fail(Code::timeout, "the gateway does not hear of its sandbox");
    gateway->start();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    sandboxes.stop();
    pods.stop();
    gateway.reset();
  }

  metrics::Registry metrics;
  apiserver::Server server;
  client::WatchCache sandboxes;
  client::WatchCache pods;
  std::unique_ptr<gateway::Gateway> gateway;
};

ProxyGateway::ProxyGateway(const std::string& folder) : parts_(std::make_unique<Parts>(folder)) {}

ProxyGateway::~ProxyGateway() = default;

std::uint16_t ProxyGateway::port() const {
  return parts_->gateway->ports().front();
}

}  // namespace hearth::bench
