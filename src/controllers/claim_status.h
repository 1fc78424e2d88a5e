// The status of a claim: what its sandbox says, or why it has none.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "model/json.h"

namespace hearth::controllers {

using model::Json;

// What a pass over a claim has seen.
struct ClaimView {
  const Json* sandbox = nullptr;  // its own; null for none
  bool is_expired = false;
  // Why there is no sandbox, or why it is not what was asked for; empty for no such reason.
  std::string reason;
  std::string message;
  // The sandbox in the status turned out to be somebody else's.
  bool is_foreign = false;
  // The pod that got what the claim brings along; empty: unchanged.
  std::string outfitted_pod;
};

// `claim`'s status as it has to be, conditions by type. A problem that may pass never takes the
// sandbox out of it.
Json claim_status(const Json& claim, const ClaimView& view, Time now);

// A merge patch of the status subresource, with the claim's resourceVersion; null for no change.
Json status_patch(const Json& claim, const Json& status);

// The reason of the Ready condition, empty for none.
std::string_view ready_reason(const Json& object);

}  // namespace hearth::controllers
