// What a container may use, from its resources.
#include <algorithm>
#include <limits>

#include "model/quantity.h"
#include "node/plan_internal.h"

namespace hearth::node {
namespace {

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

std::optional<model::Quantity> amount(const Json& container, std::string_view kind,
                                      std::string_view resource) {
  const auto found =
      model::Quantity::parse(model::text_at(container, {"resources", kind, resource}));
  return found && *found > model::Quantity() ? found : std::nullopt;
}

// Who asks for more than everybody gets, gets it.
std::uint64_t bytes(const Json& container, std::string_view resource, std::uint64_t usual) {
  if (const auto limit = amount(container, "limits", resource))
    return static_cast<std::uint64_t>(limit->units());
  const auto request = amount(container, "requests", resource);
  if (!request || usual == 0) return usual;
  return std::max(usual, static_cast<std::uint64_t>(request->units()));
}

std::uint32_t processor_time(const Json& container, std::uint32_t usual) {
  const auto millis = [](const model::Quantity& cpu) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(kMost32, static_cast<std::uint64_t>(cpu.thousandths())));
  };
  if (const auto limit = amount(container, "limits", "cpu")) return millis(*limit);
  const auto request = amount(container, "requests", "cpu");
  return !request || usual == 0 ? usual : std::max(usual, millis(*request));
}

}  // namespace

runtime::Limits plan_limits(const PlanInput& input) {
  runtime::Limits limits = input.options.limits;
  limits.memory_bytes = bytes(input.container, "memory", limits.memory_bytes);
  limits.disk_bytes = bytes(input.container, "ephemeral-storage", limits.disk_bytes);
  limits.cpu_millis = processor_time(input.container, limits.cpu_millis);
  return limits;
}

}  // namespace hearth::node
