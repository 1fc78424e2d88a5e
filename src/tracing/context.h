// Who caused what: the context of a trace, as W3C writes it and as objects carry it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::tracing {

struct Context {
  std::string trace_id;  // 32 of 0-9 and a-f, not all 0
  std::string span_id;   // 16 of them
  bool is_sampled = true;

  bool operator==(const Context&) const = default;
};

// "00-TRACE-SPAN-FLAGS", also of later versions. Nothing for anything else.
std::optional<Context> parse_traceparent(std::string_view text);
std::string to_traceparent(const Context& context);

// The annotation opentelemetry.io/trace-context: {"traceparent":"00-..."}. Whoever may write an
// object may write anything there; nothing for what makes no sense.
std::optional<Context> parse_annotation(std::string_view text);
std::string to_annotation(const Context& context);
std::optional<Context> context_of(const model::Json& object);

}  // namespace hearth::tracing
