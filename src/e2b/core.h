// What all parts of this API share: whom they ask, what they know, how long they wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "e2b/dressed_pods.h"
#include "e2b/limits.h"
#include "e2b/outfitted.h"
#include "e2b/waits.h"
#include "model/meta.h"
#include "tenants/api_keys.h"
#include "tenants/sandbox_tokens.h"

namespace hearth::metrics {
class Registry;
}
namespace hearth::pool {
class Allocator;
class Outfitter;
class Reach;
}  // namespace hearth::pool
namespace hearth::reconcile {
class Manager;
}

namespace hearth::e2b {

using client::Object;
using model::Json;
using model::JsonObject;

struct Options {
  // What clients build the names of sandboxes' ports from; empty: their own settings count.
  std::string domain;
  std::string envd_version = "0.6.13";
  // How long a create waits for a pool that is making sandboxes; then it starts one cold.
  Duration warm_patience = std::chrono::milliseconds(100);
  // How many sandboxes of a public template wait for each team that uses it and is not its own, and
  // for how long after the last create (e2b/team_pools.h). 0: none.
  std::uint32_t team_warm = 0;
  Duration team_idle = std::chrono::minutes(15);
  // Until a cold sandbox, or one that is resumed, is Ready: a download may be part of it.
  Duration start_patience = std::chrono::seconds(55);
  Duration pause_patience = std::chrono::seconds(30);
  // Until the cache shows what was written: a moment, unless the watch has been cut.
  Duration settle_patience = std::chrono::seconds(2);
  // What is shown of sandboxes whose template sets no limits: the machine's.
  std::int64_t cpu_count = 0;  // 0: ask the machine
  std::int64_t memory_mib = 0;
  std::uint16_t envd_port = 49'983;  // of pods, where there is no Reach
  // Each waits for one request: a write, a start. A team has half of them at most.
  unsigned workers = 192;
};

// All must outlive the Api.
struct Parts {
  client::Client& client;
  // Its caches have not been started yet.
  reconcile::Manager& manager;
  pool::Allocator* allocator = nullptr;  // null: every sandbox starts cold
  // Null: no node agent of this process has the sandboxes. Then they are told by their envd, and
  // neither pausing without memory nor rules of egress are offered.
  pool::Reach* reach = nullptr;
  tenants::ApiKeys& keys;
  const tenants::SandboxTokens& tokens;
  const Clock& clock;
  metrics::Registry& metrics;
  // Told of a Sandbox as a write left it, and of one that was deleted, before whoever asked for it
  // has his answer: the gateway shall not know less than its clients. Must not block; may be empty.
  std::function<void(const Json& sandbox)> wrote = {};
  std::function<void(const Json& last)> deleted = {};
  // The same of one that will be handed out, before the write that does it.
  std::function<void(const model::Key& sandbox)> chosen = {};
  // Caches are told now of writes whose news could wait; empty: they always are.
  std::function<void()> hurry_news = {};
};

struct Core {
  Core(const Parts& given, Options wanted);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  // When everybody else of this room listens to the caches; before they start.
  void listen();

  // The sandbox with this id (the path's `{id}`) of that namespace. Throws Refusal: 400 for what
  // can be no id, 404.
  Object get_sandbox(std::string_view ns, std::string_view id) const;
  // Null for one that is not there, not E2B's, on its way out, or whose time is over.
  Object find_sandbox(std::string_view ns, std::string_view name) const;
  // Those of a namespace that find_sandbox would find.
  std::vector<Object> list_sandboxes(std::string_view ns) const;
  // The pod that is the sandbox's own; null for none.
  Object find_pod(const Json& sandbox) const;

  // A merge patch, and the cache shows it when this returns. Throws Refusal(404) for a sandbox that
  // is gone. With `version`, Error(conflict) where it has changed since.
  Json patch_sandbox(const Json& sandbox, Json patch, std::string_view version = {});
  // Returns when whoever is asked next knows what was written: the gateway, and the cache.
  void settle(const Json& written);
  // The same without waiting for the cache: whoever is asked next has to catch_up().
  void announce(const Json& written);
  void catch_up();
  // Tells the gateway: of a Sandbox as it is, and of one that has been deleted.
  void tell(const Json& sandbox) const;
  void tell_deleted(const Json& last) const;
  Time now() const { return parts.clock.now(); }
  // When a start that begins now has succeeded or been given up: it is waited for until it is
  // Ready, and then until its pod can be reached.
  Time latest_start() const { return now() + 2 * options.start_patience; }
  // The Reach, or who stands in for it.
  pool::Outfitter& outfitter() const { return *outfitter_; }

  const Parts parts;
  const Options options;
  client::WatchCache& sandboxes;
  client::WatchCache& pods;
  client::WatchCache& templates;
  client::WatchCache& pools;
  Census census;
  DressedPods dressed;
  CacheWaits sandbox_waits;
  CacheWaits pod_waits;
  CacheWaits template_waits;
  Rates rates;
  Turns turns;
  Outfitted outfitted;

 private:
  std::atomic<std::uint64_t> announced_ = 0;        // the highest version
  std::unique_ptr<pool::Outfitter> own_outfitter_;  // null with a Reach
  pool::Outfitter* outfitter_;
};

// Throws Refusal(400) for more than the holder may ask for.
void check_timeout(const tenants::KeyHolder& holder, std::int64_t seconds);

// An id as clients write it: `[a-z0-9]+`, perhaps with "-CLIENT" behind it, which is dropped.
// Throws Refusal(400).
std::string parse_sandbox_id(std::string_view text);
// `i` and 20 characters of [a-z0-9].
std::string new_sandbox_id();
// Whether a pool's member can be handed out under its name.
bool is_sandbox_id(std::string_view name);

}  // namespace hearth::e2b
