// What a Sandbox's conditions say, from what was seen of its children in one pass. Pure.
//
// The order in which types first appear is Suspended, Finished, PodScheduled, hearth.dev/Paused,
// Ready. Those but the first and the last are there only while they apply. Reasons and messages are
// what clients compare.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/json.h"
#include "model/meta.h"

namespace hearth::controllers {

using model::Json;
using model::JsonArray;

inline constexpr std::string_view kReady = "Ready";
inline constexpr std::string_view kReasonExpired = "SandboxExpired";
inline constexpr std::string_view kReasonMultiplePods = "MultiplePods";
inline constexpr std::string_view kReasonNotReady = "DependenciesNotReady";

// One look at the world.
struct Seen {
  const Json* pod = nullptr;      // also one that is not the Sandbox's
  const Json* service = nullptr;  // one in use
  bool has_pod_failed = false;    // the step, not the pod: no pod does not prove that there is none
  std::size_t owned_pods = 0;     // more than one: none is chosen
  std::vector<std::string> errors = {};
};

std::string multiple_pods_message(std::size_t count);

std::vector<model::Condition> conditions_of(const Json& sandbox, const Seen& seen);
// Puts them in place and removes what no longer applies.
void apply_conditions(JsonArray& conditions, const Json& sandbox, const Seen& seen, Time now);
// Ready is false because the time is over, and nothing is scheduled any more. Finished stays.
void apply_expiry(JsonArray& conditions, const Json& sandbox, Time now);

// "Ready" and so on, within a list of conditions; empty for none.
std::string_view condition_reason(const JsonArray& conditions, std::string_view type);
bool is_true(const JsonArray& conditions, std::string_view type);

}  // namespace hearth::controllers
