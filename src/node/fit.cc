#include "node/fit.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/agent_sandbox.h"
#include "model/meta.h"
#include "model/quantity.h"
#include "node/pressure.h"

namespace hearth::node {
namespace {

using model::Json;

constexpr const char* kOtherNode = "node(s) didn't match Pod's node affinity/selector";

std::optional<model::Quantity> quantity_at(const Json& value, model::Path path) {
  const Json* found = model::find(value, path);
  if (found == nullptr) return std::nullopt;
  if (found->is_string()) return model::Quantity::parse(std::string_view(found->get_string()));
  const auto number = model::as_integer(*found);
  return number ? std::optional(model::Quantity::of(*number)) : std::nullopt;
}

// Whether limits reserve nothing: sandboxes are many, mostly wait for an agent to think, and say
// how much they may take at most. A thousand of them share two processors.
bool is_packed(const Json& pod) {
  const auto owner = model::controller_of(pod);
  return owner && owner->kind == "Sandbox" && owner->group() == model::kCoreGroup;
}

// As the API server fills it in: a limit is a request where there is none. Of packed pods what is
// as large as the limit may be just that, and is taken for it.
std::optional<model::Quantity> request_of(const Json& container, std::string_view resource,
                                          bool packed) {
  const auto limit = quantity_at(container, {"resources", "limits", resource});
  auto request = quantity_at(container, {"resources", "requests", resource});
  if (!request) request = limit;
  const bool is_limit = request && limit && request->thousandths() == limit->thousandths();
  return packed && is_limit ? std::nullopt : request;
}

Resources asked(const Json& container, bool packed) {
  Resources resources;
  if (const auto cpu = request_of(container, "cpu", packed))
    resources.cpu_millis = cpu->thousandths();
  if (const auto memory = request_of(container, "memory", packed))
    resources.memory_bytes = memory->units();
  return resources;
}

Resources larger(const Resources& left, const Resources& right) {
  return {.cpu_millis = std::max(left.cpu_millis, right.cpu_millis),
          .memory_bytes = std::max(left.memory_bytes, right.memory_bytes)};
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.begin(), text.end(), number);
  if (read.ec != std::errc() || read.ptr != text.end()) return std::nullopt;
  return number;
}

// One requirement of a node selector. `value` is nothing where the node has no such label.
bool is_met(const Json& requirement, const std::optional<std::string_view>& value) {
  const std::string_view op = model::text_at(requirement, {"operator"});
  const auto* values = model::array_at(requirement, {"values"});
  const auto is_among = [&] {
    return values != nullptr && value && std::ranges::any_of(*values, [&](const Json& one) {
             return one.is_string() && std::string_view(one.get_string()) == *value;
           });
  };
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value.has_value();
  if (op == "In") return is_among();
  if (op == "NotIn") return !is_among();
  if (!value || values == nullptr || values->size() != 1 || !values->front().is_string())
    return false;
  const auto here = number_of(*value);
  const auto limit = number_of(std::string_view(values->front().get_string()));
  if (!here || !limit) return false;
  return op == "Gt" ? *here > *limit : op == "Lt" && *here < *limit;
}

bool are_met(const Json& term, std::string_view list, const Json& node) {
  const auto* requirements = model::array_at(term, {list});
  if (requirements == nullptr) return true;
  return std::ranges::all_of(*requirements, [&](const Json& requirement) {
    const std::string_view key = model::text_at(requirement, {"key"});
    if (list == "matchFields")
      return key == "metadata.name" && is_met(requirement, model::name_of(node));
    const Json* label = model::find(node, {"metadata", "labels", key});
    if (label == nullptr || !label->is_string()) return is_met(requirement, std::nullopt);
    return is_met(requirement, std::string_view(label->get_string()));
  });
}

bool is_empty_term(const Json& term) {
  const auto has = [&](std::string_view list) {
    const auto* requirements = model::array_at(term, {list});
    return requirements != nullptr && !requirements->empty();
  };
  return !has("matchExpressions") && !has("matchFields");
}

bool is_selected(const Json& pod, const Json& node) {
  if (const auto* wanted = model::object_at(pod, {"spec", "nodeSelector"})) {
    for (const auto& [key, value] : *wanted) {
      const Json* label = model::find(node, {"metadata", "labels", key});
      if (label == nullptr || *label != value) return false;
    }
  }
  const auto* terms =
      model::array_at(pod, {"spec", "affinity", "nodeAffinity",
                            "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (terms == nullptr) return true;
  // One of them is enough; one that says nothing selects nothing.
  return std::ranges::any_of(*terms, [&](const Json& term) {
    return !is_empty_term(term) && are_met(term, "matchExpressions", node) &&
           are_met(term, "matchFields", node);
  });
}

bool is_tolerated(const Json& taint, const Json& toleration) {
  const std::string_view key = model::text_at(toleration, {"key"});
  const std::string_view effect = model::text_at(toleration, {"effect"});
  if (!effect.empty() && effect != model::text_at(taint, {"effect"})) return false;
  if (!key.empty() && key != model::text_at(taint, {"key"})) return false;
  if (model::text_at(toleration, {"operator"}) == "Exists") return true;
  return !key.empty() && model::text_at(toleration, {"value"}) == model::text_at(taint, {"value"});
}

// Of a better quality of service than BestEffort.
bool asks_for_something(const Json& pod) {
  const auto asks = [](const Json& container) {
    for (const std::string_view kind : {"requests", "limits"})
      for (const std::string_view resource : {"cpu", "memory"})
        if (model::find(container, {"resources", kind, resource}) != nullptr) return true;
    return false;
  };
  for (const std::string_view list : {"containers", "initContainers"})
    if (const auto* containers = model::array_at(pod, {"spec", list}))
      if (std::ranges::any_of(*containers, asks)) return true;
  return false;
}

// Where memory is short; elsewhere admission gives such pods a toleration.
bool is_welcome(const Json& taint, const Json& pod) {
  return model::text_at(taint, {"key"}) == pressure_taint(Supply::memory) &&
         model::text_at(taint, {"effect"}) == "NoSchedule" && asks_for_something(pod);
}

// Null for none. Preferences are no reason where there is one node.
const Json* find_untolerated_taint(const Json& pod, const Json& node) {
  const auto* taints = model::array_at(node, {"spec", "taints"});
  if (taints == nullptr) return nullptr;
  const auto* tolerations = model::array_at(pod, {"spec", "tolerations"});
  for (const Json& taint : *taints) {
    if (model::text_at(taint, {"effect"}) == "PreferNoSchedule" || is_welcome(taint, pod)) continue;
    const auto tolerates = [&](const Json& each) { return is_tolerated(taint, each); };
    if (tolerations == nullptr || std::ranges::none_of(*tolerations, tolerates)) return &taint;
  }
  return nullptr;
}

}  // namespace

Resources& Resources::operator+=(const Resources& other) {
  cpu_millis += other.cpu_millis;
  memory_bytes += other.memory_bytes;
  pods += other.pods;
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  cpu_millis -= other.cpu_millis;
  memory_bytes -= other.memory_bytes;
  pods -= other.pods;
  return *this;
}

Resources requests_of(const Json& pod) {
  Resources sum;
  Resources most;      // at any time of the beginning
  Resources sidecars;  // so far
  const bool packed = is_packed(pod);
  if (const auto* containers = model::array_at(pod, {"spec", "containers"}))
    for (const Json& container : *containers) sum += asked(container, packed);
  if (const auto* containers = model::array_at(pod, {"spec", "initContainers"})) {
    for (const Json& container : *containers) {
      Resources now = asked(container, packed);
      if (model::text_at(container, {"restartPolicy"}) == "Always") {
        sidecars += now;
        most = larger(most, sidecars);
      } else {
        now += sidecars;
        most = larger(most, now);
      }
    }
  }
  sum += sidecars;
  sum = larger(sum, most);
  sum.pods = 1;
  return sum;
}

Resources allocatable_of(const Json& node) {
  Resources resources;
  if (const auto cpu = quantity_at(node, {"status", "allocatable", "cpu"}))
    resources.cpu_millis = cpu->thousandths();
  if (const auto memory = quantity_at(node, {"status", "allocatable", "memory"}))
    resources.memory_bytes = memory->units();
  if (const auto pods = quantity_at(node, {"status", "allocatable", "pods"}))
    resources.pods = pods->units();
  return resources;
}

bool is_left_to_others(const Json& pod) {
  const std::string_view scheduler = model::text_at(pod, {"spec", "schedulerName"});
  if (!scheduler.empty() && scheduler != "default-scheduler") return true;
  const auto* gates = model::array_at(pod, {"spec", "schedulingGates"});
  return gates != nullptr && !gates->empty();
}

std::string why_not(const Json& pod, const Json& node, const Resources& used) {
  if (model::is_true_at(node, {"spec", "unschedulable"})) return "node(s) were unschedulable";
  if (const Json* taint = find_untolerated_taint(pod, node))
    return fmt::format("node(s) had untolerated taint {{{}: {}}}", model::text_at(*taint, {"key"}),
                       model::text_at(*taint, {"value"}));
  if (!is_selected(pod, node)) return kOtherNode;
  const Resources there = allocatable_of(node);
  const Resources wanted = requests_of(pod);
  if (used.pods + wanted.pods > there.pods) return "Too many pods";
  std::vector<std::string_view> short_of;
  if (wanted.cpu_millis > 0 && used.cpu_millis + wanted.cpu_millis > there.cpu_millis)
    short_of.emplace_back("Insufficient cpu");
  if (wanted.memory_bytes > 0 && used.memory_bytes + wanted.memory_bytes > there.memory_bytes)
    short_of.emplace_back("Insufficient memory");
  return fmt::format("{}", fmt::join(short_of, ", 1 "));
}

}  // namespace hearth::node
