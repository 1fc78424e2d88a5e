#include "controllers/ownership.h"

#include "base/error.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {

Ownership ownership_of(const Json& child, const Json& sandbox) {
  const auto owner = model::controller_of(child);
  if (!owner) return Ownership::unowned;
  return owner->uid == model::uid_of(sandbox) ? Ownership::owned : Ownership::foreign;
}

void throw_foreign(const Json& child, const Json& sandbox, std::string_view word) {
  const auto owner = model::controller_of(child).value_or(model::Owner{});
  fail(Code::conflict, "{} \"{}\" is owned by {}/{} (UID: {}), not by sandbox \"{}\"", word,
       model::name_of(child), owner.kind, owner.name, owner.uid, model::name_of(sandbox));
}

void require_adoptable(const Json& child, const Json& sandbox, std::string_view word) {
  if (model::label_of(child, model::kAdoptableLabel) == "true") return;
  if (model::label_of(child, model::kNameHashLabel) == model::name_hash(model::name_of(sandbox)))
    return;
  fail(Code::conflict,
       "cannot adopt unowned {} \"{}\": missing required pool authorization label (\"{}\") or "
       "sandbox tracking label (\"{}\")",
       word, model::name_of(child), model::kAdoptableLabel, model::kNameHashLabel);
}

}  // namespace hearth::controllers
