// What this machine is short of, and who has to go then: a kubelet's hard eviction. Pure, but for
// read_supplies().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"
#include "node/machine.h"

namespace hearth::node {

using model::Json;

// In the order in which shortages are dealt with.
enum class Supply { memory, disk, processes };
inline constexpr std::array kSupplies{Supply::memory, Supply::disk, Supply::processes};

template <class T>
struct PerSupply {
  std::array<T, kSupplies.size()> values{};

  T& operator[](Supply supply) { return values[static_cast<std::size_t>(supply)]; }
  const T& operator[](Supply supply) const { return values[static_cast<std::size_t>(supply)]; }
  bool operator==(const PerSupply&) const = default;
};

// What is there and what of it is left. Disks are those that `state_dir` is on.
using Supplies = PerSupply<Amount>;
Supplies read_supplies(const std::string& state_dir);

// Less than this must not be left.
struct Threshold {
  std::uint64_t amount = 0;
  std::optional<double> part;  // of the capacity, instead: "10%"

  std::uint64_t of(std::uint64_t capacity) const;
};
// Nothing: it may run out.
using Thresholds = PerSupply<std::optional<Threshold>>;

// Much less of a disk than a kubelet's tenth: people's machines are fuller than servers.
inline constexpr std::string_view kUsualThresholds =
    "memory.available<100Mi,nodefs.available<1Gi,pid.available<5%";
// As a kubelet's --eviction-hard; empty: none. Throws Error(invalid).
Thresholds parse_thresholds(std::string_view text);

// Which are short.
using NodePressure = PerSupply<bool>;
NodePressure pressure_of(const Supplies& now, const Thresholds& thresholds);

// The key of the taint that keeps pods away while a supply is short.
std::string_view pressure_taint(Supply supply);

struct ContainerUse {
  std::string name;
  PerSupply<std::uint64_t> used;
};
// A pod that runs, and what it uses.
struct PodUse {
  const Json* pod = nullptr;
  std::vector<ContainerUse> containers;
  PerSupply<std::uint64_t> volumes;  // emptyDirs
};

// Who goes first: those that use more than they asked for, those of a lower priority, those that
// use most over what they asked for. Null: nobody can.
const PodUse* choose_victim(const std::vector<PodUse>& pods, Supply supply);

// "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. ..."
std::string eviction_message(const PodUse& victim, Supply supply, std::uint64_t threshold,
                             std::uint64_t available);

}  // namespace hearth::node
