#include "controllers/pass_span.h"

#include "controllers/sandbox_pod.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {

void describe(tracing::Span& span, std::string_view what, const model::Json& object) {
  span.set(std::string(what) + ".name", model::name_of(object));
  span.set(std::string(what) + ".namespace", model::namespace_of(object));
  if (const auto creator = model::label_of(object, model::kCreatedByLabel); !creator.empty())
    span.set(model::kCreatedByLabel, normalised_creator(creator));
}

}  // namespace hearth::controllers
