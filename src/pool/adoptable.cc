#include "model/agent_sandbox.h"
#include "pool/allocator.h"

namespace hearth::pool {

// Readiness is no part of it: who takes one decides about that.
bool is_adoptable(const Json& sandbox) {
  if (model::is_deleting(sandbox)) return false;
  if (model::label_of(sandbox, model::kPoolLabel).empty()) return false;
  if (model::label_of(sandbox, model::kTemplateRefHashLabel).empty()) return false;
  const auto owner = model::controller_of(sandbox);
  return owner && owner->kind == "SandboxWarmPool" && owner->group() == model::kExtensionsGroup;
}

}  // namespace hearth::pool
