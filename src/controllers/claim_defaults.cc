#include "controllers/claim_defaults.h"

#include <chrono>
#include <cstdint>
#include <limits>

#include "base/time_text.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

// The schema's bound; an object that came past it must not overflow a time.
constexpr std::int64_t kMostSeconds = std::numeric_limits<std::int32_t>::max();

}  // namespace

std::optional<Json> lifecycle_of(const Json& claim, const Json& pool) {
  const Json* own = model::find(claim, {"spec", "lifecycle"});
  if (own != nullptr && own->is_object()) return *own;
  const Json* defaults = model::find(pool, {"spec", "claimDefaults", "lifecycle"});
  if (defaults == nullptr || !defaults->is_object()) return std::nullopt;
  Json lifecycle = *defaults;
  model::erase_at(lifecycle, {"shutdownAfterSeconds"});
  const auto seconds = model::number_at(*defaults, {"shutdownAfterSeconds"});
  const auto created = model::created_at(claim);
  if (seconds && *seconds > 0 && *seconds <= kMostSeconds && created)
    lifecycle.get_object()["shutdownTime"] =
        format_rfc3339(*created + std::chrono::seconds(*seconds));
  return lifecycle;
}

}  // namespace hearth::controllers
