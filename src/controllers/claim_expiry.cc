#include "controllers/claim_expiry.h"

#include <algorithm>

#include "base/time_text.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

using model::text_at;

// Years ahead are as good as never, and do not overflow.
std::optional<Time> after(std::optional<Time> from, std::optional<std::int64_t> seconds) {
  if (!from || !seconds || *seconds < 0) return std::nullopt;
  constexpr std::int64_t kMost = 50LL * 365 * 86'400;
  return *from + std::chrono::seconds(std::min(*seconds, kMost));
}

std::optional<Time> finished_at(const Json& claim) {
  const Json* finished = model::find_condition(claim, "Finished");
  if (!finished || text_at(*finished, {"status"}) != "True") return std::nullopt;
  return parse_rfc3339(text_at(*finished, {"lastTransitionTime"}));
}

// A renewal that is no time, or older than the claim, is none.
std::optional<Time> renewed_at(const Json& claim) {
  const auto created = model::created_at(claim);
  const auto renewed = parse_rfc3339(model::annotation_of(claim, kRenewedAnnotation));
  if (!renewed) return created;
  return created ? std::max(*created, *renewed) : renewed;
}

}  // namespace

std::optional<Time> expiry_of(const Json& claim, const std::optional<Json>& lifecycle) {
  if (!lifecycle) return std::nullopt;
  const auto of_work =
      after(finished_at(claim), model::number_at(*lifecycle, {"ttlSecondsAfterFinished"}));
  const auto of_lease =
      after(renewed_at(claim), model::number_at(*lifecycle, {"leaseDurationSeconds"}));
  return earlier(parse_rfc3339(text_at(*lifecycle, {"shutdownTime"})), earlier(of_work, of_lease));
}

std::optional<Time> earlier(const std::optional<Time>& left, const std::optional<Time>& right) {
  if (!left || !right) return left ? left : right;
  return std::min(*left, *right);
}

bool is_over(std::optional<Time> expiry, Time now) {
  return expiry && *expiry <= now;
}

std::string_view shutdown_policy_of(const std::optional<Json>& lifecycle) {
  const std::string_view policy = lifecycle ? text_at(*lifecycle, {"shutdownPolicy"}) : "";
  return policy.empty() ? "Retain" : policy;
}

}  // namespace hearth::controllers
