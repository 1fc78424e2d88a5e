#include "node/pod_network.h"

#include <algorithm>

#include "client/kinds.h"
#include "network/pool.h"
#include "network/resolver.h"
#include "node/hosts_file.h"
#include "node/name_server.h"
#include "node/policy_keeper.h"
#include "node/resolv_conf.h"
#include "node/service_keeper.h"

namespace hearth::node {
namespace {

// None where the runtime gives no addresses.
std::unique_ptr<NameServer> make_name_server(const PodNetworkOptions& options,
                                             PolicyKeeper& policies) {
  const std::string pool = runtime::RuntimeClient(options.state_dir).hello().network;
  if (pool.empty()) return nullptr;
  NameServerOptions made;
  made.clients = network::parse_cidr(pool);
  made.address = network::gateway_of(made.clients);
  made.domain = options.domain;
  made.upstream = network::find_host_resolver().value_or(0);
  made.judge = [&policies](std::uint32_t client, std::string_view name) {
    return policies.judge(client, name);
  };
  made.admit = [&policies](std::uint32_t client, const std::string& name,
                           std::span<const std::uint32_t> answered) {
    policies.admit(client, name, answered);
  };
  return std::make_unique<NameServer>(made);
}

}  // namespace

struct PodNetwork::State {
  State(client::Client& client, runtime::Runtime& runtime, client::WatchCache& pods,
        const PodNetworkOptions& given)
      : options(given),
        services(client, client::kServices),
        policies(client, runtime, pods, services),
        leading(client, pods, services, {.state_dir = given.state_dir, .domain = given.domain}) {}

  const PodNetworkOptions options;
  client::WatchCache services;
  PolicyKeeper policies;
  std::unique_ptr<NameServer> names;
  ServiceKeeper leading;
};

PodNetwork::PodNetwork(client::Client& client, runtime::Runtime& runtime, client::WatchCache& pods,
                       const PodNetworkOptions& options)
    : state_(std::make_unique<State>(client, runtime, pods, options)) {}

PodNetwork::~PodNetwork() = default;

void PodNetwork::start() {
  state_->services.start();
  state_->policies.start();
  state_->names = make_name_server(state_->options, state_->policies);
  if (NameServer* names = state_->names.get())
    state_->leading.answer_names(names->port(),
                                 [names](Names now) { names->set_names(std::move(now)); });
  state_->leading.start();
}

void PodNetwork::stop() {
  state_->policies.stop();
  state_->leading.stop();
  state_->services.stop();
}

void PodNetwork::furnish(const model::Json& pod, runtime::SandboxSpec& spec) {
  spec.hosts = hosts_file_of(pod, state_->options.domain);
  if (!spec.network) return;
  spec.network = state_->policies.first_policy(pod);
  constexpr std::string_view kPath = "/etc/resolv.conf";
  const bool is_own =
      std::ranges::find(spec.mounts, kPath, &runtime::MountSpec::target) != spec.mounts.end();
  if (!state_->names || is_own || spec.mounts.size() >= runtime::kMaxMounts) return;
  spec.mounts.push_back(
      {.kind = runtime::MountKind::file,
       .target = std::string(kPath),
       .content = resolv_conf_of(pod, state_->names->address(), state_->options.domain)});
}

void PodNetwork::enforce(const model::Json& pod, const std::string& sandbox) {
  state_->policies.enforce(pod, sandbox);
}

}  // namespace hearth::node
