// What a warm pool would do next, from what is there. Pure: no calls, no clock.
//
//   with its label ─┬─ ending ─────────────▶ still takes room
//                   ├─ somebody else's ────▶ not its business
//                   ├─ stale, stuck ───────▶ replace
//                   └─ waits to be claimed ▶ active; an orphan is adopted first
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "controllers/blueprint.h"

namespace hearth::controllers {

using client::Object;

struct PoolView {
  const Json& pool;
  // Null while there is none: then nothing is stale, and nothing can be made.
  const Json* sandbox_template = nullptr;
  const Blueprint* blueprint = nullptr;
  const std::vector<Object>& members;  // in its namespace, with its label
  Time now;
  Duration readiness_grace{};
  // Whether its end was asked for already, though the cache does not show it.
  std::function<bool(std::string_view uid)> is_ending;
};

struct PoolPlan {
  std::vector<Object> active;   // wait to be claimed, or will
  std::vector<Object> adopt;    // of the active: orphans
  std::vector<Object> mark;     // of the active: ours, but without the label of warm ones
  std::vector<Object> replace;  // stale, or not Ready for too long
  std::uint32_t terminating = 0;
  std::uint32_t ready = 0;
  // Active, and not Ready for too long, but another would find no node either.
  std::uint32_t unschedulable = 0;
  // Until the first of those that are not Ready has been so for too long.
  std::optional<Duration> next_deadline;
};

PoolPlan plan_pool(const PoolView& view);

std::uint32_t desired_replicas(const Json& pool);
// The Sandbox that it makes: one, where the pool asks for names that are ids (kNamesAnnotation);
// else as often as one likes, the server names it. `may_evict`: an autoscaler may, while it is
// idle.
Json make_member(const Json& pool, const Blueprint& blueprint, bool may_evict);
// `count` of the active that are missed least: not Ready first, then the newest.
std::vector<Object> least_missed(std::vector<Object> active, std::size_t count);
// A merge patch of status: counts that are zero are null, which is how Go's clients expect them.
Json pool_status(const Json& pool, const PoolPlan& plan);
// Whether the pool says all of that already.
bool has_status(const Json& pool, const Json& status);

// "ready", "pending", "succeeded" or "failed", for metrics.
std::string_view member_state(const Json& sandbox);
bool is_unschedulable(const Json& sandbox);

}  // namespace hearth::controllers
