#include "node/pressure.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "model/quantity.h"

namespace hearth::node {
namespace {

// A kubelet never evicts what the cluster itself stands on (system-node-critical and above).
constexpr std::int64_t kCritical = 2'000'000'000;

struct Words {
  std::string_view signal;
  std::string_view resource;  // as pods request it, and as messages name it
  std::string_view taint;
};
constexpr PerSupply<Words> kWords{
    {{{"memory.available", "memory", "node.kubernetes.io/memory-pressure"},
      {"nodefs.available", "ephemeral-storage", "node.kubernetes.io/disk-pressure"},
      {"pid.available", "pids", "node.kubernetes.io/pid-pressure"}}}};

std::optional<Threshold> parse_threshold(std::string_view text) {
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    double percent = 0;
    const auto read = std::from_chars(text.begin(), text.end(), percent);
    if (read.ec != std::errc() || read.ptr != text.end() || !(percent >= 0 && percent <= 100))
      return std::nullopt;
    return Threshold{.part = percent / 100};
  }
  const auto amount = model::Quantity::parse(text);
  if (!amount || amount->is_negative()) return std::nullopt;
  return Threshold{.amount = static_cast<std::uint64_t>(amount->units())};
}

std::string amount_text(Supply supply, std::uint64_t amount) {
  if (supply == Supply::processes) return std::to_string(amount);
  const std::uint64_t rounded = amount >= 1024 ? amount >> 10 << 10 : amount;
  return model::Quantity::of(static_cast<std::int64_t>(rounded), model::Quantity::Form::binary)
      .text();
}

std::uint64_t request_of(const Json& container, Supply supply) {
  const auto request = model::Quantity::parse(
      model::text_at(container, {"resources", "requests", kWords[supply].resource}));
  return request && !request->is_negative() ? static_cast<std::uint64_t>(request->units()) : 0;
}

std::uint64_t request_of_container(const Json& pod, std::string_view name, Supply supply) {
  for (const std::string_view list : {"containers", "initContainers"})
    if (const auto* containers = model::array_at(pod, {"spec", list}))
      for (const Json& container : *containers)
        if (model::text_at(container, {"name"}) == name) return request_of(container, supply);
  return 0;
}

std::int64_t priority_of(const Json& pod) {
  return model::number_at(pod, {"spec", "priority"}).value_or(0);
}

// More than it asked for, by so much; negative: less.
std::int64_t excess_of(const PodUse& use, Supply supply) {
  auto excess = static_cast<std::int64_t>(use.volumes[supply]);
  for (const ContainerUse& container : use.containers)
    excess += static_cast<std::int64_t>(container.used[supply]) -
              static_cast<std::int64_t>(request_of_container(*use.pod, container.name, supply));
  return excess;
}

}  // namespace

Supplies read_supplies(const std::string& state_dir) {
  return {{read_memory(), read_disk(state_dir), read_processes()}};
}

std::uint64_t Threshold::of(std::uint64_t capacity) const {
  return part ? static_cast<std::uint64_t>(static_cast<double>(capacity) * *part) : amount;
}

Thresholds parse_thresholds(std::string_view text) {
  Thresholds thresholds;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    const std::size_t less = std::min(one.find('<'), one.size());
    const auto known = std::ranges::find_if(
        kSupplies, [&](Supply supply) { return kWords[supply].signal == one.substr(0, less); });
    if (known == kSupplies.end())
      fail(Code::invalid, "'{}' is none of {}, {} and {}, and '<'", one,
           kWords[Supply::memory].signal, kWords[Supply::disk].signal,
           kWords[Supply::processes].signal);
    thresholds[*known] = parse_threshold(one.substr(std::min(one.size(), less + 1)));
    if (!thresholds[*known])
      fail(Code::invalid, "'{}' names neither an amount such as 100Mi nor a part such as 5%", one);
  }
  return thresholds;
}

NodePressure pressure_of(const Supplies& now, const Thresholds& thresholds) {
  NodePressure pressure;
  for (const Supply supply : kSupplies) {
    const Amount& amount = now[supply];
    pressure[supply] = thresholds[supply] && amount.capacity != 0 &&
                       amount.available < thresholds[supply]->of(amount.capacity);
  }
  return pressure;
}

std::string_view pressure_taint(Supply supply) {
  return kWords[supply].taint;
}

const PodUse* choose_victim(const std::vector<PodUse>& pods, Supply supply) {
  const PodUse* victim = nullptr;
  const auto goes_before = [&](const PodUse& left, const PodUse& right) {
    const std::int64_t left_excess = excess_of(left, supply);
    const std::int64_t right_excess = excess_of(right, supply);
    if ((left_excess > 0) != (right_excess > 0)) return left_excess > 0;
    if (priority_of(*left.pod) != priority_of(*right.pod))
      return priority_of(*left.pod) < priority_of(*right.pod);
    return left_excess > right_excess;
  };
  for (const PodUse& use : pods) {
    if (priority_of(*use.pod) >= kCritical) continue;
    if (victim == nullptr || goes_before(use, *victim)) victim = &use;
  }
  return victim;
}

std::string eviction_message(const PodUse& victim, Supply supply, std::uint64_t threshold,
                             std::uint64_t available) {
  std::string message = fmt::format(
      "The node was low on resource: {}. Threshold quantity: {}, available: {}. ",
      kWords[supply].resource, amount_text(supply, threshold), amount_text(supply, available));
  for (const ContainerUse& container : victim.containers) {
    const std::uint64_t used = container.used[supply];
    const std::uint64_t request = request_of_container(*victim.pod, container.name, supply);
    if (used > request)
      message +=
          fmt::format("Container {} was using {}, request is {}, has larger consumption of {}. ",
                      container.name, amount_text(supply, used), amount_text(supply, request),
                      kWords[supply].resource);
  }
  return message;
}

}  // namespace hearth::node
