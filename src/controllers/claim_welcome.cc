// Claims that have their sandbox from the first moment
// (docs/adr/0027-claims-are-bound-as-they-are-made.md).
#include "client/kinds.h"
#include "controllers/claim_defaults.h"
#include "controllers/claim_expiry.h"
#include "controllers/claim_metadata.h"
#include "controllers/claim_problem.h"
#include "controllers/claim_reconciler.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {
namespace {

using client::Object;

// By another controller, which wrote its choice down.
bool is_promised_one(const Json& claim) {
  return !model::annotation_of(claim, model::kSandboxNameAnnotation).empty() ||
         !model::label_of(claim, model::kSandboxNameAnnotation).empty();
}

bool has_good_metadata(const Json& claim, const Options& options) {
  try {
    check_additional_metadata(claim, options.label_domains);
  } catch (const ClaimProblem&) {
    return false;
  }
  return true;
}

}  // namespace

// A claim on its way to be kept, and what is remembered of it by then: forgotten if it is not.
struct ClaimReconciler::Newborn {
  Newborn(ClaimMemories& memories, const Json& claim, ClaimSupplier::Reserved given, Time now)
      : memories(memories),
        key(model::key_of(claim)),
        memory(memories.of_newborn(claim, now)),
        reserved(std::move(given)),
        began(std::chrono::steady_clock::now()) {}
  Newborn(const Newborn&) = delete;
  Newborn& operator=(const Newborn&) = delete;
  ~Newborn() {
    if (!is_kept) memories.forget(key, memory->uid);
  }

  ClaimMemories& memories;
  const model::Key key;
  const std::shared_ptr<ClaimMemory> memory;
  const ClaimSupplier::Reserved reserved;
  const std::chrono::steady_clock::time_point began;
  bool is_kept = false;
};

std::optional<client::Welcome> ClaimReconciler::welcome(const Json& claim) {
  // Whatever speaks against it, a pass over the claim will see and say.
  if (!is_deciding_ || options_.tracer || is_promised_one(claim)) return std::nullopt;
  const Object pool = sources_.cached_pool_of(claim);
  if (!pool || parts_.sandboxes.find(model::namespace_of(claim), model::name_of(claim)))
    return std::nullopt;
  const Time now = parts_.clock.now();
  const auto expiry = expiry_of(claim, lifecycle_of(claim, *pool));
  if (is_over(expiry, now) || !has_good_metadata(claim, options_)) return std::nullopt;
  auto reserved = supplier_.reserve(claim, pool);
  if (!reserved) return std::nullopt;

  const Object sandbox = reserved->hold.sandbox();
  client::Welcome welcome{.status = claim_status(claim, {.sandbox = sandbox.get()}, now),
                          .kind = client::kSandboxes,
                          .key = model::key_of(*sandbox),
                          .patch = reserved->patch,
                          .kept = {}};
  const auto newborn = std::make_shared<Newborn>(memories_, claim, std::move(*reserved), now);
  ClaimMemory& memory = *newborn->memory;
  memory.is_measured = true;
  memory.first_ready = now;
  if (options_.claim_observability_annotations) memory.annotating = now + options_.annotation_delay;
  memory.look_again = earlier(expiry, memory.annotating);
  welcome.kept = [this, newborn](const Object& made, const Object& other) {
    newborn->is_kept = true;
    tell_born(*newborn, *made, other);
  };
  return welcome;
}

void ClaimReconciler::tell_born(const Newborn& newborn, const Json& claim, const Object& sandbox) {
  // First what spares the claim's own worker a pass.
  newborn.memory->birth.with([&](auto& birth) {
    birth = ClaimBirth{.sandbox = sandbox, .situation = situation_of(claim, *sandbox)};
  });
  supplier_.tell_reserved(claim, newborn.reserved, sandbox,
                          std::chrono::steady_clock::now() - newborn.began);
  metrics_.observe_ready(claim, *sandbox, newborn.memory->first_seen, parts_.clock.now());
}

}  // namespace hearth::controllers
