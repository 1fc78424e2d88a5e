// What is used where pods run, measured when somebody asks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/clock.h"

namespace hearth::remote {

struct Usage {
  std::uint64_t cpu_nanocores = 0;  // on average, over the window
  std::uint64_t memory_bytes = 0;   // now
  Duration window{};
};

struct UsageReport {
  Time at;
  std::string node;  // that these are of
  Usage all;         // of the whole machine
  // By sandbox, as containerID of a container's status names it (model/container_id.h).
  std::map<std::string, Usage, std::less<>> sandboxes;
};

// Blocks. Any thread.
using MeasureUsage = std::function<UsageReport()>;

}  // namespace hearth::remote
