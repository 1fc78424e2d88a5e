#include "controllers/sandbox_lifetime.h"

#include <algorithm>

#include "base/time_text.h"
#include "model/meta.h"

namespace hearth::controllers {

using std::chrono::minutes;
using std::chrono::seconds;

namespace {

constexpr Duration kLeastWait = seconds(2);
constexpr Duration kFirstPause = seconds(1);
constexpr Duration kLongestPause = minutes(5);
constexpr Duration kStableAfter = minutes(10);

std::optional<Time> shutdown_time(const Json& sandbox) {
  return parse_rfc3339(model::text_at(sandbox, {"spec", "shutdownTime"}));
}

}  // namespace

bool is_expired(const Json& sandbox, Time now) {
  const auto end = shutdown_time(sandbox);
  return end && now >= *end;
}

reconcile::Next until_expiry(const Json& sandbox, Time now) {
  const auto end = shutdown_time(sandbox);
  if (!end) return reconcile::kWhenChanged;
  return std::max<Duration>(*end - now, kLeastWait);
}

bool is_deleted_at_expiry(const Json& sandbox) {
  return model::text_at(sandbox, {"spec", "shutdownPolicy"}) == "Delete";
}

bool recreates_failed_pods(const Json& sandbox) {
  return model::text_at(sandbox, {"spec", "podFailurePolicy"}) == "Recreate";
}

Duration recreation_pause(unsigned failures) {
  Duration pause = kFirstPause;
  for (unsigned each = 1; each < failures && pause < kLongestPause; ++each) pause *= 2;
  return std::min(pause, kLongestPause);
}

bool was_stable(const Json& pod, Time now) {
  const auto started = model::created_at(pod);
  return started && now - *started >= kStableAfter;
}

}  // namespace hearth::controllers
