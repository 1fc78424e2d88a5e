#include "cli/e2b_endpoint.h"

#include <fcntl.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "cli/endpoints.h"
#include "client/kinds.h"
#include "e2b/api.h"
#include "gateway/gateway.h"
#include "gateway/target.h"
#include "linux/files.h"
#include "pki/authority.h"
#include "reconcile/manager.h"
#include "tenants/api_keys.h"

namespace hearth::cli {
namespace {

constexpr Duration kKeysPatience = std::chrono::seconds(30);
// For what is under way when the engine ends: sandboxes live on, their streams do not.
constexpr Duration kGrace = std::chrono::milliseconds(500);
// Bytes are cheap to carry; more threads than that take the processors from sandboxes.
constexpr unsigned kMostLoops = 4;

unsigned count_loops() {
  return std::clamp(std::thread::hardware_concurrency() / 2, 1U, kMostLoops);
}

net::TlsServerOptions make_certificate(const E2bEndpointOptions& options, Time now) {
  const pki::Authority authority(options.folder + "/pki", now);
  const pki::Identity identity =
      authority.issue_server("hearth-gateway", {options.domain, "*." + options.domain}, now);
  net::TlsServerOptions tls;
  tls.certificate.text = identity.certificate;
  tls.key.text = identity.key;
  return tls;
}

std::vector<gateway::Listen> make_listens(E2bEndpointOptions& options, Time now) {
  std::vector<gateway::Listen> listens;
  listens.push_back({.listen_fd = options.listening.socket.release()});
  if (options.tls)
    listens.push_back(
        {.listen_fd = options.tls->socket.release(), .tls = make_certificate(options, now)});
  return listens;
}

// The domain with the port that clients need, as their E2B_DOMAIN takes it.
std::string domain_of(const E2bEndpointOptions& options) {
  if (options.domain.empty() || !options.tls) return options.domain;
  const std::string port = options.tls->url.substr(options.tls->url.rfind(':') + 1);
  return port == "443" ? options.domain : options.domain + ":" + port;
}

}  // namespace

struct E2bEndpoint::State {
  State(const E2bParts& given, E2bEndpointOptions wanted)
      : parts(given),
        options(std::move(wanted)),
        keys(parts.client, parts.clock),
        api({.client = parts.client,
             .manager = parts.manager,
             .allocator = parts.allocator,
             .reach = parts.reach,
             .keys = keys,
             .tokens = parts.tokens,
             .clock = parts.clock,
             .metrics = parts.metrics,
             .wrote = [this](const model::Json& sandbox) { gate.learn(sandbox); },
             .deleted = [this](const model::Json& last) { gate.forget(last); },
             .chosen = [this](const model::Key& key) { gate.expect(key, gateway::kEnvdPort); },
             .hurry_news = parts.hurry_news},
            {.domain = domain_of(options),
             .team_warm = options.team_warm,
             .team_idle = options.team_idle}),
        gate(parts.manager.cache(client::kSandboxes), parts.manager.cache(client::kPods),
             gateway_options()) {
    if (options.templates) tenants::make_default_templates(parts.client, *options.templates);
  }

  gateway::GatewayOptions gateway_options() {
    gateway::GatewayOptions made;
    made.listens = make_listens(options, parts.clock.now());
    made.threads = count_loops();
    made.control = [this](http::Request request, std::function<void(http::Response)> answer) {
      api.ask(std::move(request), std::move(answer));
    };
    made.reach = parts.reach;
    made.envd_token = [this](const model::Key& key) { return parts.tokens.envd_token(key); };
    made.traffic_token = [this](const model::Key& key) { return parts.tokens.traffic_token(key); };
    made.key_owner = [this](std::string_view key) -> gateway::KeyOwner {
      const auto holder = keys.find(key);
      if (!holder) return {};
      return {.ns = holder->ns, .id = holder->id};
    };
    made.wake = [this](const model::Key& key) { api.wake(key); };
    made.urgent = [this] {
      return std::make_shared<reconcile::RightOfWay::Urgent>(parts.manager.right_of_way());
    };
    made.registry = &parts.metrics;
    if (options.access_log) {
      access_log.emplace(gateway::AccessLogOptions{.file = std::move(*options.access_log),
                                                   .registry = &parts.metrics});
      made.access_log = &*access_log;
    }
    return made;
  }

  // Whoever owns the engine's folder has a key that works, from the first start on.
  void settle_first_key() {
    const linux::Fd folder = linux::open_file(options.folder, O_RDONLY | O_DIRECTORY);
    std::string kept;
    try {
      kept = linux::read_file_at(folder.get(), kE2bKeyFile);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
    }
    while (kept.ends_with('\n')) kept.pop_back();
    if (keys.find(kept)) return;
    const tenants::IssuedKey issued = keys.issue(
        {.team = std::string(tenants::kDefaultTeam), .name = "first", .limits = {}, .expires = {}});
    linux::replace_file_at(folder.get(), kE2bKeyFile, issued.key + "\n");
    log::info("an API key was made", {{"id", issued.info.id}, {"team", issued.info.team}});
  }

  const E2bParts parts;
  E2bEndpointOptions options;
  tenants::ApiKeys keys;
  e2b::Api api;
  std::optional<gateway::AccessLog> access_log;
  gateway::Gateway gate;  // last: it asks all of them
};

E2bEndpoint::E2bEndpoint(const E2bParts& parts, E2bEndpointOptions options)
    : state_(std::make_unique<State>(parts, std::move(options))) {}

E2bEndpoint::~E2bEndpoint() {
  stop();
}

void E2bEndpoint::start() {
  state_->keys.start();
  if (!state_->keys.wait_synced(kKeysPatience))
    fail(Code::timeout, "the API did not tell its keys within {} s",
         std::chrono::duration_cast<std::chrono::seconds>(kKeysPatience).count());
  if (state_->options.keeps_first_key) state_->settle_first_key();
  state_->api.start();
  state_->gate.start();
}

void E2bEndpoint::stop() {
  state_->gate.stop(kGrace);
  state_->api.stop();
  state_->keys.stop();
}

}  // namespace hearth::cli
