// The E2B API and the gateway: one port for both, on the objects of an engine or of a cluster.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/listening.h"
#include "client/client.h"
#include "gateway/access_log.h"
#include "tenants/default_templates.h"
#include "tenants/sandbox_tokens.h"

namespace hearth::metrics {
class Registry;
}
namespace hearth::pool {
class Allocator;
class Reach;
}  // namespace hearth::pool
namespace hearth::reconcile {
class Manager;
}

namespace hearth::cli {

struct E2bEndpointOptions {
  std::string folder;   // ours alone: for the certificates and the first key
  Listening listening;  // plain
  std::optional<Listening>
      tls;             // with a certificate for the domain, of the authority in folder/pki
  std::string domain;  // of sandboxes' ports; empty: clients' own settings count
  // What everybody's first program asks for; nothing: not made.
  std::optional<tenants::DefaultTemplates> templates;
  // Of public templates, for each team that uses another's (e2b/team_pools.h). 0: none.
  std::uint32_t team_warm = 0;
  Duration team_idle = std::chrono::minutes(15);
  std::optional<gateway::AccessFile> access_log;  // of the gateway; nothing: none is kept
  bool keeps_first_key = false;  // in the folder; it is made if there is none that works
};

struct E2bParts {
  client::Client& client;
  reconcile::Manager& manager;  // its caches have not been started
  pool::Allocator* allocator = nullptr;
  pool::Reach* reach = nullptr;
  tenants::SandboxTokens tokens;
  const Clock& clock;
  metrics::Registry& metrics;
  std::function<void()> hurry_news = {};  // of e2b::Parts
};

// Before the manager's caches start: made. When its controllers run: start(). Before they end:
// stop(). Destroyed when the caches have been stopped.
class E2bEndpoint {
 public:
  // All parts must outlive it.
  E2bEndpoint(const E2bParts& parts, E2bEndpointOptions options);
  E2bEndpoint(const E2bEndpoint&) = delete;
  E2bEndpoint& operator=(const E2bEndpoint&) = delete;
  ~E2bEndpoint();

  // Throws Error when it cannot listen.
  void start();
  // Idempotent. Requests that are under way are given a moment.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::cli
