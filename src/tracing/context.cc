#include "tracing/context.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::tracing {
namespace {

constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kSpanDigits = 16;
constexpr std::size_t kTraceparent = 2 + 1 + kTraceDigits + 1 + kSpanDigits + 1 + 2;
// Longer ones are nobody's context.
constexpr std::size_t kLongestAnnotation = 4096;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::optional<Context> parse_traceparent(std::string_view text) {
  if (text.size() < kTraceparent) return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace = text.substr(3, kTraceDigits);
  const std::string_view span = text.substr(4 + kTraceDigits, kSpanDigits);
  const std::string_view flags = text.substr(kTraceparent - 2, 2);
  // A later version may have more to say, after another dash.
  const std::string_view rest = text.substr(kTraceparent);
  if (!rest.empty() && (version == "00" || rest.front() != '-')) return std::nullopt;
  if (text[2] != '-' || text[3 + kTraceDigits] != '-' || text[kTraceparent - 3] != '-')
    return std::nullopt;
  if (!is_hex(version) || version == "ff" || !is_id(trace) || !is_id(span) || !is_hex(flags))
    return std::nullopt;
  const char last = flags.back();
  const int low = last <= '9' ? last - '0' : last - 'a' + 10;
  return Context{
      .trace_id = std::string(trace), .span_id = std::string(span), .is_sampled = low % 2 == 1};
}

std::string to_traceparent(const Context& context) {
  return fmt::format("00-{}-{}-{}", context.trace_id, context.span_id,
                     context.is_sampled ? "01" : "00");
}

std::optional<Context> parse_annotation(std::string_view text) {
  if (text.empty() || text.size() > kLongestAnnotation) return std::nullopt;
  try {
    const model::Json said = model::parse_json(text).value;
    return parse_traceparent(model::text_at(said, {"traceparent"}));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string to_annotation(const Context& context) {
  return model::to_text(model::JsonObject{{"traceparent", to_traceparent(context)}});
}

std::optional<Context> context_of(const model::Json& object) {
  return parse_annotation(model::annotation_of(object, model::kTraceContextAnnotation));
}

}  // namespace hearth::tracing
