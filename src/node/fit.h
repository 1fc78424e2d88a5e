// Whether a pod may be and can be on a node: what of a scheduler's filters counts where there is
// one node. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "model/json.h"

namespace hearth::node {

// What a pod asks for, or a node has.
struct Resources {
  std::int64_t cpu_millis = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t pods = 0;

  Resources& operator+=(const Resources& other);
};

// The larger of its containers together and each of its init containers; sidecars count with
// both. What it asks for that is no quantity counts for nothing.
Resources requests_of(const model::Json& pod);
Resources allocatable_of(const model::Json& node);

// Empty: it fits. Otherwise a scheduler's words, without the count of nodes: "Insufficient cpu",
// "node(s) didn't match Pod's node affinity/selector".
std::string why_not(const model::Json& pod, const model::Json& node, const Resources& used);

}  // namespace hearth::node
