// Where a claim's sandbox may come from: pools and the template behind them.
#pragma once

#include <vector>

#include "client/watch_cache.h"
#include "model/meta.h"

namespace hearth::controllers {

using model::Json;

struct ClaimSource {
  std::vector<client::Object>
      pools;                        // that may serve it; the one it names, or those of its template
  client::Object sandbox_template;  // null: there is none of that name
  std::string template_name;
};

class ClaimSources {
 public:
  // All must outlive it. `pools`: with warm_pool_cache_options().
  ClaimSources(client::Client& client, client::WatchCache& pools, client::WatchCache& templates)
      : client_(client), pools_(pools), templates_(templates) {}

  // Clients take "not found" for final: before it is said, the server is asked. Throws
  // ClaimProblem(WarmPoolNotFound).
  ClaimSource source_of(const Json& claim);
  // What the caches have, without asking; for claims that have a sandbox.
  client::Object cached_pool_of(const Json& claim) const;
  client::Object cached_template_of(const Json& claim) const;

 private:
  client::Object get(client::WatchCache& cache, const client::ResourceId& kind,
                     const model::Key& key);
  std::vector<client::Object> pools_in(std::string_view ns,
                                       const model::Key& sandbox_template) const;

  client::Client& client_;
  client::WatchCache& pools_;
  client::WatchCache& templates_;
};

// The pool that a claim names; empty for none. v1alpha1 claims that named a template alone name a
// pool that was never meant to have members: "shadow-pool-TEMPLATE".
std::string_view pool_name_of(const Json& claim);
std::string_view shadowed_template(std::string_view pool_name);

[[noreturn]] void throw_no_template(std::string_view name);

}  // namespace hearth::controllers
