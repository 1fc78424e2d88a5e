// When a claim ends: at its hour, some time after its sandbox's work, or when nobody renews it.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "model/json.h"

namespace hearth::controllers {

using model::Json;

// Holders of a leased claim write the hour here (RFC 3339).
inline constexpr std::string_view kRenewedAnnotation = "hearth.dev/renewed-at";

// The earliest of its ends under a lifecycle (claim_defaults.h); nothing: it has none.
std::optional<Time> expiry_of(const Json& claim, const std::optional<Json>& lifecycle);

// Of two moments, one of which may never come.
std::optional<Time> earlier(const std::optional<Time>& left, const std::optional<Time>& right);

// Whether that has come: a moment that is now has.
bool is_over(std::optional<Time> expiry, Time now);

// Retain, Delete or DeleteForeground.
std::string_view shutdown_policy_of(const std::optional<Json>& lifecycle);

}  // namespace hearth::controllers
