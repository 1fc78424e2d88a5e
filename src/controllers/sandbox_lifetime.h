// When a Sandbox ends by itself, and when a pod that failed is made again. Pure.
#pragma once

#include "base/clock.h"
#include "model/json.h"
#include "reconcile/reconciler.h"

namespace hearth::controllers {

using model::Json;

// Whether spec.shutdownTime has come: the very moment counts.
bool is_expired(const Json& sandbox, Time now);
// What is left of its time, and 2 s at least; nothing without an end.
reconcile::Next until_expiry(const Json& sandbox, Time now);
// Whether expiry takes the object as well.
bool is_deleted_at_expiry(const Json& sandbox);

// spec.podFailurePolicy is Recreate.
bool recreates_failed_pods(const Json& sandbox);
// After so many failures in a row, the first included: 1 s, doubled each time, up to 5 minutes.
Duration recreation_pause(unsigned failures);
// Whether a pod ran for so long that failures before it no longer count.
bool was_stable(const Json& pod, Time now);

}  // namespace hearth::controllers
