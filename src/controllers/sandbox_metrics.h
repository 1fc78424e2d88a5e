// Numbers about Sandboxes, under the names that dashboards of agent-sandbox know.
#pragma once

#include <string>
#include <string_view>

#include "client/watch_cache.h"
#include "metrics/registry.h"

namespace hearth::controllers {

// agent_sandboxes: how many there are, counted from the cache at each scrape. Both must outlive
// the last one.
void collect_sandboxes(metrics::Registry& registry, const client::WatchCache& sandboxes);

// agent_sandbox_creation_latency_ms: from a Sandbox's creation to its Ready condition. For who
// hands it out, once; does nothing for one that is not ready.
void observe_creation_latency(metrics::Registry& registry, const model::Json& sandbox,
                              std::string_view launch_type, std::string_view sandbox_template);

}  // namespace hearth::controllers
