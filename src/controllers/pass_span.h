// Spans of passes, as those know them who trace agent-sandbox-controller.
#pragma once

#include <string>
#include <string_view>

#include "tracing/tracer.h"

namespace hearth::controllers {

// What a pass is about: WHAT.name, WHAT.namespace, and who created it, if that is known.
void describe(tracing::Span& span, std::string_view what, const model::Json& object);

// Runs `act`; the span tells of what it throws.
template <typename F>
auto traced(tracing::Span& span, F act) {
  try {
    return act();
  } catch (const std::exception& error) {
    span.fail(error.what());
    throw;
  }
}

}  // namespace hearth::controllers
