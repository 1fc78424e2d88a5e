// Numbers about Sandboxes, under the names that dashboards of agent-sandbox know.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "metrics/registry.h"
#include "model/json.h"
#include "model/meta.h"

namespace hearth::controllers {

// agent_sandboxes: how many there are, counted from the cache at each scrape. Both must outlive
// the last one.
void collect_sandboxes(metrics::Registry& registry, const client::WatchCache& sandboxes);

// agent_sandbox_creation_latency_ms: from a Sandbox's creation to its Ready condition. For who
// hands it out, once; does nothing for one that is not ready.
void observe_creation_latency(metrics::Registry& registry, const model::Json& sandbox,
                              std::string_view launch_type, std::string_view sandbox_template);

// agent_sandbox_suspend_total, _suspend_latency_ms, _resume_total, _resume_latency_ms,
// _finished_total and _expired_total: what happened to Sandboxes, from what their status says
// before and after. Latencies need somebody who saw the beginning: those that a controller finds
// half-way are counted only. Thread-safe.
class SandboxTransitions {
 public:
  // Null: nothing is counted. The registry must outlive it.
  explicit SandboxTransitions(metrics::Registry* registry) : registry_(registry) {}

  // For each status that was written. The first is the Sandbox's, whose own status is not read.
  void note(const model::Json& sandbox, const model::Json& status_before,
            const model::Json& status_now, Time now);
  // A pass could not do what suspending or resuming takes.
  void note_failure(const model::Json& sandbox);
  void forget(const model::Key& key);

 private:
  enum class Move { suspend, resume };
  struct Began {
    Move move;
    Time at;
  };

  void begin(const model::Key& key, Move move, Time now);
  void end(const model::Json& sandbox, Move move, Time now);
  void count_end(const model::Json& sandbox, Move move, std::string_view result);

  metrics::Registry* registry_;
  std::mutex mutex_;  // guards began_
  std::map<model::Key, Began> began_;
};

}  // namespace hearth::controllers
